#include "t/kit/wall_clock.h"

#include "t/kit/wait.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "t/kit/stepped_clock.so"

#ifdef __has_feature
#define HAS_ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#else
#define HAS_ASAN 0
#endif

bool wall_clock_possible(void)
{
    return !HAS_ASAN;
}

struct wall_clock *wall_clock_new(void)
{
    struct wall_clock *c = calloc(1, sizeof(*c));
    ck_assert_ptr_nonnull(c);
    c->path = text("/tmp/assay-clock-XXXXXX");
    int fd = mkstemp(c->path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, sizeof(*c->offset_ms)), 0);
    ck_assert_int_eq(fchmod(fd, 0644), 0);
    void *map = mmap(NULL, sizeof(*c->offset_ms), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(map, MAP_FAILED);
    close(fd);
    c->offset_ms = map;
    return c;
}

void wall_clock_free(struct wall_clock *c)
{
    if (c == NULL)
        return;
    munmap((void *)c->offset_ms, sizeof(*c->offset_ms));
    unlink(c->path);
    free(c->path);
    free(c);
}

void wall_clock_step(struct wall_clock *c, int64_t ms)
{
    *c->offset_ms = ms;
}

void wall_clock_use(const struct wall_clock *c)
{
    char *library = realpath(LIBRARY, NULL);
    ck_assert_msg(library != NULL, LIBRARY " is missing: run `make " LIBRARY "`");
    setenv("STEPPED_CLOCK", c->path, 1);
    setenv("LD_PRELOAD", library, 1);
    free(library);
}

void wall_clock_leave(void)
{
    unsetenv("STEPPED_CLOCK");
    unsetenv("LD_PRELOAD");
}
