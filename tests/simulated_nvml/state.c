/* The one state of the simulation. It is this process's own unless SIMULATED_NVML_STATE names a file, which
 * then is the state of all processes that name it; whoever comes first sets it up from SIMULATED_NVML_SETTINGS.
 */
#define _GNU_SOURCE
#include "simulation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const uint64_t MAGIC = 0x4e564d4c00000000u + sizeof(struct simulation);

static struct simulation *state;
static char complaint_text[512];
static pthread_once_t once = PTHREAD_ONCE_INIT;

const char *complaint(void)
{
    return complaint_text;
}

int complain(const char *format, ...)
{
    va_list rest;
    va_start(rest, format);
    vsnprintf(complaint_text, sizeof complaint_text, format, rest);
    va_end(rest);
    return -1;
}

double monotonic_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double now_s(const struct simulation *sim)
{
    return sim->real_time != 0 ? monotonic_s() - sim->real_start_s : sim->virtual_now_s;
}

static int set_up(struct simulation *sim)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&sim->lock, &kind);
    const char *settings = getenv("SIMULATED_NVML_SETTINGS");
    return apply_settings(sim, settings == NULL ? "" : settings);
}

static struct simulation *mapped(int file)
{
    int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
    void *memory = mmap(NULL, sizeof(struct simulation), PROT_READ | PROT_WRITE, flags, file, 0);
    if (memory == MAP_FAILED) {
        complain("cannot map the state: %s", strerror(errno));
        return NULL;
    }
    return memory;
}

static struct simulation *opened(const char *path)
{
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || flock(file, LOCK_EX) != 0 || ftruncate(file, sizeof(struct simulation)) != 0) {
        complain("cannot open the state %s: %s", path, strerror(errno));
        return NULL;
    }
    struct simulation *sim = mapped(file);
    if (sim != NULL && sim->magic != MAGIC) {
        if (sim->magic != 0)
            complain("%s is the state of another version", path);
        if (sim->magic != 0 || set_up(sim) != 0)
            sim = NULL;
        else
            sim->magic = MAGIC;
    }
    flock(file, LOCK_UN); /* closing alone would not do: the mapping keeps the file open */
    close(file);
    return sim;
}

static void open_state(void)
{
    const char *path = getenv("SIMULATED_NVML_STATE");
    if (path != NULL) {
        state = opened(path);
    } else {
        state = mapped(-1);
        if (state != NULL && set_up(state) != 0)
            state = NULL;
    }
    if (state == NULL)
        fprintf(stderr, "simulated NVML: %s\n", complaint_text);
}

struct simulation *lock_simulation(void)
{
    pthread_once(&once, open_state);
    if (state == NULL)
        return NULL;
    if (pthread_mutex_lock(&state->lock) == EOWNERDEAD)
        pthread_mutex_consistent(&state->lock);
    return state;
}

void unlock_simulation(struct simulation *sim)
{
    pthread_mutex_unlock(&sim->lock);
}
