/*
 * The longest turn of a worker's event loop, for `assay stats` and /metrics.
 *
 * longest_cpu_us is CPU time of the loop's thread. Reading that clock is a system call of half a
 * microsecond, so turns that end within LOOP_TIME_US of the last reading are counted together: the
 * figure exceeds the longest turn by less than LOOP_TIME_US.
 *
 * longest_us is wall time since epoll returned, which adds page faults and waits for a processor.
 * libh2o keeps that time in whole milliseconds, so the figure may be up to 1 ms too low, but it is
 * never below longest_cpu_us.
 */
#ifndef ASSAY_LOOP_LOOP_TIME_H
#define ASSAY_LOOP_LOOP_TIME_H

#include "core/shm/scoreboard.h"

#define LOOP_TIME_US 200

struct loop_time {
    uint64_t read_us, cpu_us; /* both clocks when the CPU clock was last read */
};

/* loop_time_start(t): before the first turn. */
void loop_time_start(struct loop_time *t);

/*
 * loop_time_turn(t, score, polled_ms): a turn ends; its epoll_wait returned at ${polled_ms} of the
 * wall clock.
 */
void loop_time_turn(struct loop_time *t, struct score *score, uint64_t polled_ms);

#endif
