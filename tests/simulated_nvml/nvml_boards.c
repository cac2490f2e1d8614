/* Which boards and slices there are, and whose processes. */
#include "nvml.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MEBIBYTE (1024.0 * 1024.0)
#define CONTEXT_BYTES (500 * MEBIBYTE)

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
