#include "t/kit/ratelimit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char dir[64];
struct ratelimit *rl;

void open_table(uint64_t slots, enum ratelimit_made expected)
{
    enum ratelimit_made made;
    ck_assert_int_eq(ratelimit_open(dir, slots, &made, &rl), 0);
    ck_assert_int_eq(made, expected);
}

void setup(void)
{
    strcpy(dir, "/tmp/assay-ratelimit-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    open_table(1024, RATELIMIT_NEW);
}

const char *table_path(void)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/limits-2", dir);
    return path;
}

void teardown(void)
{
    ratelimit_close(rl);
    unlink(table_path());
    rmdir(dir);
}

struct ratelimit_window window(const char *key, uint32_t limit, uint32_t seconds)
{
    return (struct ratelimit_window){
        .salt = 7, .seconds = seconds, .limit = limit, .key = key, .key_size = strlen(key)};
}

struct ratelimit_window numbered(const uint64_t *key, uint32_t limit)
{
    return (struct ratelimit_window){
        .salt = 9, .seconds = 60, .limit = limit, .key = key, .key_size = sizeof(*key)};
}

int take(const struct ratelimit_window *w, size_t count, int64_t now, struct ratelimit_state *out)
{
    return ratelimit_take(rl, w, count, (struct ratelimit_time){ratelimit_token(rl), now}, out);
}

unsigned admitted(struct ratelimit_window w, int64_t now, unsigned asked)
{
    struct ratelimit_state state;
    unsigned count = 0;
    for (unsigned i = 0; i < asked; i++)
        count += take(&w, 1, now, &state) == 0;
    return count;
}
