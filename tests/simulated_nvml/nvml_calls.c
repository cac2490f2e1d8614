/* How the library is entered and left. Names, codes and layouts are those of NVML's public interface. */
#include "nvml.h"

#include <stdio.h>
#include <string.h>

static int users; /* of this process: every successful init is one */

device handle_of(int index, int slice)
{
    return (device)(uintptr_t)(index + 1 + 256 * slice);
}

int end(struct call *call, int result)
{
    unlock_simulation(call->sim);
    return result;
}

struct call begin(const char *name)
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

struct call begin_on(const char *name, device handle, bool slice_too)
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

int put_text(const char *text, char *to, unsigned size)
{
    return snprintf(to, size, "%s", text) < (int)size ? SUCCESS : INSUFFICIENT_SIZE;
}

struct surroundings around(const struct call *call)
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
