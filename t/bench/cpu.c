/*
 * `run_cpu PID`: nanoseconds of CPU time that a process has used, by its POSIX CPU-time clock.
 *
 * The clock sums sum_exec_runtime of every thread and of those that have ended, so the difference
 * of two readings misses nothing. /proc/PID/schedstat has the main thread alone, a sum over
 * /proc/PID/task loses what ended threads used, and /proc/PID/stat counts in ticks of 10 ms. A
 * thread that is on a processor now is read as of its last tick, so read when the process is idle.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv)
{
    clockid_t clock;
    struct timespec ts;
    if (argc != 2) {
        fputs("usage: run_cpu PID\n", stderr);
        return 2;
    }
    if (clock_getcpuclockid(atoi(argv[1]), &clock) != 0 || clock_gettime(clock, &ts) != 0) {
        fprintf(stderr, "run_cpu: no process %s\n", argv[1]);
        return 1;
    }
    printf("%lld\n", (long long)ts.tv_sec * 1000000000 + ts.tv_nsec);
    return 0;
}
