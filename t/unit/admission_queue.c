/* The admission queue: order, bound, timeouts, closed clients. The test sets the clock. */
#include "core/http/admission_queue.h"
#include "core/http/http.h"
#include "core/http/reply.h"

#include "t/kit/suite.h"

static struct {
    unsigned count;
    enum err err;
} replies;

void reply_error(struct request *r, enum err err, const char *format, ...)
{
    (void)r;
    (void)format;
    replies.count++;
    replies.err = err;
}

static struct loop loop = {.now_ms = 1000000};
static struct http http = {.loop = &loop};

#define MANY (ADMISSIONS_QUEUED_MAX + 2)

static struct request *went_on; /* the last admitted request */

static void go_on(struct request *r)
{
    went_on = r;
}

START_TEST(the_queue_is_ordered_and_bounded_and_skips_closed_clients)
{
    static struct request requests[MANY];
    static struct conn conns[MANY];
    static struct admission admitted[MANY], later;
    for (size_t i = 0; i < MANY; i++) {
        requests[i] = (struct request){.http = &http, .wait = {.conn = &conns[i]}};
        ck_assert_uint_eq(replies.count, 0);
        ck_assert_int_eq(admission_take(&admitted[i], &requests[i], go_on), i == 0);
    }
    ck_assert_uint_eq(replies.count, 1); /* one too many */
    ck_assert_int_eq(replies.err, ERR_UNAVAILABLE);
    ck_assert_ptr_null(went_on);
    admission_release(&admitted[MANY - 1]);
    admission_release(&admitted[0]);
    admission_release(&admitted[0]);
    ck_assert_ptr_eq(went_on, &requests[1]);
    admission_release(&admitted[2]); /* its request is cancelled */
    conns[4].hung_up = true;
    admission_queue_tick(&http.admissions, loop.now_ms);
    ck_assert_uint_eq(replies.count, 2);
    admission_release(&admitted[1]);
    ck_assert_ptr_eq(went_on, &requests[3]);
    loop.now_ms += WRITER_ANSWER_MS - 1;
    ck_assert(!admission_take(&later, &requests[0], go_on));
    admission_queue_tick(&http.admissions, loop.now_ms);
    ck_assert_uint_eq(replies.count, 2);
    loop.now_ms++;
    admission_queue_tick(&http.admissions, loop.now_ms);
    ck_assert_uint_eq(replies.count, 2 + ADMISSIONS_QUEUED_MAX - 4);
    ck_assert_ptr_eq(went_on, &requests[3]); /* none of those */
    admission_release(&admitted[3]);
    ck_assert_ptr_eq(went_on, &requests[0]);
    admission_release(&later);
    ck_assert(admission_take(&admitted[1], &requests[1], go_on));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("admission_queue");
    TCase *tcase = tcase_create("admission_queue");
    suite_add_tcase(suite, tcase);
    tcase_add_test(tcase, the_queue_is_ordered_and_bounded_and_skips_closed_clients);
    return suite_run(suite);
}
