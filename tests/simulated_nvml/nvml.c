/* The library as everybody else sees it. Names, codes and layouts are those of NVML's public interface. */
#include "simulation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15,
    VERSION_MISMATCH = 25, UNKNOWN = 999,
};

enum { FIELD_ENERGY_OLD = 83, FIELD_POWER_AVERAGE = 185, FIELD_POWER_INSTANT = 186, FIELD_ENERGY = 191 };
enum { SCOPE_BOARD = 0, SCOPE_MODULE = 1, SCOPE_MEMORY = 2 };
enum { VALUE_UINT = 1, VALUE_ULONGLONG = 3 };
enum { CLOCK_GRAPHICS = 0, CLOCK_SM = 1, CLOCK_MEMORY = 2, CLOCK_VIDEO = 3 };
enum { REASON_IDLE = 1 };

#define MEBIBYTE (1024.0 * 1024.0)
#define CONTEXT_BYTES (500 * MEBIBYTE)

typedef void *device;

struct field_value {
    uint32_t field, scope;
    int64_t timestamp_us, latency_us;
    uint32_t value_type;
    int32_t result;
    union {
        uint32_t u32;
        uint64_t u64;
    } value;
};

struct process {
    uint32_t pid;
    uint64_t memory_bytes;
    uint32_t gpu_instance, compute_instance;
};

struct pci {
    char legacy_id[16];
    uint32_t domain, bus, device, device_id, subsystem_id;
    char id[32];
};

struct memory {
    uint64_t total, free, used;
};

struct utilization {
    uint32_t gpu, memory;
};

struct temperature {
    uint32_t version, sensor;
    int32_t degrees;
};

struct call { /* one that has begun: it holds the lock */
    struct simulation *sim;
    struct board *board;
    int index, slice; /* slice: of a MIG board, from 1; 0 is the board itself */
    int result;
};

static int users; /* of this process: every successful init is one */

static device handle_of(int index, int slice)
{
    return (device)(uintptr_t)(index + 1 + 256 * slice);
}

static int end(struct call *call, int result)
{
    unlock_simulation(call->sim);
    return result;
}

/* Costs the time of a call. If it cannot go on, the lock is free again and .result says what to answer. */
static struct call begin(const char *name)
{
    struct call call = {.sim = lock_simulation(), .index = -1};
    if (call.sim == NULL) {
        call.result = UNKNOWN;
        return call;
    }
    if (call.sim->real_time == 0)
        call.sim->virtual_now_s += call.sim->call_s;
    count_call(call.sim, NULL);
    call.result = users > 0 || strcmp(name, "nvmlInit") == 0 ? error_of(call.sim, -1, name) : UNINITIALIZED;
    if (call.result != SUCCESS)
        unlock_simulation(call.sim);
    return call;
}

static struct call begin_on(const char *name, device handle, bool slice_too)
{
    struct call call = begin(name);
    if (call.result != SUCCESS)
        return call;
    uintptr_t number = (uintptr_t)handle;
    call.index = (int)(number % 256) - 1;
    call.slice = (int)(number / 256);
    if (number >= 256 * 16 || call.index < 0 || call.index >= call.sim->board_count) {
        call.result = end(&call, INVALID_ARGUMENT);
        return call;
    }
    call.board = &call.sim->boards[call.index];
    settle(call.sim, call.board);
    count_call(call.sim, call.board);
    call.result = error_of(call.sim, call.index, name);
    if (call.result == SUCCESS && call.slice > 0 && !slice_too)
        call.result = NOT_SUPPORTED;
    if (call.result != SUCCESS)
        unlock_simulation(call.sim);
    return call;
}

static int put_text(const char *text, char *to, unsigned size)
{
    return snprintf(to, size, "%s", text) < (int)size ? SUCCESS : INSUFFICIENT_SIZE;
}

static unsigned milli(double value)
{
    return (unsigned)fmax(0, floor(value * 1e3 + 0.5));
}

static bool works(const struct call *call)
{
    return call->board->queue.count > 0;
}

static struct surroundings around(const struct call *call)
{
    return surroundings_at(call->sim, call->index, now_s(call->sim));
}

EXPORT int nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    struct call call = begin("nvmlInit");
    if (call.result != SUCCESS)
        return call.result;
    users += 1;
    return end(&call, SUCCESS);
}

EXPORT int nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

EXPORT int nvmlShutdown(void)
{
    struct call call = begin("nvmlShutdown");
    if (call.result != SUCCESS)
        return call.result;
    users -= 1;
    return end(&call, SUCCESS);
}

EXPORT const char *nvmlErrorString(int code)
{
    switch (code) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case NO_PERMISSION: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case INSUFFICIENT_SIZE: return "Insufficient Size";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case FUNCTION_NOT_FOUND: return "Function Not Found";
    case GPU_IS_LOST: return "GPU is lost";
    case VERSION_MISMATCH: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}

static int put_system_text(const char *name, bool driver, char *to, unsigned size)
{
    struct call call = begin(name);
    if (call.result != SUCCESS)
        return call.result;
    char nvml[TEXT_SIZE + 4];
    snprintf(nvml, sizeof nvml, "13.%s", call.sim->driver);
    return end(&call, put_text(driver ? call.sim->driver : nvml, to, size));
}

EXPORT int nvmlSystemGetDriverVersion(char *version, unsigned size)
{
    return put_system_text("nvmlSystemGetDriverVersion", true, version, size);
}

EXPORT int nvmlSystemGetNVMLVersion(char *version, unsigned size)
{
    return put_system_text("nvmlSystemGetNVMLVersion", false, version, size);
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
    struct call call = begin("nvmlDeviceGetCount");
    if (call.result != SUCCESS)
        return call.result;
    *count = (unsigned)call.sim->board_count;
    return end(&call, SUCCESS);
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, device *handle)
{
    struct call call = begin("nvmlDeviceGetHandleByIndex");
    if (call.result != SUCCESS)
        return call.result;
    if (index >= (unsigned)call.sim->board_count)
        return end(&call, INVALID_ARGUMENT);
    int code = error_of(call.sim, (int)index, "nvmlDeviceGetHandleByIndex");
    *handle = handle_of((int)index, 0);
    return end(&call, code);
}

/* Slices are told apart by the end of their board's identity. */
static void put_slice_uuid(const struct board *board, int slice, char *to)
{
    snprintf(to, TEXT_SIZE, "%s", board->set.uuid);
    size_t length = strlen(to);
    if (length < 8)
        return;
    memcpy(to, "MIG", 3);
    snprintf(to + length - 2, 3, "%02x", (unsigned)slice);
}

static device found_by_uuid(const struct simulation *sim, const char *uuid)
{
    for (int index = 0; index < sim->board_count; index++) {
        const struct board *board = &sim->boards[index];
        if (strcmp(board->set.uuid, uuid) == 0)
            return handle_of(index, 0);
        for (int slice = 1; slice <= (int)board->set.mig_slices; slice++) {
            char name[TEXT_SIZE];
            put_slice_uuid(board, slice, name);
            if (strcmp(name, uuid) == 0)
                return handle_of(index, slice);
        }
    }
    return NULL;
}

EXPORT int nvmlDeviceGetHandleByUUID(const char *uuid, device *handle)
{
    struct call call = begin("nvmlDeviceGetHandleByUUID");
    if (call.result != SUCCESS)
        return call.result;
    *handle = found_by_uuid(call.sim, uuid);
    return end(&call, *handle == NULL ? NOT_FOUND : SUCCESS);
}

EXPORT int nvmlDeviceGetIndex(device handle, unsigned *index)
{
    struct call call = begin_on("nvmlDeviceGetIndex", handle, true);
    if (call.result != SUCCESS)
        return call.result;
    *index = (unsigned)(call.slice > 0 ? call.slice - 1 : call.index);
    return end(&call, SUCCESS);
}

EXPORT int nvmlDeviceGetName(device handle, char *name, unsigned size)
{
    struct call call = begin_on("nvmlDeviceGetName", handle, true);
    if (call.result != SUCCESS)
        return call.result;
    char text[TEXT_SIZE + 16];
    snprintf(text, sizeof text, "%s%s", call.board->set.name, call.slice > 0 ? " MIG 1g" : "");
    return end(&call, put_text(text, name, size));
}

EXPORT int nvmlDeviceGetUUID(device handle, char *uuid, unsigned size)
{
    struct call call = begin_on("nvmlDeviceGetUUID", handle, true);
    if (call.result != SUCCESS)
        return call.result;
    char slice[TEXT_SIZE];
    put_slice_uuid(call.board, call.slice, slice);
    return end(&call, put_text(call.slice > 0 ? slice : call.board->set.uuid, uuid, size));
}

EXPORT int nvmlDeviceGetPciInfo_v3(device handle, struct pci *pci)
{
    struct call call = begin_on("nvmlDeviceGetPciInfo", handle, false);
    if (call.result != SUCCESS)
        return call.result;
    unsigned bus = (unsigned)call.board->set.bus;
    *pci = (struct pci){.bus = bus};
    snprintf(pci->legacy_id, sizeof pci->legacy_id, "0000:%02X:00.0", bus);
    snprintf(pci->id, sizeof pci->id, "00000000:%02X:00.0", bus);
    return end(&call, SUCCESS);
}

EXPORT int nvmlDeviceGetMemoryInfo(device handle, struct memory *memory)
{
    struct call call = begin_on("nvmlDeviceGetMemoryInfo", handle, true);
    if (call.result != SUCCESS)
        return call.result;
    memory->total = (uint64_t)call.board->set.memory_bytes;
    memory->used = call.board->set.context != 0 ? (uint64_t)CONTEXT_BYTES : 0;
    memory->free = memory->total - memory->used;
    return end(&call, SUCCESS);
}

/* ---- figures that are one number ---- */

static double architecture(const struct call *call) { return call->board->set.architecture; }
static double limit_mw(const struct call *call) { return call->board->set.limit_w * 1e3; }
static double persistence(const struct call *call) { (void)call; return 1; }
static double state(const struct call *call) { return call->board->set.context != 0 ? 0 : 8; }
static double mig_capacity(const struct call *call) { return call->board->set.mig_capacity; }
static double celsius(const struct call *call) { return floor(temperature_c(call->board, now_s(call->sim)) + 0.5); }

static double power_mw(const struct call *call)
{
    bool averages = call->board->set.averages != 0;
    return milli(averages ? average_power_w(call->sim, call->board) : call->board->power_w);
}

static int put_number(const char *name, device handle, double (*figure)(const struct call *), unsigned *to)
{
    struct call call = begin_on(name, handle, false);
    if (call.result != SUCCESS)
        return call.result;
    *to = (unsigned)figure(&call);
    return end(&call, SUCCESS);
}

EXPORT int nvmlDeviceGetArchitecture(device handle, unsigned *to)
{
    return put_number("nvmlDeviceGetArchitecture", handle, architecture, to);
}

EXPORT int nvmlDeviceGetPowerUsage(device handle, unsigned *to)
{
    return put_number("nvmlDeviceGetPowerUsage", handle, power_mw, to);
}

EXPORT int nvmlDeviceGetEnforcedPowerLimit(device handle, unsigned *to)
{
    return put_number("nvmlDeviceGetEnforcedPowerLimit", handle, limit_mw, to);
}

EXPORT int nvmlDeviceGetPowerManagementLimit(device handle, unsigned *to)
{
    return put_number("nvmlDeviceGetPowerManagementLimit", handle, limit_mw, to);
}

EXPORT int nvmlDeviceGetPowerManagementDefaultLimit(device handle, unsigned *to)
{
    return put_number("nvmlDeviceGetPowerManagementDefaultLimit", handle, limit_mw, to);
}

EXPORT int nvmlDeviceGetPersistenceMode(device handle, unsigned *to)
{
    return put_number("nvmlDeviceGetPersistenceMode", handle, persistence, to);
}

EXPORT int nvmlDeviceGetPerformanceState(device handle, unsigned *to)
{
    return put_number("nvmlDeviceGetPerformanceState", handle, state, to);
}

EXPORT int nvmlDeviceGetMaxMigDeviceCount(device handle, unsigned *to)
{
    return put_number("nvmlDeviceGetMaxMigDeviceCount", handle, mig_capacity, to);
}

EXPORT int nvmlDeviceGetTemperature(device handle, unsigned sensor, unsigned *to)
{
    return sensor != 0 ? INVALID_ARGUMENT : put_number("nvmlDeviceGetTemperature", handle, celsius, to);
}

EXPORT int nvmlDeviceGetTemperatureV(device handle, struct temperature *to)
{
    unsigned degrees = 0;
    if (to->version != (sizeof *to | 1u << 24))
        return VERSION_MISMATCH;
    if (to->sensor != 0)
        return INVALID_ARGUMENT;
    int result = put_number("nvmlDeviceGetTemperatureV", handle, celsius, &degrees);
    to->degrees = (int32_t)degrees;
    return result;
}

EXPORT int nvmlDeviceGetPowerManagementLimitConstraints(device handle, unsigned *least, unsigned *most)
{
    int result = put_number("nvmlDeviceGetPowerManagementLimitConstraints", handle, limit_mw, most);
    *least = *most / 4;
    return result;
}

/* ---- clocks and why they are what they are ---- */

static double clock_mhz(const struct call *call, unsigned kind, bool highest)
{
    const struct settings *set = &call->board->set;
    if (kind == CLOCK_MEMORY)
        return set->memory_mhz;
    if (highest)
        return set->sm_mhz;
    return set->context != 0 ? floor(set->sm_mhz * around(call).clock_factor) : set->deep_idle_mhz;
}

static int put_clock(const char *name, device handle, unsigned kind, bool highest, unsigned *to)
{
    if (kind > CLOCK_VIDEO)
        return INVALID_ARGUMENT;
    struct call call = begin_on(name, handle, false);
    if (call.result != SUCCESS)
        return call.result;
    *to = (unsigned)clock_mhz(&call, kind, highest);
    return end(&call, SUCCESS);
}

EXPORT int nvmlDeviceGetClockInfo(device handle, unsigned kind, unsigned *to)
{
    return put_clock("nvmlDeviceGetClockInfo", handle, kind, false, to);
}

EXPORT int nvmlDeviceGetMaxClockInfo(device handle, unsigned kind, unsigned *to)
{
    return put_clock("nvmlDeviceGetMaxClockInfo", handle, kind, true, to);
}

static int put_reasons(const char *name, device handle, unsigned long long *to)
{
    struct call call = begin_on(name, handle, false);
    if (call.result != SUCCESS)
        return call.result;
    *to = around(&call).reasons | (works(&call) ? 0 : REASON_IDLE);
    return end(&call, SUCCESS);
}

EXPORT int nvmlDeviceGetCurrentClocksEventReasons(device handle, unsigned long long *to)
{
    return put_reasons("nvmlDeviceGetCurrentClocksEventReasons", handle, to);
}

EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(device handle, unsigned long long *to)
{
    return put_reasons("nvmlDeviceGetCurrentClocksThrottleReasons", handle, to);
}

EXPORT int nvmlDeviceGetUtilizationRates(device handle, struct utilization *to)
{
    struct call call = begin_on("nvmlDeviceGetUtilizationRates", handle, false);
    if (call.result != SUCCESS)
        return call.result;
    if (call.board->set.mig_slices > 0)
        return end(&call, NOT_SUPPORTED);
    const struct stretch *stretch = stretch_at(call.board, now_s(call.sim));
    double busy = stretch->kind == WHOLE_REPETITIONS ? stretch->busy_s / (stretch->busy_s + stretch->gap_s) : 1;
    bool foreign = around(&call).foreign_w > 0;
    to->gpu = foreign ? 100 : works(&call) ? (unsigned)(100 * busy) : 0;
    to->memory = to->gpu / 2;
    return end(&call, SUCCESS);
}

/* ---- energy and power ---- */

static uint64_t counter_mj(struct call *call)
{
    return (uint64_t)floor(read_counter_j(call->sim, call->board) * 1e3);
}

EXPORT int nvmlDeviceGetTotalEnergyConsumption(device handle, unsigned long long *to)
{
    struct call call = begin_on("nvmlDeviceGetTotalEnergyConsumption", handle, false);
    if (call.result != SUCCESS)
        return call.result;
    *to = counter_mj(&call);
    return end(&call, SUCCESS);
}

static int put_power(const struct call *call, uint32_t scope, double board_w, bool offered, struct field_value *to)
{
    const struct settings *set = &call->board->set;
    double value_w = scope == SCOPE_BOARD ? board_w : scope == SCOPE_MODULE ? board_w + set->module_w
                                                                            : board_w * set->memory_share;
    bool in_scope = scope == SCOPE_BOARD || (scope == SCOPE_MODULE && set->module_w >= 0)
                    || (scope == SCOPE_MEMORY && set->memory_share > 0);
    if (scope > SCOPE_MEMORY)
        return INVALID_ARGUMENT;
    to->value_type = VALUE_UINT;
    to->value.u32 = milli(value_w);
    return offered && in_scope ? SUCCESS : NOT_SUPPORTED;
}

static int put_field(struct call *call, struct field_value *to)
{
    char target[TEXT_SIZE];
    snprintf(target, sizeof target, "field:%u", to->field);
    int code = error_of(call->sim, call->index, target);
    if (code != SUCCESS)
        return code;
    const struct settings *set = &call->board->set;
    switch (to->field) {
    case FIELD_ENERGY_OLD:
    case FIELD_ENERGY:
        to->value_type = VALUE_ULONGLONG;
        to->value.u64 = counter_mj(call);
        return to->scope == SCOPE_BOARD ? SUCCESS : NOT_SUPPORTED;
    case FIELD_POWER_INSTANT:
        return put_power(call, to->scope, call->board->power_w, set->instant != 0, to);
    case FIELD_POWER_AVERAGE:
        return put_power(call, to->scope, average_power_w(call->sim, call->board), set->averages != 0, to);
    default:
        return NOT_SUPPORTED;
    }
}

EXPORT int nvmlDeviceGetFieldValues(device handle, int count, struct field_value *values)
{
    struct call call = begin_on("nvmlDeviceGetFieldValues", handle, false);
    if (call.result != SUCCESS)
        return call.result;
    for (int i = 0; i < count; i++) {
        values[i].timestamp_us = (int64_t)(now_s(call.sim) * 1e6);
        values[i].latency_us = 0;
        values[i].value.u64 = 0;
        values[i].result = put_field(&call, &values[i]);
    }
    return end(&call, SUCCESS);
}

/* ---- who else is there ---- */

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(device handle, unsigned *count, struct process *processes)
{
    struct call call = begin_on("nvmlDeviceGetComputeRunningProcesses", handle, true);
    if (call.result != SUCCESS)
        return call.result;
    struct process found[MAX_FAULTS + 1];
    unsigned size = *count, number = 0;
    uint32_t nowhere = call.slice > 0 ? (uint32_t)call.slice : UINT32_MAX;
    if (call.board->set.context != 0)
        found[number++] = (struct process){(uint32_t)getpid(), (uint64_t)CONTEXT_BYTES, nowhere, nowhere};
    for (int i = 0; i < call.sim->fault_count; i++) {
        const struct fault *fault = &call.sim->faults[i];
        if (fault->kind == FAULT_FOREIGN && acts(call.sim, fault, call.index, now_s(call.sim)))
            found[number++] = (struct process){(uint32_t)fault->pid, (uint64_t)fault->memory_bytes, nowhere, nowhere};
    }
    *count = number;
    if (number > size)
        return end(&call, INSUFFICIENT_SIZE);
    if (number > 0)
        memcpy(processes, found, number * sizeof *found);
    return end(&call, SUCCESS);
}

/* ---- MIG: slices have names and processes; energy is the whole board's ---- */

EXPORT int nvmlDeviceGetMigMode(device handle, unsigned *current, unsigned *pending)
{
    struct call call = begin_on("nvmlDeviceGetMigMode", handle, false);
    if (call.result != SUCCESS)
        return call.result;
    *current = *pending = call.board->set.mig_slices > 0;
    return end(&call, call.board->set.mig_capacity > 0 ? SUCCESS : NOT_SUPPORTED);
}

EXPORT int nvmlDeviceGetMigDeviceHandleByIndex(device handle, unsigned index, device *slice)
{
    struct call call = begin_on("nvmlDeviceGetMigDeviceHandleByIndex", handle, false);
    if (call.result != SUCCESS)
        return call.result;
    const struct settings *set = &call.board->set;
    *slice = handle_of(call.index, (int)index + 1);
    if (index >= set->mig_capacity)
        return end(&call, set->mig_capacity > 0 ? INVALID_ARGUMENT : NOT_SUPPORTED);
    return end(&call, index < set->mig_slices ? SUCCESS : NOT_FOUND);
}

EXPORT int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(device slice, device *handle)
{
    struct call call = begin_on("nvmlDeviceGetDeviceHandleFromMigDeviceHandle", slice, true);
    if (call.result != SUCCESS)
        return call.result;
    *handle = handle_of(call.index, 0);
    return end(&call, call.slice > 0 ? SUCCESS : INVALID_ARGUMENT);
}

EXPORT int nvmlDeviceIsMigDeviceHandle(device handle, unsigned *is_slice)
{
    struct call call = begin_on("nvmlDeviceIsMigDeviceHandle", handle, true);
    if (call.result != SUCCESS)
        return call.result;
    *is_slice = call.slice > 0;
    return end(&call, SUCCESS);
}

/* ---- what these boards do not have, and what only an administrator may do ---- */

static int refuse(const char *name, device handle, int code)
{
    struct call call = begin_on(name, handle, false);
    return call.result != SUCCESS ? call.result : end(&call, code);
}

EXPORT int nvmlDeviceGetC2cModeInfoV(device handle, void *info)
{
    (void)info;
    return refuse("nvmlDeviceGetC2cModeInfoV", handle, NOT_SUPPORTED);
}

EXPORT int nvmlDeviceSetPowerManagementLimit(device handle, unsigned limit_mw_wanted)
{
    (void)limit_mw_wanted;
    return refuse("nvmlDeviceSetPowerManagementLimit", handle, NO_PERMISSION);
}

EXPORT int nvmlDeviceSetPersistenceMode(device handle, unsigned mode)
{
    (void)mode;
    return refuse("nvmlDeviceSetPersistenceMode", handle, NO_PERMISSION);
}

EXPORT int nvmlDeviceSetGpuLockedClocks(device handle, unsigned least_mhz, unsigned most_mhz)
{
    (void)least_mhz, (void)most_mhz;
    return refuse("nvmlDeviceSetGpuLockedClocks", handle, NO_PERMISSION);
}

EXPORT int nvmlDeviceResetGpuLockedClocks(device handle)
{
    return refuse("nvmlDeviceResetGpuLockedClocks", handle, NO_PERMISSION);
}
