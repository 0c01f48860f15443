/* The changes that the writer makes in the background. */
#include "core/writer/maintenance.h"
#include "t/kit/suite.h"

enum { HOUR_MS = 3600000, DAY_MS = 24 * HOUR_MS };

static struct conf conf = {.retention_events_ms = DAY_MS, .retention_conversations_ms = HOUR_MS};
static struct process process = {.conf = &conf};
static struct writer_threads threads;
static struct leading leading = {.leads = true};
static struct batch batch; /* empty after each test */
static struct writer_maintenance maintenance = {.process = &process,
                                                .batch = &batch,
                                                .threads = &threads,
                                                .leading = &leading,
                                                .retaining = RETAIN_EVENTS | RETAIN_CONVERSATIONS};

/* The leader before had a clock that is ahead of that of this node: its records say so. */
START_TEST(retention_goes_by_the_time_of_the_last_records)
{
    leading.at_ms = clock_wall_ms() + 10 * (int64_t)DAY_MS;
    writer_maintenance_add(&maintenance);
    ck_assert_uint_eq(batch.count, 2);
    ck_assert_int_eq(batch.items[0].change.expires_at, leading.at_ms - DAY_MS);
    ck_assert_int_eq(batch.items[1].change.expires_at, leading.at_ms - HOUR_MS);
    batch_free(&batch);
    batch = (struct batch){0};
}
END_TEST

START_TEST(a_node_that_follows_deletes_nothing)
{
    leading.leads = false;
    writer_maintenance_add(&maintenance);
    ck_assert_uint_eq(batch.count, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("writer_maintenance");
    TCase *tcase = tcase_create("writer_maintenance");
    tcase_add_test(tcase, retention_goes_by_the_time_of_the_last_records);
    tcase_add_test(tcase, a_node_that_follows_deletes_nothing);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
