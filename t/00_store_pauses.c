/*
 * Searches among texts that are nearly the needle at each of their letters: each takes long, so wherever they lie a list pauses between some of
 * them, and ends with the answer that it has without pauses.
 */
#include "t/00_store_kit.h"

enum { LETTERS = 80, ROWS = 100, OTHERS = 600, AT_ONCE = 4 }; /* so many rows with so many letters may be looked at in one go */

static struct kit k;
static uint64_t w;
static char near[1024], needle[2 * LETTERS + 3];

static void setup(void)
{
    kit_segment_rows = 1024;
    kit_chunk_shift = 10;
    kit_log_entries = 512;
    kit_open(&k);
    w = kit_workspace(&k, "acme");
    strcpy(near, "https://a.test/");
    needle[0] = '\0';
    for (int i = 0; i < LETTERS; i++) {
        strcat(near, "%d0%b1");
        strcat(needle, "\xD0\xB1");
    }
    strcat(needle, "\xD0\xB0");
}

static void teardown(void)
{
    kit_close(&k);
    kit_segment_rows = kit_chunk_shift = kit_log_entries = 0;
}

/* Every other one has the needle; the others have a letter between what is nearly it and its last. */
static uint64_t create_near(unsigned i, const char *project)
{
    char url[1100];
    snprintf(url, sizeof(url), "%s%s/%u", near, i % 2 == 0 ? "%d0%90" : "/%d0%90", i);
    return kit_create(&k, w, url, project);
}

static bool pause_always(void *arg)
{
    (void)arg;
    return true;
}

static struct store_list_query query(void)
{
    return (struct store_list_query){.workspace = w, .sort = REPORT_BY_ID, .page = 1, .per_page = 10, .search = str_of(needle), .pause = pause_always};
}

/* Turns until the list is there, which has so many in all. */
static unsigned turns_to(const struct store_list_query *q, uint64_t total)
{
    unsigned turns = 1;
    struct kit_list l = kit_reports(k.s, q);
    for (; l.status == STORE_AGAIN && turns < 2000; turns++) {
        store_read_end(k.s);
        l = kit_reports(k.s, q);
    }
    ck_status(l.status, STORE_OK);
    ck_assert_uint_eq(l.total, total);
    store_read_end(k.s);
    return turns;
}

/* Columns: of how many rows one is nearly the needle; with one in two, all rows of the chunk are looked at. */
static const unsigned one_in[] = {6, 2, 1};

START_TEST(a_search_of_a_chunk_goes_on_at_the_row_before_which_it_paused)
{
    unsigned among = one_in[_i];
    for (unsigned i = 0; i < ROWS * among; i++)
        if (i % among == 0)
            create_near(i / among, "a.test");
        else
            kit_create(&k, w, "https://a.test/other", "a.test");
    for (unsigned i = ROWS * among; i < OTHERS; i++)
        kit_create(&k, w, "https://a.test/other", "a.test");
    kit_purge(&k, 1000);
    struct store_list_query q = query();
    ck_assert_uint_ge(turns_to(&q, ROWS / 2), ROWS / AT_ONCE);
    ck_assert_uint_eq(turns_to(&q, ROWS / 2), 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store pauses");
    TCase *tc = tcase_create("pauses");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, a_search_of_a_chunk_goes_on_at_the_row_before_which_it_paused, 0, (int)(sizeof(one_in) / sizeof(*one_in)));
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
