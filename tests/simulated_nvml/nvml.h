/* What the files of the simulated NVML share: its codes, and calls that have begun. */
#ifndef NVML_H
#define NVML_H

#include "simulation.h"

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15,
    VERSION_MISMATCH = 25, UNKNOWN = 999,
};

typedef void *device;

struct call { /* one that has begun: it holds the lock */
    struct simulation *sim;
    struct board *board;
    int index, slice; /* slice: of a MIG board, from 1; 0 is the board itself */
    int result;
};

/* Costs the time of a call. If it cannot go on, the lock is free again and .result says what to answer. */
struct call begin(const char *name);
struct call begin_on(const char *name, device handle, bool slice_too);
int end(struct call *call, int result); /* frees the lock; answers the result */

device handle_of(int index, int slice);
int put_text(const char *text, char *to, unsigned size);
struct surroundings around(const struct call *call);

#endif
