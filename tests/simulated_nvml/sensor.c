/* What the sensor of a board makes of what it draws. Every period a tick:
 *
 *     power    gain * mean over [tick - boxcar, tick] + offset + noise
 *     counter  += gain * true energy since the last tick + offset and noise over that time,
 *                 or, of the other kind, += published power * time since the last tick
 *
 * Both are seen from one lag after the tick on. Noise is a function of seed, board and tick, and so does not
 * depend on who reads what. A counter that is read too often may answer the same again, or lose energy.
 */
#include "simulation.h"

#include <math.h>

enum draw { TICK_TIME, INSTANT_NOISE, AVERAGE_NOISE, COUNTER_NOISE, DEAD_TIME };

/* splitmix64: a good mix of few bits, in few lines */
static uint64_t mixed(uint64_t bits)
{
    bits += 0x9e3779b97f4a7c15u;
    bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
    bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
    return bits ^ (bits >> 31);
}

/* Above 0, at most 1. */
static double uniform(const struct simulation *sim, const struct board *board, enum draw draw, int64_t number)
{
    uint64_t stream = mixed((uint64_t)sim->seed * 1024 + (uint64_t)board_index(sim, board) * 16 + draw);
    return ((double)(mixed(stream ^ mixed((uint64_t)number)) >> 11) + 1) / 9007199254740992.0;
}

static double normal(const struct simulation *sim, const struct board *board, enum draw draw, int64_t number)
{
    double radius = sqrt(-2 * log(uniform(sim, board, draw, 2 * number)));
    return radius * cos(2 * acos(-1) * uniform(sim, board, draw, 2 * number + 1));
}

static double tick_time_s(const struct simulation *sim, const struct board *board, int64_t tick)
{
    const struct settings *set = &board->set;
    double late = set->jitter_s > 0 ? uniform(sim, board, TICK_TIME, tick) - 0.5 : 0;
    return set->phase_s + (double)tick * set->period_s + set->jitter_s * late;
}

static double mean_w(const struct board *board, double until_s, double span_s)
{
    if (span_s <= 0)
        return power_w(board, until_s);
    return (energy_j(board, until_s) - energy_j(board, until_s - span_s)) / span_s;
}

static double noise_w(const struct simulation *sim, const struct board *board, enum draw draw)
{
    return board->set.noise_w > 0 ? board->set.noise_w * normal(sim, board, draw, board->tick) : 0;
}

/* Energy that the counter will never see because it was read just before. */
static void settle_loss(struct board *board, double until_s)
{
    double end_s = fmin(until_s, board->dead_until_s);
    if (end_s <= board->dead_from_s)
        return;
    board->unpaid_loss_j += board->set.gain * (energy_j(board, end_s) - energy_j(board, board->dead_from_s));
    board->dead_from_s = end_s;
}

static void tick(struct simulation *sim, struct board *board)
{
    const struct settings *set = &board->set;
    int index = board_index(sim, board);
    double before_s = board->tick_s, at_s = tick_time_s(sim, board, board->tick + 1), span_s = at_s - before_s;
    board->tick += 1;
    board->tick_s = at_s;
    board->power_w = fmax(0, set->gain * mean_w(board, at_s, set->boxcar_s) + set->offset_w
                                 + noise_w(sim, board, INSTANT_NOISE));
    double step_j = board->power_w * span_s;
    if (set->sampled == 0)
        step_j = set->gain * (energy_j(board, at_s) - energy_j(board, before_s))
                 + (set->offset_w + noise_w(sim, board, COUNTER_NOISE)) * span_s;
    settle_loss(board, at_s);
    double paid_j = fmin(fmax(0, step_j), board->unpaid_loss_j);
    board->unpaid_loss_j -= paid_j;
    step_j = fmax(0, step_j) - paid_j;

    bool frozen = false;
    for (int i = 0; i < sim->fault_count; i++) {
        const struct fault *fault = &sim->faults[i];
        if (fault->kind == FAULT_FREEZE && acts(sim, fault, index, at_s)) {
            frozen = true;
            step_j = fault->loses != 0 ? 0 : step_j;
        }
    }
    board->counter_j += step_j;
    for (int i = 0; i < sim->fault_count; i++) {
        const struct fault *fault = &sim->faults[i];
        if (!happens_between(fault, index, before_s, at_s))
            continue;
        if (fault->kind == FAULT_RESET)
            board->counter_j = 0;
        if (fault->kind == FAULT_ROLLBACK)
            board->counter_j = fmax(0, board->counter_j - fault->amount);
    }
    if (!frozen)
        board->published_counter_j = board->counter_j;
}

void publish(struct simulation *sim, struct board *board, double until_s)
{
    while (tick_time_s(sim, board, board->tick + 1) + board->set.lag_s <= until_s)
        tick(sim, board);
}

void start_sensor(struct simulation *sim, struct board *board)
{
    const struct settings *set = &board->set;
    board->tick = (int64_t)floor((-set->lag_s - set->phase_s - set->jitter_s) / set->period_s) - 1;
    board->tick_s = tick_time_s(sim, board, board->tick);
    board->counter_j = set->counter_start_j + set->gain * energy_j(board, board->tick_s) + set->offset_w * board->tick_s;
    board->published_counter_j = board->counter_j;
    board->power_w = set->gain * mean_w(board, board->tick_s, set->boxcar_s) + set->offset_w;
    board->read_s = -INFINITY;
    publish(sim, board, 0);
}

double average_power_w(struct simulation *sim, const struct board *board)
{
    const struct settings *set = &board->set;
    return fmax(0, set->gain * mean_w(board, board->tick_s, AVERAGE_S) + set->offset_w
                       + noise_w(sim, board, AVERAGE_NOISE));
}

double read_counter_j(struct simulation *sim, struct board *board)
{
    const struct settings *set = &board->set;
    double at_s = now_s(sim);
    bool stale = at_s - board->read_s < set->hold_s;
    settle_loss(board, at_s);
    if (stale && set->hold_loses != 0)
        board->unpaid_loss_j += set->gain * (energy_j(board, at_s) - energy_j(board, board->read_s));
    board->read_s = at_s;
    board->reads += 1;
    if (set->dead_s > 0) {
        board->dead_from_s = at_s;
        board->dead_until_s = at_s - set->dead_s * log(uniform(sim, board, DEAD_TIME, (int64_t)board->reads));
    }
    if (!stale)
        board->read_j = board->published_counter_j;
    return board->read_j;
}
