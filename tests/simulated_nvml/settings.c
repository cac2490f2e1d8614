/* Text into boards and faults. A record is a line, its fields are separated by tabs:
 *
 *     system<TAB>seed=7<TAB>call_s=1e-05
 *     board<TAB>name=NVIDIA H100<TAB>idle_w=70...
 *     fault<TAB>kind=error<TAB>target=nvmlDeviceGetClockInfo<TAB>code=3
 *
 * An unknown key, a value that is not a number, or an impossible setting is an error.
 */
#include "simulation.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct key {
    const char *name;
    size_t offset;
    bool is_text;
};

#define NUMBER(type, field) {#field, offsetof(type, field), false}
#define TEXT(type, field) {#field, offsetof(type, field), true}
#define SET(field) NUMBER(struct settings, field)
#define FAULT(field) NUMBER(struct fault, field)

static const struct key SYSTEM_KEYS[] = {
    TEXT(struct simulation, driver), NUMBER(struct simulation, real_time), NUMBER(struct simulation, call_s),
    NUMBER(struct simulation, seed), {0},
};

static const struct key BOARD_KEYS[] = {
    TEXT(struct settings, name), TEXT(struct settings, uuid), SET(architecture), SET(bus), SET(memory_bytes),
    SET(idle_w), SET(deep_idle_w), SET(limit_w), SET(sm_mhz), SET(memory_mhz), SET(deep_idle_mhz), SET(rise_s),
    SET(thermal_s), SET(thermal_c_per_w), SET(ambient_c), SET(leakage_w_per_c), SET(leakage_from_c), SET(period_s),
    SET(boxcar_s), SET(lag_s), SET(phase_s), SET(jitter_s), SET(gain), SET(offset_w), SET(noise_w), SET(sampled),
    SET(averages), SET(instant), SET(memory_share), SET(module_w), SET(hold_s), SET(hold_loses), SET(dead_s),
    SET(counter_start_j), SET(mig_capacity), SET(mig_slices), SET(context), {0},
};

static const struct key FAULT_KEYS[] = {
    {"kind", offsetof(struct fault, kind_name), true}, TEXT(struct fault, target), FAULT(board), FAULT(at_s),
    FAULT(until_s), FAULT(after_calls), FAULT(code), FAULT(amount), FAULT(reasons), FAULT(clock_factor),
    FAULT(power_factor), FAULT(power_w), FAULT(pid), FAULT(memory_bytes), FAULT(loses), {0},
};

static const char *const KINDS[] = {"error", "reset", "rollback", "freeze", "throttle", "foreign", "ambient"};

static int set_field(const struct key *keys, void *record, const char *name, const char *value)
{
    for (; keys->name != NULL; keys++) {
        char *place = (char *)record + keys->offset, *rest;
        if (strcmp(keys->name, name) != 0)
            continue;
        if (keys->is_text) {
            if (snprintf(place, TEXT_SIZE, "%s", value) >= TEXT_SIZE)
                return complain("%s is longer than %d characters", name, TEXT_SIZE - 1);
            return 0;
        }
        double number = strtod(value, &rest);
        if (rest == value || *rest != '\0' || isnan(number))
            return complain("%s=%s is not a number", name, value);
        memcpy(place, &number, sizeof number);
        return 0;
    }
    return complain("there is no setting %s", name);
}

/* Reads "word<TAB>key=value<TAB>..." into a record; the line is taken apart. */
static int set_fields(const struct key *keys, void *record, char *line)
{
    char *rest = NULL;
    strtok_r(line, "\t", &rest);
    for (char *pair; (pair = strtok_r(NULL, "\t", &rest)) != NULL;) {
        char *value = strchr(pair, '=');
        if (value == NULL)
            return complain("%s has no value", pair);
        *value++ = '\0';
        if (set_field(keys, record, pair, value) != 0)
            return -1;
    }
    return 0;
}

static int check_board(const struct settings *set)
{
    bool good = set->name[0] != '\0' && set->uuid[0] != '\0' && set->idle_w >= 0 && set->deep_idle_w >= 0
                && set->period_s > 0 && set->boxcar_s >= 0 && set->boxcar_s <= 2 && set->lag_s >= 0 && set->lag_s <= 2
                && set->phase_s >= 0 && set->jitter_s >= 0 && set->jitter_s < set->period_s && set->gain > 0
                && set->rise_s >= 0 && set->thermal_s > 4 * set->rise_s && set->thermal_c_per_w >= 0
                && set->thermal_c_per_w * set->leakage_w_per_c < 0.9 && set->noise_w >= 0 && set->hold_s >= 0
                && set->dead_s >= 0 && set->mig_slices <= set->mig_capacity && set->mig_slices < 16
                && set->period_s + set->jitter_s + set->lag_s < PREHISTORY_S / 4;
    return good ? 0 : complain("board %s has settings that cannot be", set->name);
}

static int add_board(struct simulation *sim, char *line)
{
    if (sim->board_count == MAX_BOARDS)
        return complain("there are at most %d boards", MAX_BOARDS);
    struct board *board = &sim->boards[sim->board_count];
    memset(board, 0, offsetof(struct board, stretches));
    if (set_fields(BOARD_KEYS, &board->set, line) != 0 || check_board(&board->set) != 0)
        return -1;
    sim->board_count += 1;
    start_timeline(sim, board);
    start_sensor(sim, board);
    return 0;
}

int add_fault(struct simulation *sim, const char *line)
{
    if (sim->fault_count == MAX_FAULTS)
        return complain("there are at most %d faults", MAX_FAULTS);
    char copy[4096];
    if (snprintf(copy, sizeof copy, "%s", line) >= (int)sizeof copy)
        return complain("a fault has at most %zu characters", sizeof copy);
    struct fault fault = {
        .board = -1, .at_s = -INFINITY, .until_s = INFINITY, .clock_factor = 1, .power_factor = 1};
    if (set_fields(FAULT_KEYS, &fault, copy) != 0)
        return -1;
    size_t kind = 0, kinds = sizeof KINDS / sizeof *KINDS;
    while (kind < kinds && strcmp(KINDS[kind], fault.kind_name) != 0)
        kind++;
    if (kind == kinds || fault.board >= sim->board_count || !(fault.clock_factor > 0) || fault.power_factor < 0)
        return complain("fault %s of board %g cannot be", fault.kind_name, fault.board);
    fault.kind = (enum fault_kind)kind;
    fault.at_s = fmax(fault.at_s, now_s(sim));
    fault.waits_for_calls = fault.after_calls > 0;
    fault.calls_before = fault.board < 0 ? sim->calls : sim->boards[(int)fault.board].calls;
    sim->faults[sim->fault_count++] = fault;
    for (int each = 0; each < sim->board_count; each++)
        cut_timeline(sim, &sim->boards[each]);
    return 0;
}

static int apply_line(struct simulation *sim, char *line)
{
    if (strncmp(line, "system\t", 7) == 0)
        return set_fields(SYSTEM_KEYS, sim, line);
    if (strncmp(line, "board\t", 6) == 0)
        return add_board(sim, line);
    if (strncmp(line, "fault\t", 6) == 0)
        return add_fault(sim, line);
    return complain("a record begins with system, board or fault: %.40s", line);
}

int apply_settings(struct simulation *sim, const char *text)
{
    sim->board_count = sim->fault_count = 0;
    sim->calls = 0;
    sim->real_time = sim->call_s = sim->seed = sim->virtual_now_s = 0;
    sim->real_start_s = monotonic_s();
    snprintf(sim->driver, sizeof sim->driver, "580.65.06");
    char *copy = strdup(text), *rest = NULL;
    int result = copy == NULL ? complain("no memory") : 0;
    for (char *line = strtok_r(copy, "\n", &rest); result == 0 && line != NULL; line = strtok_r(NULL, "\n", &rest))
        result = apply_line(sim, line);
    free(copy);
    return result;
}
