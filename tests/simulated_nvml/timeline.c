/* What a board truly draws. Programmed power v(t) is constant in pieces; what is drawn follows it within the
 * rise time r, temperature follows what is drawn within the thermal time, and leakage follows temperature:
 *
 *     r du/dt = v - u        p = u + k (T - T0)        tau dT/dt = ambient + R p - T
 *
 * which with s = tau / (1 - R k) and c = R / (1 - R k) is s dT/dt = floor + c u - T. Over a piece, over whole
 * repetitions of two pieces and for the energy there are closed forms, so a stretch costs the same whether it
 * lasts 20 microseconds or an hour. Energy needs no integral of its own: both equations, integrated, give it
 * from the conditions at either end.
 */
#include "simulation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct thermal {
    double rise_s, settle_s, c_per_w, floor_c, coupling_c_per_w;
};

struct point {
    struct condition condition;
    double energy_j;
};

int board_index(const struct simulation *sim, const struct board *board)
{
    return (int)(board - sim->boards);
}

static struct thermal thermal_of(const struct settings *set, double ambient_c)
{
    double open = 1 - set->thermal_c_per_w * set->leakage_w_per_c;
    struct thermal thermal = {
        .rise_s = set->rise_s,
        .settle_s = set->thermal_s / open,
        .c_per_w = set->thermal_c_per_w / open,
        .floor_c = (ambient_c - set->thermal_c_per_w * set->leakage_w_per_c * set->leakage_from_c) / open,
    };
    thermal.coupling_c_per_w = thermal.c_per_w * thermal.rise_s / (thermal.rise_s - thermal.settle_s);
    return thermal;
}

/* exp(-span / time) - 1 */
static double decayed(double span_s, double time_s)
{
    return time_s > 0 ? expm1(-span_s / time_s) : -1;
}

static struct condition after_piece(const struct thermal *thermal, struct condition from, double v_w, double span_s)
{
    if (span_s <= 0)
        return from;
    double fast = decayed(span_s, thermal->rise_s), slow = decayed(span_s, thermal->settle_s);
    double above_w = from.power_w - v_w;
    double steady_c = thermal->floor_c + thermal->c_per_w * v_w;
    return (struct condition){
        .power_w = v_w + above_w * (1 + fast),
        .temperature_c = from.temperature_c - (steady_c - from.temperature_c) * slow
                         + thermal->coupling_c_per_w * above_w * (fast - slow),
    };
}

/* One repetition is an affine map of the condition; n of them approach its fixed point along two directions. */
static struct condition after_repetitions(const struct thermal *thermal, const struct stretch *stretch, double count)
{
    double span_s = stretch->busy_s + stretch->gap_s;
    struct condition from_zero = after_piece(thermal, (struct condition){0}, stretch->busy_w, stretch->busy_s);
    from_zero = after_piece(thermal, from_zero, stretch->gap_w, stretch->gap_s);
    double fast = decayed(span_s, thermal->rise_s), slow = decayed(span_s, thermal->settle_s);
    double fixed_w = from_zero.power_w / -fast;
    double carried = thermal->coupling_c_per_w * (fast - slow);
    double fixed_c = (carried * fixed_w + from_zero.temperature_c) / -slow;

    double above_w = stretch->at_start.power_w - fixed_w;
    double coupled_c = thermal->coupling_c_per_w * above_w;
    double above_c = stretch->at_start.temperature_c - fixed_c - coupled_c;
    double fast_all = 1 + decayed(count * span_s, thermal->rise_s);
    double slow_all = 1 + decayed(count * span_s, thermal->settle_s);
    return (struct condition){
        .power_w = fixed_w + above_w * fast_all,
        .temperature_c = fixed_c + coupled_c * fast_all + above_c * slow_all,
    };
}

static struct point point_in(const struct board *board, const struct stretch *stretch, double at_s)
{
    const struct settings *set = &board->set;
    struct thermal thermal = thermal_of(set, stretch->ambient_c);
    double since_s = fmax(0, fmin(at_s, stretch->end_s) - stretch->start_s);
    double count = floor(since_s / (stretch->busy_s + stretch->gap_s));
    double rest_s = count > 0 ? fmax(0, since_s - count * (stretch->busy_s + stretch->gap_s)) : since_s;
    double busy_s = fmin(rest_s, stretch->busy_s), gap_s = rest_s - busy_s;

    struct condition from = stretch->at_start;
    double programmed_j = busy_s * stretch->busy_w + gap_s * stretch->gap_w;
    struct condition to = from;
    if (count > 0) {
        to = after_repetitions(&thermal, stretch, count);
        programmed_j += count * (stretch->busy_s * stretch->busy_w + stretch->gap_s * stretch->gap_w);
    }
    to = after_piece(&thermal, to, stretch->busy_w, busy_s);
    to = after_piece(&thermal, to, stretch->gap_w, gap_s);

    double drawn_j = programmed_j - thermal.rise_s * (to.power_w - from.power_w);
    double degree_seconds = thermal.floor_c * since_s + thermal.c_per_w * drawn_j
                            - thermal.settle_s * (to.temperature_c - from.temperature_c);
    double leaked_j = set->leakage_w_per_c * (degree_seconds - set->leakage_from_c * since_s);
    return (struct point){.condition = to, .energy_j = stretch->energy_j + drawn_j + leaked_j};
}

static struct stretch *stretch_number(const struct board *board, uint64_t number)
{
    return (struct stretch *)&board->stretches[(board->first_stretch + number) % MAX_STRETCHES];
}

static struct stretch *last_stretch(const struct board *board)
{
    return stretch_number(board, board->stretch_count - 1);
}

const struct stretch *stretch_at(const struct board *board, double at_s)
{
    uint64_t low = 0, high = board->stretch_count - 1;
    if (stretch_number(board, high)->start_s <= at_s)
        return stretch_number(board, high);
    while (low < high) {
        uint64_t middle = (low + high + 1) / 2;
        if (stretch_number(board, middle)->start_s <= at_s)
            low = middle;
        else
            high = middle - 1;
    }
    return stretch_number(board, low);
}

double energy_j(const struct board *board, double at_s)
{
    return point_in(board, stretch_at(board, at_s), at_s).energy_j;
}

double power_w(const struct board *board, double at_s)
{
    const struct settings *set = &board->set;
    struct condition condition = point_in(board, stretch_at(board, at_s), at_s).condition;
    return condition.power_w + set->leakage_w_per_c * (condition.temperature_c - set->leakage_from_c);
}

double temperature_c(const struct board *board, double at_s)
{
    return point_in(board, stretch_at(board, at_s), at_s).condition.temperature_c;
}

bool remembers(const struct board *board, double at_s)
{
    return at_s >= stretch_number(board, 0)->start_s && at_s <= last_stretch(board)->end_s;
}

static double idle_w(const struct board *board)
{
    return board->set.context != 0 ? board->set.idle_w : board->set.deep_idle_w;
}

void start_timeline(struct simulation *sim, struct board *board)
{
    struct thermal thermal = thermal_of(&board->set, board->set.ambient_c);
    struct stretch *first = &board->stretches[0];
    *first = (struct stretch){
        .kind = IDLE, .start_s = -PREHISTORY_S, .end_s = 0, .busy_w = idle_w(board), .busy_s = INFINITY,
        .ambient_c = board->set.ambient_c, .clock_factor = 1,
        .at_start = {idle_w(board), thermal.floor_c + thermal.c_per_w * idle_w(board)},
    };
    first->energy_j = -point_in(board, first, 0).energy_j;
    board->stretch_count = 1;
    (void)sim;
}

/* Takes off the queue what a stretch has done: whole repetitions, or some of one. */
static void credit(const struct board *board, struct queue *queue, const struct stretch *done)
{
    const struct job *job = &board->jobs[queue->first % MAX_JOBS];
    double span_s = done->end_s - done->start_s;
    if (done->kind == IDLE)
        return;
    if (done->kind == WHOLE_REPETITIONS) {
        queue->repetitions_done += round(span_s / (done->busy_s + done->gap_s));
    } else {
        bool in_gap = queue->progress_s >= job->busy_s;
        double goal_s = in_gap ? job->busy_s + job->gap_s : job->busy_s;
        queue->progress_s += span_s * (in_gap ? 1 : done->clock_factor);
        if (queue->progress_s >= goal_s - INSTANT_S)
            queue->progress_s = goal_s;
        if (queue->progress_s >= job->busy_s + job->gap_s) {
            queue->progress_s = 0;
            queue->repetitions_done += 1;
        }
    }
    if (queue->repetitions_done >= job->repetitions) {
        queue->repetitions_done = 0;
        queue->first += 1;
        queue->count -= 1;
    }
}

static double under(const struct board *board, const struct surroundings *around, double work_w)
{
    double idle = idle_w(board);
    return idle + (work_w - idle) * around->power_factor + around->foreign_w;
}

/* Fills in the work that starts where next starts and that fits before its end. */
static void plan_work(
    const struct board *board, const struct queue *queue, const struct surroundings *around, struct stretch *next)
{
    const struct job *job = &board->jobs[queue->first % MAX_JOBS];
    double room_s = next->end_s - next->start_s;
    double repetition_s = job->busy_s / around->clock_factor + job->gap_s;
    double left = job->repetitions - queue->repetitions_done;
    double fitting = fmin(left, floor((room_s + INSTANT_S) / repetition_s));
    next->busy_w = under(board, around, job->busy_w);
    next->gap_w = under(board, around, job->gap_w);
    if (queue->progress_s == 0 && fitting >= 1) {
        next->kind = WHOLE_REPETITIONS;
        next->busy_s = job->busy_s / around->clock_factor;
        next->gap_s = job->gap_s;
        next->end_s = next->start_s + fitting * repetition_s;
        return;
    }
    bool in_gap = queue->progress_s >= job->busy_s;
    double needed_s = in_gap ? job->busy_s + job->gap_s - queue->progress_s
                             : (job->busy_s - queue->progress_s) / around->clock_factor;
    next->kind = PART_OF_WORK;
    next->busy_w = in_gap ? next->gap_w : next->busy_w;
    next->end_s = next->start_s + fmin(needed_s, room_s);
}

/* What is done from a moment on, until it ends or something else begins to act, or until limit_s. */
static struct stretch planned(
    const struct simulation *sim, const struct board *board, const struct queue *queue, double from_s, double limit_s)
{
    struct surroundings around = surroundings_at(sim, board_index(sim, board), from_s);
    struct stretch next = {
        .kind = IDLE, .start_s = from_s, .end_s = fmin(limit_s, around.until_s),
        .busy_w = idle_w(board) + around.foreign_w, .busy_s = INFINITY,
        .ambient_c = board->set.ambient_c + around.ambient_shift_c, .clock_factor = around.clock_factor,
    };
    if (queue->count > 0)
        plan_work(board, queue, &around, &next);
    return next;
}

/* Sensors look back; what they have not published yet must not be forgotten. */
static void forget_first(const struct simulation *sim, struct board *board)
{
    const struct settings *set = &board->set;
    double needed_s = AVERAGE_S + set->boxcar_s + set->lag_s + 2 * set->period_s;
    if (stretch_number(board, 1)->start_s > last_stretch(board)->end_s - needed_s) {
        fprintf(stderr, "board %d: more than %u stretches of work within %g s\n", board_index(sim, board),
                MAX_STRETCHES, needed_s);
        abort();
    }
    board->first_stretch += 1;
    board->stretch_count -= 1;
}

static void append(struct simulation *sim, struct board *board, double limit_s)
{
    struct stretch *last = last_stretch(board);
    struct stretch next = planned(sim, board, &board->queue, last->end_s, limit_s);
    struct point end = point_in(board, last, last->end_s);
    next.at_start = end.condition;
    next.energy_j = end.energy_j;
    if (board->stretch_count == MAX_STRETCHES)
        forget_first(sim, board);
    board->stretch_count += 1;
    *last_stretch(board) = next;
    publish(sim, board, fmin(next.start_s, now_s(sim)));
}

void settle(struct simulation *sim, struct board *board)
{
    double until_s = now_s(sim);
    while (last_stretch(board)->end_s <= until_s) {
        credit(board, &board->queue, last_stretch(board));
        append(sim, board, INFINITY);
    }
    publish(sim, board, until_s);
}

void cut_timeline(struct simulation *sim, struct board *board)
{
    settle(sim, board);
    double cut_s = now_s(sim);
    struct stretch *last = last_stretch(board);
    double repetition_s = last->busy_s + last->gap_s;
    double kept_s = cut_s - last->start_s;
    if (last->kind == WHOLE_REPETITIONS)
        kept_s = floor(kept_s / repetition_s) * repetition_s;
    last->end_s = last->start_s + fmax(0, kept_s);
    if (kept_s > 0)
        credit(board, &board->queue, last);
    else
        board->stretch_count -= 1;
    while (last_stretch(board)->end_s < cut_s - INSTANT_S) {
        append(sim, board, cut_s);
        credit(board, &board->queue, last_stretch(board));
    }
    append(sim, board, INFINITY);
    board->work_end_known = false;
}

int queue_job(struct simulation *sim, struct board *board, struct job job)
{
    settle(sim, board);
    if (board->queue.count == MAX_JOBS)
        return complain("more than %u jobs wait for one board", MAX_JOBS);
    board->jobs[(board->queue.first + board->queue.count) % MAX_JOBS] = job;
    board->queue.count += 1;
    board->work_end_known = false;
    if (board->queue.count == 1)
        cut_timeline(sim, board);
    return 0;
}

double work_end_s(struct simulation *sim, struct board *board)
{
    settle(sim, board);
    if (board->queue.count == 0)
        return now_s(sim);
    if (!board->work_end_known) {
        struct queue queue = board->queue;
        struct stretch step = *last_stretch(board);
        credit(board, &queue, &step);
        while (queue.count > 0) {
            step = planned(sim, board, &queue, step.end_s, INFINITY);
            credit(board, &queue, &step);
        }
        board->work_end_s = step.end_s;
        board->work_end_known = true;
    }
    return board->work_end_s;
}
