#include "core/writer/threads.h"

#include <sys/epoll.h>

bool writer_threads_start(struct writer_threads *t, struct store *store)
{
    t->answers = follower_thread_new(store);
    t->merge = t->answers == NULL ? NULL : merge_thread_new(store);
    return t->merge != NULL;
}

static bool watch(struct writer_threads *t, int epoll, const struct background_thread *thread)
{
    struct epoll_event waits = {.events = EPOLLIN, .data.ptr = &t->change_waits};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, thread->event_fd, &waits) == 0;
}

bool writer_threads_watch(struct writer_threads *t, int epoll)
{
    return watch(t, epoll, follower_thread_base(t->answers)) &&
           watch(t, epoll, merge_thread_base(t->merge));
}

void writer_threads_wake_answers(struct writer_threads *t)
{
    background_thread_wake(follower_thread_base(t->answers));
}

void writer_threads_wake_merge(struct writer_threads *t)
{
    background_thread_wake(merge_thread_base(t->merge));
}

static void on_done(void *arg, const struct item *item)
{
    background_thread_done(arg, &item->answer);
}

static void take(struct background_thread *thread, struct batch *batch, uint64_t limit)
{
    struct store_change change;
    if (!background_thread_take(thread, &change))
        return;
    if (change.limit == 0)
        change.limit = limit;
    struct item *item = batch_add(batch, NULL, 0);
    item->change = change;
    item->done = on_done;
    item->done_arg = thread;
}

void writer_threads_take(struct writer_threads *t, struct batch *batch, uint64_t limit)
{
    if (!t->change_waits)
        return;
    t->change_waits = false;
    take(follower_thread_base(t->answers), batch, limit);
    take(merge_thread_base(t->merge), batch, limit);
}

bool writer_threads_end(struct writer_threads *t)
{
    return follower_thread_end(t->answers) && merge_thread_end(t->merge);
}

void writer_threads_free(struct writer_threads *t)
{
    follower_thread_free(t->answers);
    merge_thread_free(t->merge);
}
