/* What goes wrong, and when: from a moment on, or after so many calls about the board since it was set. */
#include "simulation.h"

#include <math.h>
#include <string.h>

static bool concerns(const struct fault *fault, int board)
{
    return fault->board < 0 || (int)fault->board == board;
}

bool acts(const struct simulation *sim, const struct fault *fault, int board, double at_s)
{
    (void)sim;
    return concerns(fault, board) && !fault->waits_for_calls && fault->at_s <= at_s + INSTANT_S
           && at_s + INSTANT_S < fault->until_s;
}

bool happens_between(const struct fault *fault, int board, double after_s, double until_s)
{
    return concerns(fault, board) && !fault->waits_for_calls && after_s < fault->at_s && fault->at_s <= until_s;
}

void count_call(struct simulation *sim, struct board *board)
{
    sim->calls += 1;
    if (board != NULL)
        board->calls += 1;
    for (int i = 0; i < sim->fault_count; i++) {
        struct fault *fault = &sim->faults[i];
        uint64_t calls = fault->board < 0 ? sim->calls : sim->boards[(int)fault->board].calls;
        if (!fault->waits_for_calls || calls - fault->calls_before <= (uint64_t)fault->after_calls)
            continue;
        fault->waits_for_calls = false;
        fault->at_s = fmax(fault->at_s, now_s(sim));
        for (int each = 0; each < sim->board_count; each++)
            cut_timeline(sim, &sim->boards[each]);
    }
}

int error_of(struct simulation *sim, int board, const char *target)
{
    double at_s = now_s(sim);
    for (int i = 0; i < sim->fault_count; i++) {
        const struct fault *fault = &sim->faults[i];
        bool meant = strcmp(fault->target, "*") == 0 || strcmp(fault->target, target) == 0;
        if (fault->kind == FAULT_ERROR && meant && acts(sim, fault, board, at_s))
            return (int)fault->code;
    }
    return 0;
}

static double next_edge_s(const struct fault *fault, double after_s)
{
    if (fault->waits_for_calls)
        return INFINITY;
    if (fault->at_s > after_s + INSTANT_S)
        return fault->at_s;
    return fault->until_s > after_s + INSTANT_S ? fault->until_s : INFINITY;
}

struct surroundings surroundings_at(const struct simulation *sim, int board, double at_s)
{
    struct surroundings around = {.clock_factor = 1, .power_factor = 1, .until_s = INFINITY};
    for (int i = 0; i < sim->fault_count; i++) {
        const struct fault *fault = &sim->faults[i];
        bool physical = fault->kind == FAULT_THROTTLE || fault->kind == FAULT_FOREIGN || fault->kind == FAULT_AMBIENT;
        if (!physical || !concerns(fault, board))
            continue;
        around.until_s = fmin(around.until_s, next_edge_s(fault, at_s));
        if (!acts(sim, fault, board, at_s))
            continue;
        if (fault->kind == FAULT_THROTTLE) {
            around.clock_factor *= fault->clock_factor;
            around.power_factor *= fault->power_factor;
            around.reasons |= (uint64_t)fault->reasons;
        }
        if (fault->kind == FAULT_FOREIGN)
            around.foreign_w += fault->power_w;
        if (fault->kind == FAULT_AMBIENT)
            around.ambient_shift_c += fault->amount;
    }
    return around;
}
