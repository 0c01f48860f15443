/*
 * A library for LD_PRELOAD that steps the wall clock of the programs under test. The file named by
 * STEPPED_CLOCK holds an int64_t, milliseconds that are added to the system's clock; the test maps
 * the file and changes it at any time. Monotonic clocks do not change, as when an operator or NTP
 * steps the clock. It makes system calls, because it replaces the C library's functions.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t none;
static const volatile int64_t *offset_ms = &none;

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("STEPPED_CLOCK");
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *map = fd >= 0 ? mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (map == MAP_FAILED)
        _exit(127); /* a test that believes in steps nobody sees would prove nothing */
    close(fd);
    offset_ms = map;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    int result = (int)syscall(SYS_clock_gettime, clock, ts);
    if (result != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
        return result;
    int64_t ms = *offset_ms, nsec = ts->tv_nsec + ms % 1000 * 1000000;
    ts->tv_sec += (time_t)(ms / 1000) + (nsec >= 1000000000) - (nsec < 0);
    ts->tv_nsec = (long)(nsec + (nsec < 0) * 1000000000ll - (nsec >= 1000000000) * 1000000000ll);
    return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    *tv = (struct timeval){.tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *out)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}
