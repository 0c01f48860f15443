#include "t/kit/store_children.h"

#include <sys/wait.h>
#include <unistd.h>

struct kit k;

void children_setup(void)
{
    kit_dir(k.dir);
    k.s = NULL;
    k.now = NOW;
}

void children_teardown(void)
{
    kit_close(&k);
}

struct store *store_of(enum store_mode mode, uint64_t map_size, unsigned max_readers)
{
    char why[512];
    struct store *s;
    const struct store_options o = {.dir = k.dir,
                                    .map_size = map_size,
                                    .max_readers = max_readers,
                                    .mode = mode,
                                    .segment_rows = kit_segment_rows,
                                    .ngram_block_shift = kit_ngram_block_shift,
                                    .log_entries = kit_log_entries,
                                    .small_rows = kit_segment_rows != 0};
    enum store_status status = store_open(&o, &s, why, sizeof(why));
    if (status != STORE_OK)
        kit_fail(__FILE__, __LINE__, "store_open", why);
    return s;
}

bool child_start(struct child *c, int *from, int *to)
{
    int up[2], down[2];
    ck_assert_int_eq(pipe(up) | pipe(down), 0);
    c->pid = fork();
    ck_assert_int_ge(c->pid, 0);
    bool inside = c->pid == 0;
    *from = inside ? down[0] : up[0];
    *to = inside ? up[1] : down[1];
    close(inside ? down[1] : up[1]);
    close(inside ? up[0] : down[0]);
    c->from = *from;
    c->to = *to;
    if (inside)
        kit_child();
    return inside;
}

char receive(int fd)
{
    char c = 0;
    return read(fd, &c, 1) == 1 ? c : 0;
}

void send_byte(int fd, char c)
{
    kit_assert(write(fd, &c, 1) == 1);
}

void child_ends_well(const struct child *c)
{
    int status;
    ck_assert_int_eq(waitpid(c->pid, &status, 0), c->pid);
    ck_assert_int_eq(status, 0);
    close(c->from);
    close(c->to);
}

/* incompressible bytes */
struct str large_results(void)
{
    static char results[6000] = {'{'};
    for (size_t i = 1; i < sizeof(results); i++)
        results[i] = (char)((i + 1) * 0x9e3779b97f4a7c15 >> 29);
    return (struct str){results, sizeof(results)};
}

struct store_answer fill(uint64_t w, unsigned *made)
{
    struct store_answer a = {0};
    for (*made = 0; *made < 100000; ++*made) {
        struct store_change c = kit_create_change(w, "https://a.com/page", "a.com");
        a = kit_apply(&k, &c);
        if (a.status != STORE_OK)
            break;
        c = kit_done_change(a.id, 1, 50);
        c.results = large_results();
        struct store_answer done = kit_apply(&k, &c);
        ck_status(done.status, STORE_OK);
    }
    return a;
}
