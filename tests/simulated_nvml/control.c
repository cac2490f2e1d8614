/* How a test drives the simulation. What fails answers -1 (or NaN), and sim_complaint says why. */
#include "simulation.h"

#include <math.h>
#include <time.h>

static struct board *board_of(struct simulation *sim, int index)
{
    if (index >= 0 && index < sim->board_count)
        return &sim->boards[index];
    complain("there is no board %d", index);
    return NULL;
}

EXPORT const char *sim_complaint(void)
{
    return complaint();
}

EXPORT int sim_configure(const char *text)
{
    struct simulation *sim = lock_simulation();
    if (sim == NULL)
        return -1;
    int result = apply_settings(sim, text);
    unlock_simulation(sim);
    return result;
}

EXPORT int sim_fault(const char *line)
{
    struct simulation *sim = lock_simulation();
    if (sim == NULL)
        return -1;
    int result = add_fault(sim, line);
    unlock_simulation(sim);
    return result;
}

EXPORT void sim_clear_faults(void)
{
    struct simulation *sim = lock_simulation();
    if (sim == NULL)
        return;
    for (int i = 0; i < sim->board_count; i++)
        settle(sim, &sim->boards[i]);
    sim->fault_count = 0;
    for (int i = 0; i < sim->board_count; i++)
        cut_timeline(sim, &sim->boards[i]);
    unlock_simulation(sim);
}

EXPORT double sim_now_s(void)
{
    struct simulation *sim = lock_simulation();
    if (sim == NULL)
        return NAN;
    double now = now_s(sim);
    unlock_simulation(sim);
    return now;
}

EXPORT int sim_is_real_time(void)
{
    struct simulation *sim = lock_simulation();
    if (sim == NULL)
        return -1;
    int real = sim->real_time != 0;
    unlock_simulation(sim);
    return real;
}

EXPORT int sim_board_count(void)
{
    struct simulation *sim = lock_simulation();
    if (sim == NULL)
        return -1;
    int count = sim->board_count;
    unlock_simulation(sim);
    return count;
}

/* Until this moment; at once if it has passed. In real time that is sleeping. */
EXPORT void sim_pass_until(double until_s)
{
    struct simulation *sim = lock_simulation();
    if (sim == NULL)
        return;
    double left_s = until_s - now_s(sim);
    bool real = sim->real_time != 0;
    if (!real && left_s > 0)
        sim->virtual_now_s = until_s;
    unlock_simulation(sim);
    if (real && left_s > 0) {
        struct timespec rest = {.tv_sec = (time_t)left_s, .tv_nsec = (long)((left_s - floor(left_s)) * 1e9)};
        nanosleep(&rest, NULL);
    }
}

static int launch(struct simulation *sim, struct board *board, struct job job)
{
    job.gap_w = isnan(job.gap_w) ? board->set.idle_w : job.gap_w;
    if (job.busy_s >= 1e-7 && job.gap_s >= 0 && job.busy_w >= 0 && job.gap_w >= 0 && job.repetitions >= 1)
        return queue_job(sim, board, job);
    return complain("work lasts at least 0.1 us, draws no negative power and is done at least once");
}

/* NaN for the power of gaps means idle. */
EXPORT int sim_launch(int index, double busy_w, double busy_s, double gap_w, double gap_s, double repetitions)
{
    struct simulation *sim = lock_simulation();
    if (sim == NULL)
        return -1;
    struct board *board = board_of(sim, index);
    int result = board == NULL ? -1 : launch(sim, board, (struct job){busy_w, busy_s, gap_w, gap_s, repetitions});
    unlock_simulation(sim);
    return result;
}

/* When the board will have done all that it was given; now if it has. */
EXPORT double sim_work_end_s(int index)
{
    struct simulation *sim = lock_simulation();
    if (sim == NULL)
        return NAN;
    struct board *board = board_of(sim, index);
    double end_s = board == NULL ? NAN : work_end_s(sim, board);
    unlock_simulation(sim);
    return end_s;
}

/* A context keeps a board in P0; without one it falls back to its deepest idle state. */
EXPORT int sim_set_context(int index, int open)
{
    struct simulation *sim = lock_simulation();
    if (sim == NULL)
        return -1;
    struct board *board = board_of(sim, index);
    if (board != NULL) {
        settle(sim, board);
        board->set.context = open != 0;
        cut_timeline(sim, board);
    }
    unlock_simulation(sim);
    return board == NULL ? -1 : 0;
}

static double truth(int index, double at_s, double (*figure)(const struct board *, double))
{
    struct simulation *sim = lock_simulation();
    if (sim == NULL)
        return NAN;
    double value = NAN;
    struct board *board = board_of(sim, index);
    if (board != NULL) {
        settle(sim, board);
        at_s = isnan(at_s) ? now_s(sim) : at_s;
        if (at_s <= now_s(sim) && remembers(board, at_s))
            value = figure(board, at_s);
        else
            complain("%g s has not come yet, or is long past", at_s);
    }
    unlock_simulation(sim);
    return value;
}

/* NaN for the moment means now. */
EXPORT double sim_true_energy_j(int index, double at_s)
{
    return truth(index, at_s, energy_j);
}

EXPORT double sim_true_power_w(int index, double at_s)
{
    return truth(index, at_s, power_w);
}

EXPORT double sim_true_temperature_c(int index, double at_s)
{
    return truth(index, at_s, temperature_c);
}

EXPORT double sim_calls(int index)
{
    struct simulation *sim = lock_simulation();
    if (sim == NULL)
        return NAN;
    struct board *board = index < 0 ? NULL : board_of(sim, index);
    double calls = board != NULL ? (double)board->calls : index < 0 ? (double)sim->calls : NAN;
    unlock_simulation(sim);
    return calls;
}

/* As a process does that dies at the wrong moment. */
EXPORT void sim_abandon_lock(void)
{
    (void)lock_simulation();
}
