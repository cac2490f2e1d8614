/* What a board says about itself in numbers: power, energy, temperature, clocks. NVML counts in thousandths. */
#include "nvml.h"

#include <math.h>
#include <stdio.h>

enum { FIELD_ENERGY_OLD = 83, FIELD_POWER_AVERAGE = 185, FIELD_POWER_INSTANT = 186, FIELD_ENERGY = 191 };
enum { SCOPE_BOARD = 0, SCOPE_MODULE = 1, SCOPE_MEMORY = 2 };
enum { VALUE_UINT = 1, VALUE_ULONGLONG = 3 };
enum { CLOCK_GRAPHICS = 0, CLOCK_SM = 1, CLOCK_MEMORY = 2, CLOCK_VIDEO = 3 };
enum { REASON_IDLE = 1 };

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

struct utilization {
    uint32_t gpu, memory;
};

struct temperature {
    uint32_t version, sensor;
    int32_t degrees;
};

static unsigned milli(double value)
{
    return (unsigned)fmax(0, floor(value * 1e3 + 0.5));
}

static bool works(const struct call *call)
{
    return call->board->queue.count > 0;
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
