/*
 * A wall clock for programs under test, which the test steps at any time; the test's own clock does
 * not change. Monotonic clocks do not change either. t/kit/stepped_clock.c is preloaded into the
 * programs. A function that fails fails the running test.
 */
#ifndef ASSAY_T_KIT_WALL_CLOCK_H
#define ASSAY_T_KIT_WALL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct wall_clock {
    char *path;
    volatile int64_t *offset_ms; /* from the system's clock */
};

/* wall_clock_possible(): false under a sanitizer, whose runtime must be the first library. */
bool wall_clock_possible(void);

/*
 * wall_clock_new(): a clock that shows the system's time; processes that are forked later share it.
 * wall_clock_free: removes its file. wall_clock_step: the time is that of the system and ${ms}.
 * wall_clock_use: the programs that this process starts have this clock from now on.
 * wall_clock_leave: they have the system's again.
 */
struct wall_clock *wall_clock_new(void);
void wall_clock_free(struct wall_clock *c);
void wall_clock_step(struct wall_clock *c, int64_t ms);
void wall_clock_use(const struct wall_clock *c);
void wall_clock_leave(void);

#endif
