/* A set of simulated NVIDIA boards: what they draw, what their sensors publish, what goes wrong with them.
 *
 *   timeline.c   what a board truly draws, as closed forms over stretches of time
 *   sensor.c     what its sensor makes of that, tick by tick
 *   faults.c     what goes wrong, and when
 *   state.c      the one state of the simulation, its clock and its lock; shared by processes if asked
 *   settings.c   text records into boards and faults
 *   control.c    sim_*: how a test drives all of it
 *   nvml_*.c     nvml*: how everybody else sees it
 *
 * SI units throughout; milliwatts and millijoules exist in nvml_figures.c only. Times are seconds since the start.
 */
#ifndef SIMULATION_H
#define SIMULATION_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

#define MAX_BOARDS 8
#define MAX_FAULTS 128
#define MAX_STRETCHES (1u << 16) /* some 1.2 s of them are looked back at */
#define MAX_JOBS (1u << 14)
#define TEXT_SIZE 96
#define AVERAGE_S 1.0     /* over which average power is taken */
#define PREHISTORY_S 10.0 /* idle before the start, so that sensors have something to look back at */
#define INSTANT_S 1e-9    /* closer moments are the same moment */

struct settings { /* of one board; every number is a double so that one table can name them all */
    char name[TEXT_SIZE], uuid[TEXT_SIZE];
    double architecture, bus, memory_bytes;
    double idle_w, deep_idle_w, limit_w, sm_mhz, memory_mhz, deep_idle_mhz;
    double rise_s, thermal_s, thermal_c_per_w, ambient_c, leakage_w_per_c, leakage_from_c;
    double period_s, boxcar_s, lag_s, phase_s, jitter_s, gain, offset_w, noise_w;
    double sampled;               /* the counter adds up published power instead of integrating */
    double averages;              /* average power is offered, and is what the plain power call answers */
    double instant;               /* instantaneous power is offered as a field */
    double memory_share;          /* of power, published for the memory; 0: not offered */
    double module_w;              /* drawn by the module beside the board; negative: not offered */
    double hold_s, hold_loses;    /* a read sooner than this after another one answers the same */
    double dead_s;                /* after each read, energy of this long (mean, exponential) is never counted */
    double counter_start_j;
    double mig_capacity, mig_slices; /* capacity 0: no MIG; slices 0: MIG is off */
    double context;               /* a process has made a context, which keeps the board in P0 */
};

struct condition { /* power that follows its programme, and temperature that follows power */
    double power_w, temperature_c;
};

enum stretch_kind { IDLE, PART_OF_WORK, WHOLE_REPETITIONS };

struct stretch { /* busy and gap alternate from start to end; a constant one is busy for ever */
    enum stretch_kind kind;
    double start_s, end_s;
    double busy_w, busy_s, gap_w, gap_s;
    double ambient_c, clock_factor;
    struct condition at_start;
    double energy_j;
};

struct job {
    double busy_w, busy_s, gap_w, gap_s, repetitions;
};

struct queue { /* what is still to be done; progress at full clock, within a repetition of the first job */
    uint64_t first, count;
    double repetitions_done, progress_s;
};

struct board {
    struct settings set;
    uint64_t first_stretch, stretch_count;
    struct queue queue;
    double work_end_s;
    bool work_end_known;

    int64_t tick; /* the last one published */
    double tick_s, power_w, counter_j, published_counter_j;
    double read_s, read_j;           /* the last look at the counter */
    double dead_from_s, dead_until_s, unpaid_loss_j;
    uint64_t reads, calls;

    struct stretch stretches[MAX_STRETCHES]; /* two rings */
    struct job jobs[MAX_JOBS];
};

enum fault_kind { FAULT_ERROR, FAULT_RESET, FAULT_ROLLBACK, FAULT_FREEZE, FAULT_THROTTLE, FAULT_FOREIGN, FAULT_AMBIENT };

struct fault {
    char kind_name[TEXT_SIZE], target[TEXT_SIZE]; /* target: an NVML function, "field:186", or "*" */
    double board;                                 /* -1: all, and the library itself */
    double at_s, until_s, after_calls;
    double code, amount, reasons, clock_factor, power_factor, power_w, pid, memory_bytes, loses;
    enum fault_kind kind;
    bool waits_for_calls, happened;
    uint64_t calls_before;
};

struct simulation {
    uint64_t magic;
    pthread_mutex_t lock;
    char driver[TEXT_SIZE];
    double real_time, call_s, seed;
    double virtual_now_s, real_start_s;
    uint64_t calls;
    int board_count, fault_count;
    struct fault faults[MAX_FAULTS];
    struct board boards[MAX_BOARDS];
};

struct surroundings { /* what acts on a board at a moment, until the next of these changes */
    double clock_factor, power_factor, foreign_w, ambient_shift_c, until_s;
    uint64_t reasons;
};

/* state.c */
struct simulation *lock_simulation(void); /* NULL if its state cannot be had or its settings are wrong */
void unlock_simulation(struct simulation *sim);
double now_s(const struct simulation *sim);
double monotonic_s(void);
const char *complaint(void);
int complain(const char *format, ...) __attribute__((format(printf, 1, 2))); /* always -1 */

/* settings.c */
int apply_settings(struct simulation *sim, const char *text); /* starts afresh */
int add_fault(struct simulation *sim, const char *line);

/* timeline.c */
int board_index(const struct simulation *sim, const struct board *board);
void start_timeline(struct simulation *sim, struct board *board);
void settle(struct simulation *sim, struct board *board); /* what is drawn and what is published, up to now */
void cut_timeline(struct simulation *sim, struct board *board); /* what acts on the board changes now */
int queue_job(struct simulation *sim, struct board *board, struct job job);
double work_end_s(struct simulation *sim, struct board *board);
double energy_j(const struct board *board, double at_s);
double power_w(const struct board *board, double at_s);
double temperature_c(const struct board *board, double at_s);
const struct stretch *stretch_at(const struct board *board, double at_s);
bool remembers(const struct board *board, double at_s);

/* sensor.c */
void start_sensor(struct simulation *sim, struct board *board);
void publish(struct simulation *sim, struct board *board, double until_s);
double read_counter_j(struct simulation *sim, struct board *board);
double average_power_w(struct simulation *sim, const struct board *board);

/* faults.c */
void count_call(struct simulation *sim, struct board *board);
int error_of(struct simulation *sim, int board, const char *target); /* an NVML code, 0 if nothing is wrong */
bool acts(const struct simulation *sim, const struct fault *fault, int board, double at_s);
bool happens_between(const struct fault *fault, int board, double after_s, double until_s);
struct surroundings surroundings_at(const struct simulation *sim, int board, double at_s);

#endif
