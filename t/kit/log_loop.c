#include "t/kit/log_loop.h"

#include <check.h>
#include <poll.h>
#include <stdio.h>

struct log_loop loop;

void loop_setup(void)
{
    log_double_new();
}

void loop_teardown(void)
{
    if (loop.thread != NULL)
        ck_assert(log_thread_end(loop.thread));
    log_thread_free(loop.thread);
    log_double_free();
}

void loop_start(void)
{
    const struct cluster_log_node node = {
        .id = {1}, .name = "own", .free_bytes = 1, .format = store_rows_formats.newest};
    loop.thread = log_thread_new(log_double(), &node, NULL, true);
    ck_assert_ptr_nonnull(loop.thread);
}

static void apply(const struct log_batch *b)
{
    for (size_t i = 0; i < b->count && loop.verdict == STORE_OK; i++) {
        const struct str rows = log_batch_rows(b, i);
        size_t n = strlen(loop.applied);
        snprintf(loop.applied + n, sizeof(loop.applied) - n, "%.*s ", (int)rows.n, rows.p);
    }
    log_thread_applied(loop.thread, loop.verdict, "the disk is full");
}

void loop_turn(void)
{
    struct pollfd fd = {log_thread_fd(loop.thread), POLLIN, 0};
    if (poll(&fd, 1, 5) <= 0)
        return;
    log_thread_look(loop.thread, &loop.view);
    const struct log_batch *b = log_thread_take(loop.thread);
    if (b != NULL)
        apply(b);
}

static bool state_is(void *arg)
{
    loop_turn();
    return loop.view.state == *(enum log_state *)arg;
}

void loop_expect_state(enum log_state state)
{
    ck_assert_msg(wait_until(state_is, &state, LOOP_MS), "state %d, %s", loop.view.state,
                  loop.view.why);
}

bool loop_has_why(void *arg)
{
    loop_turn();
    return strstr(loop.view.why, arg) != NULL;
}

bool loop_has_no_why(void *arg)
{
    (void)arg;
    loop_turn();
    return loop.view.why[0] == '\0';
}

static bool has_applied(void *arg)
{
    loop_turn();
    return strcmp(loop.applied, arg) == 0;
}

void loop_expect_applied(char *rows)
{
    ck_assert_msg(wait_until(has_applied, rows, LOOP_MS), "applied: %s", loop.applied);
}

static bool is_held(void *arg)
{
    return log_double_is_held(*(enum log_double_call *)arg);
}

void loop_expect_deferred(enum log_double_call call)
{
    ck_assert(wait_until(is_held, &call, LOOP_MS));
}

bool loop_is_wanted(void *arg)
{
    return arg == NULL || (*(int *)arg)-- > 0;
}

struct cluster_log_entry loop_entry(const char *rows)
{
    log_thread_look(loop.thread, &loop.view);
    return (struct cluster_log_entry){
        .at_ms = 1, .format = loop.view.format, .rows = {rows, strlen(rows)}};
}

bool loop_append(const char *rows)
{
    struct store_position after;
    const struct cluster_log_entry entry = loop_entry(rows);
    const uint64_t before = log_double_head().sequence;
    bool good = log_thread_append(loop.thread, &entry, loop_is_wanted, NULL, &after);
    ck_assert(!good || after.sequence == before + 1);
    return good;
}
