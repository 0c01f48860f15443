#include "core/loop/loop_time.h"

void loop_time_start(struct loop_time *t)
{
    *t = (struct loop_time){.read_us = clock_mono_us(), .cpu_us = clock_thread_us()};
}

/* A lower bound, less than 1 ms too low; 0 when the wall clock was set in between. */
static uint64_t since_us(uint64_t polled_ms, uint64_t most_us)
{
    int64_t us = clock_wall_us() - ((int64_t)polled_ms + 1) * 1000;
    return us < 0 || (uint64_t)us > most_us ? 0 : (uint64_t)us;
}

void loop_time_turn(struct loop_time *t, struct score *score, uint64_t polled_ms)
{
    uint64_t now_us = clock_mono_us();
    if (now_us - t->read_us < LOOP_TIME_US)
        return;
    uint64_t cpu_now_us = clock_thread_us(), cpu_us = cpu_now_us - t->cpu_us;
    uint64_t us = since_us(polled_ms, now_us - t->read_us);
    score_raise(&score->longest_cpu_us, cpu_us);
    score_raise(&score->longest_us, us > cpu_us ? us : cpu_us);
    *t = (struct loop_time){.read_us = now_us, .cpu_us = cpu_now_us};
}
