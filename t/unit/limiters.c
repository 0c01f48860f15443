/* The table of limiters, their keys, and the statistics block that activates it. */
#include "core/conf/limiters.h"
#include "core/shm/limiter_stats.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

static struct limiters limits;

static void begin(void)
{
    limiters_defaults(&limits);
}

/* ---- built-in limiters ---- */

static const struct {
    enum limiter limiter;
    const char *name;
    struct limiter_window windows[2];
} seed[] = {
    {LIMITER_WIDGET_INIT, "widget-init", {{1000, 60, BY_IP_AGENT}, {30000, 3600, BY_IP}}},
    {LIMITER_WIDGET_SESSION, "widget-session", {{300, 60, BY_JWT}}},
    {LIMITER_WIDGET_LEADS, "widget-leads", {{30, 60, BY_JWT}}},
    {LIMITER_BULK_SYNC, "bulk-sync", {{60, 60, BY_TOKEN}}},
    {LIMITER_WIDGET_TYPING, "widget-typing", {{600, 60, BY_IP}}},
    {LIMITER_WIDGET_SATISFACTION, "widget-satisfaction", {{60, 60, BY_IP}}},
    {LIMITER_WIDGET_COUPON, "widget-coupon", {{120, 60, BY_IP}}},
    {LIMITER_API, "api", {{0, 60, BY_API_KEY}}},
    {LIMITER_REPORT_PASSWORD, "report-password", {{30, 60, BY_REPORT}, {10, 60, BY_IP}}},
};

START_TEST(the_built_in_limiters_are_the_documented_ones)
{
    const struct limiter_row *row = &limits.rows[seed[_i].limiter];
    ck_assert_uint_eq(limits.count, LIMITERS_BUILT_IN);
    ck_assert_int_eq(COUNT(seed), LIMITERS_BUILT_IN - 1);
    ck_assert_str_eq(row->name, seed[_i].name);
    ck_assert_uint_eq(limiters_find(&limits, seed[_i].name), seed[_i].limiter);
    ck_assert_uint_eq(row->windows_count, seed[_i].windows[1].seconds == 0 ? 1 : 2);
    ck_assert_mem_eq(row->windows, seed[_i].windows, sizeof(seed[_i].windows));
    ck_assert(!row->dry_run);
}
END_TEST

START_TEST(an_unknown_name_is_not_found)
{
    ck_assert_uint_eq(limiters_find(&limits, "inline"), LIMITER_NONE);
    ck_assert_uint_eq(limiters_find(&limits, ""), LIMITER_NONE);
}
END_TEST

/* ---- routes ---- */

static const struct {
    const char *method, *path, *limiter;
} paths[] = {
    {"GET", "/v1/wp/anything/at/all", "bulk-sync"},
    {"POST", "/api/v1/wp/posts/sync", "bulk-sync"},
    {"BREW", "/v1/wp/", "bulk-sync"},
    {"GET", "/v1/wp", ""},
    {"GET", "/v1/wpx", ""},
    {"GET", "/api/v1/reports", "lists"},
    {"HEAD", "/api/v1/reports", "lists"},
    {"POST", "/api/v1/reports", "all"},
    {"GET", "/api/v1/reports/{id}", "below"},
    {"PUT", "/api/v1/reports/{id}", "all"},
    {"GET", "/api/v1/projects", ""},
};

static void add_limiter(const char *name, const char *first, const char *second)
{
    struct limiter_row *row = &limits.rows[limits.count++];
    snprintf(row->name, sizeof(row->name), "%s", name);
    snprintf(row->routes[row->routes_count++], LIMITER_ROUTE_SIZE, "%s", first);
    if (second != NULL)
        snprintf(row->routes[row->routes_count++], LIMITER_ROUTE_SIZE, "%s", second);
}

START_TEST(the_longest_path_wins_then_a_named_method)
{
    add_limiter("all", "* /api/v1/reports*", NULL);
    add_limiter("below", "GET /api/v1/reports/*", NULL);
    add_limiter("lists", "GET /api/v1/reports", "GET /nowhere");
    unsigned found = limiters_of_path(&limits, str_of(paths[_i].method), str_of(paths[_i].path));
    ck_assert_msg(strcmp(limits.rows[found].name, paths[_i].limiter) == 0, "%s %s: %s",
                  paths[_i].method, paths[_i].path, limits.rows[found].name);
}
END_TEST

/* ---- keys ---- */

static struct limiter_key key_of(enum limiter_by by, unsigned prefix, const char *address,
                                 uint64_t id, const char *visitor, const char *agent)
{
    struct ip ip;
    struct limiter_key key;
    ck_assert(ip_parse(address, &ip));
    ck_assert(limiter_key_make(
        by, prefix,
        &(struct limiter_caller){&ip, id, id, (const uint8_t *)visitor, (const uint8_t *)agent, id},
        &key));
    return key;
}

/* Columns: prefix, two addresses, whether they are one caller. */
static const struct {
    unsigned prefix;
    const char *a, *b;
    bool same;
} neighbours[] = {
    {64, "203.0.113.7", "203.0.113.7", true},
    {64, "203.0.113.7", "203.0.113.6", false},
    {64, "203.0.113.7", "::ffff:203.0.113.7", true},
    {64, "203.0.113.7", "::ffff:cb00:7107", true},
    {16, "203.0.113.7", "203.0.113.6", false}, /* the prefix applies to IPv6 only */
    {64, "2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
    {64, "2001:db8:1:2::1", "2001:db8:1:3::1", false},
    /* a dotted quad at the end makes no IPv4 address */
    {64, "2001:db8:1:2::1.2.3.4", "2001:db8:1:2::5.6.7.8", true},
    {56, "2001:db8:1:200::1", "2001:db8:1:2ff::1", true},
    {56, "2001:db8:1:200::1", "2001:db8:1:300::1", false},
    {61, "2001:db8:1:8::", "2001:db8:1:f::", true},
    {61, "2001:db8:1:8::", "2001:db8:1:10::", false},
    {128, "2001:db8::1", "2001:db8::2", false},
    {64, "::1", "::2", true},
    {64, "::cb00:7107", "203.0.113.7", false},
};

START_TEST(addresses_are_distinguished_by_their_prefix)
{
    struct limiter_key a = key_of(BY_IP, neighbours[_i].prefix, neighbours[_i].a, 0, NULL, NULL);
    struct limiter_key b = key_of(BY_IP, neighbours[_i].prefix, neighbours[_i].b, 0, NULL, NULL);
    ck_assert_int_eq(memcmp(&a, &b, sizeof(a)) == 0, neighbours[_i].same);
}
END_TEST

#define VISITOR "visitor-16-bytes"
#define AGENT "agent-of-16-byte"

START_TEST(an_unknown_credential_is_counted_by_address_separately)
{
    struct limiter_key keys[] = {
        key_of(BY_IP, 64, "192.0.2.1", 0, NULL, NULL),
        key_of(BY_API_KEY, 64, "192.0.2.1", 0, NULL, NULL),
        key_of(BY_TOKEN, 64, "192.0.2.1", 0, NULL, NULL),
        key_of(BY_JWT, 64, "192.0.2.1", 0, NULL, NULL),
        key_of(BY_IP_AGENT, 64, "192.0.2.1", 0, NULL, NULL),
        key_of(BY_API_KEY, 64, "192.0.2.1", 7, NULL, NULL),
        key_of(BY_TOKEN, 64, "192.0.2.1", 7, NULL, NULL),
        key_of(BY_REPORT, 64, "192.0.2.1", 7, NULL, NULL),
        key_of(BY_REPORT, 64, "192.0.2.1", 8, NULL, NULL),
        key_of(BY_JWT, 64, "192.0.2.1", 0, VISITOR, AGENT),
        key_of(BY_JWT, 64, "192.0.2.1", 0, AGENT, VISITOR),
        key_of(BY_IP_AGENT, 64, "192.0.2.1", 0, NULL, AGENT),
    };
    for (int i = 0; i < COUNT(keys); i++)
        for (int k = 0; k < i; k++)
            ck_assert_msg(memcmp(&keys[i], &keys[k], sizeof(keys[i])) != 0,
                          "%d and %d have the same key", i, k);
}
END_TEST

START_TEST(a_known_caller_has_one_key_from_every_address)
{
    static const enum limiter_by kinds[] = {BY_API_KEY, BY_TOKEN, BY_JWT, BY_REPORT};
    struct limiter_key here = key_of(kinds[_i], 64, "192.0.2.1", 7, VISITOR, AGENT),
                       there = key_of(kinds[_i], 64, "2001:db8::1", 7, VISITOR, AGENT);
    ck_assert_mem_eq(&here, &there, sizeof(here));
}
END_TEST

START_TEST(a_path_without_a_report_has_no_key_by_report)
{
    struct ip ip;
    struct limiter_key key;
    ck_assert(ip_parse("192.0.2.1", &ip));
    ck_assert(!limiter_key_make(BY_REPORT, 64, &(struct limiter_caller){.ip = &ip}, &key));
}
END_TEST

#define ULID_A "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define ULID_B "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"

/* Columns: kind, text, how it is printed (NULL: not a key of that kind). */
static const struct {
    enum limiter_by by;
    const char *text, *back;
} texts[] = {
    {BY_IP, "203.0.113.7", "203.0.113.7"},
    {BY_IP, "::ffff:203.0.113.7", "203.0.113.7"},
    {BY_IP, "2001:db8:1:2::9", "2001:db8:1:2::/64"},
    {BY_IP, "2001:db8:1:2::/64", "2001:db8:1:2::/64"},
    {BY_IP, "2001:db8:1:2::/63", NULL},
    {BY_IP, "203.0.113.0/24", NULL},
    {BY_IP, "203.0.113.7/-", NULL},
    {BY_IP, "7", NULL},
    {BY_IP, "", NULL},
    {BY_IP_AGENT, "203.0.113.7/-", "203.0.113.7/-"},
    {BY_IP_AGENT, "203.0.113.7/" ULID_A, "203.0.113.7/" ULID_A},
    {BY_IP_AGENT, "203.0.113.7/01arz3ndektsv4rrffq69g5fav", "203.0.113.7/" ULID_A},
    {BY_IP_AGENT, "2001:db8:1:2::/64/" ULID_B, "2001:db8:1:2::/64/" ULID_B},
    {BY_IP_AGENT, "2001:db8:1:2::1/-", "2001:db8:1:2::/64/-"},
    {BY_IP_AGENT, "203.0.113.7", NULL},
    {BY_IP_AGENT, "2001:db8:1:2::/64", NULL},
    {BY_IP_AGENT, "203.0.113.7/", NULL},
    {BY_IP_AGENT, "203.0.113.7/8ZZZZZZZZZZZZZZZZZZZZZZZZZ", NULL}, /* over 128 bits */
    {BY_IP_AGENT, "203.0.113.7/01ARZ3NDEKTSV4RRFFQ69G5FAU", NULL}, /* U is no digit */
    {BY_JWT, ULID_A "/" ULID_B, ULID_A "/" ULID_B},
    {BY_JWT, ULID_A, NULL},
    {BY_JWT, ULID_A "/-", NULL},
    {BY_JWT, "x/" ULID_A, NULL},
    {BY_JWT, "203.0.113.7", "203.0.113.7"},
    {BY_TOKEN, "7", "7"},
    {BY_TOKEN, "18446744073709551615", "18446744073709551615"},
    {BY_TOKEN, "18446744073709551616", NULL},
    {BY_TOKEN, "0", NULL},
    {BY_TOKEN, "-1", NULL},
    {BY_API_KEY, "41", "41"},
    {BY_API_KEY, "2001:db8::1", "2001:db8::/64"},
    {BY_API_KEY, "asy_key_x", NULL},
    {BY_REPORT, "1042", "1042"},
    {BY_REPORT, "0", NULL},
    {BY_REPORT, "203.0.113.7", NULL}, /* no address stands in for a report */
    {BY_REPORT, "2001:db8::1", NULL},
    {BY_REPORT, "-", NULL},
};

START_TEST(keys_are_printed_and_parsed_back)
{
    struct limiter_key key, again;
    char text[LIMITER_TEXT_SIZE];
    ck_assert_msg(limiter_key_parse(texts[_i].by, 64, texts[_i].text, &key) ==
                      (texts[_i].back != NULL),
                  "%s", texts[_i].text);
    if (texts[_i].back == NULL)
        return;
    limiter_key_text(&key, 64, text);
    ck_assert_str_eq(text, texts[_i].back);
    ck_assert(limiter_key_parse(texts[_i].by, 64, text, &again));
    ck_assert_mem_eq(&key, &again, sizeof(key));
}
END_TEST

START_TEST(a_printed_key_is_the_counted_key)
{
    struct limiter_key key, made = key_of(BY_IP, 64, "2001:db8:1:2::9", 0, NULL, NULL);
    ck_assert(limiter_key_parse(BY_IP, 64, "2001:db8:1:2::/64", &key));
    ck_assert_mem_eq(&key, &made, sizeof(key));
    made = key_of(BY_API_KEY, 64, "192.0.2.1", 0, NULL, NULL);
    ck_assert(limiter_key_parse(BY_API_KEY, 64, "192.0.2.1", &key));
    ck_assert_mem_eq(&key, &made, sizeof(key));
}
END_TEST

/* ---- overrides and exemption ---- */

START_TEST(an_override_applies_only_to_its_key_and_window)
{
    char text[32];
    struct limiter_key key;
    for (unsigned i = 0; i < 100; i++) { /* not in the order of their bits */
        struct limiter_override *o = &limits.overrides[limits.overrides_count++];
        *o = (struct limiter_override){.limiter = i % 2 == 0 ? LIMITER_API : LIMITER_WIDGET_TYPING,
                                       .limit = 1000 + i};
        snprintf(text, sizeof(text), "%u", (i * 37) % 100 + 1);
        ck_assert(limiter_key_parse(BY_API_KEY, 64, text, &o->key));
    }
    limiters_sort(&limits);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(text, sizeof(text), "%u", (i * 37) % 100 + 1);
        ck_assert(limiter_key_parse(BY_API_KEY, 64, text, &key));
        ck_assert_uint_eq(limiters_limit(&limits, LIMITER_API, 0, &key), i % 2 == 0 ? 1000 + i : 0);
        ck_assert_uint_eq(limiters_limit(&limits, LIMITER_WIDGET_TYPING, 0, &key),
                          i % 2 == 0 ? 600 : 1000 + i);
        ck_assert_uint_eq(limiters_limit(&limits, LIMITER_WIDGET_INIT, 1, &key), 30000);
    }
}
END_TEST

START_TEST(the_more_specific_key_is_charged_first)
{
    struct limiter_row *row = &limits.rows[LIMITER_API];
    row->windows_count = 3;
    row->windows[0] = (struct limiter_window){5, 3600, BY_IP};
    row->windows[1] = (struct limiter_window){5, 60, BY_IP};
    row->windows[2] = (struct limiter_window){5, 60, BY_IP_AGENT};
    limiters_sort(&limits);
    ck_assert_uint_eq(row->windows[0].by, BY_IP_AGENT);
    ck_assert_uint_eq(row->windows[1].seconds, 60);
    ck_assert_uint_eq(row->windows[2].seconds, 3600);
}
END_TEST

/* ---- limiter statistics ---- */

static char dir[] = "/tmp/assay-limits-XXXXXX", path[64];
static struct limiter_stats *board;

static void open_board(void)
{
    begin();
    strcpy(dir + strlen(dir) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/limits", dir);
    board = limiter_stats_create(path, &limits);
    ck_assert_ptr_nonnull(board);
}

static void close_board(void)
{
    limiter_stats_close(board);
    unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}

START_TEST(another_mapping_reads_published_statistics)
{
    static struct limiters read;
    uint64_t version, later;
    const struct limiter_stats *other = limiter_stats_open(path);
    ck_assert_ptr_nonnull(other);
    ck_assert(limiter_stats_read(other, &read, &version));
    ck_assert_uint_eq(read.rows[LIMITER_API].windows[0].limit, 0);
    limits.rows[LIMITER_API].windows[0].limit = 77;
    limiter_stats_publish(board, &limits);
    ck_assert_uint_ne(limiter_stats_version(other), version);
    ck_assert(limiter_stats_read(other, &read, &later));
    ck_assert_uint_eq(later, limiter_stats_version(other));
    ck_assert_uint_eq(read.rows[LIMITER_API].windows[0].limit, 77);
    limiter_stats_close(other);
}
END_TEST

static unsigned counter_of(const char *name)
{
    int counter = limiter_stats_counter(board, name);
    ck_assert_int_ge(counter, 0);
    return (unsigned)counter;
}

START_TEST(counts_belong_to_a_name_and_outlive_a_reload)
{
    add_limiter("mine", "GET /a", NULL);
    limiter_stats_publish(board, &limits);
    for (unsigned worker = 0; worker < 200; worker++) /* more than the counter rows */
        limiter_stats_count(board, worker, counter_of("mine"), COUNT_REFUSED);
    limits.count--;
    add_limiter("other", "GET /a", NULL);
    limiter_stats_publish(board, &limits); /* in the row that "mine" had */
    ck_assert_uint_eq(limiter_stats_total(board, counter_of("mine"), COUNT_REFUSED), 200);
    ck_assert_uint_eq(limiter_stats_total(board, counter_of("mine"), COUNT_ADMITTED), 0);
    ck_assert_uint_eq(limiter_stats_total(board, counter_of("other"), COUNT_REFUSED), 0);
    limits.count--;
    add_limiter("mine", "GET /a", NULL);
    limiter_stats_publish(board, &limits);
    ck_assert_uint_eq(limiter_stats_total(board, counter_of("mine"), COUNT_REFUSED), 200);
}
END_TEST

START_TEST(names_can_be_added_and_removed_without_end)
{
    char name[16];
    for (unsigned i = 0; i < 5 * LIMITER_STATS_COUNTERS; i++) {
        limiters_defaults(&limits);
        snprintf(name, sizeof(name), "n%u", i);
        add_limiter(name, "GET /a", NULL);
        limiter_stats_publish(board, &limits);
        ck_assert_uint_eq(limiter_stats_total(board, counter_of(name), COUNT_ADMITTED), 0);
        limiter_stats_count(board, i, counter_of(name), COUNT_ADMITTED);
        limiter_stats_count(board, i, counter_of("api"), COUNT_ADMITTED);
    }
    ck_assert_uint_eq(limiter_stats_total(board, counter_of("api"), COUNT_ADMITTED),
                      5 * LIMITER_STATS_COUNTERS);
}
END_TEST

START_TEST(a_few_lines_are_logged_and_the_rest_counted)
{
    unsigned lines = 0;
    int64_t now = 1000 * LIMITER_LOG_SECONDS;
    for (int i = 0; i < 100; i++)
        lines += limiter_stats_may_log(board, 3, now + i % LIMITER_LOG_SECONDS);
    ck_assert_uint_eq(lines, LIMITER_LOG_LINES);
    ck_assert(limiter_stats_may_log(board, 4, now)); /* another limiter's log lines are separate */
    ck_assert_uint_eq(limiter_stats_suppressed(board, 3, now), 0); /* more may come */
    ck_assert_uint_eq(limiter_stats_suppressed(board, 3, now + LIMITER_LOG_SECONDS),
                      100 - LIMITER_LOG_LINES);
    ck_assert_uint_eq(limiter_stats_suppressed(board, 3, now + LIMITER_LOG_SECONDS), 0);
    ck_assert(limiter_stats_may_log(board, 3, now + LIMITER_LOG_SECONDS));
}
END_TEST

START_TEST(a_file_without_statistics_is_refused)
{
    FILE *file = fopen(path, "r+");
    ck_assert_ptr_nonnull(file);
    fputs("else", file);
    fclose(file);
    ck_assert_ptr_null(limiter_stats_open(path));
    ck_assert_int_eq(truncate(path, 100), 0);
    ck_assert_ptr_null(limiter_stats_open(path));
    ck_assert_ptr_null(limiter_stats_open("/nowhere/limits"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limiters");
    TCase *table = tcase_create("table"), *boards = tcase_create("board");
    tcase_add_checked_fixture(table, begin, NULL);
    tcase_add_loop_test(table, the_built_in_limiters_are_the_documented_ones, 0, COUNT(seed));
    tcase_add_test(table, an_unknown_name_is_not_found);
    tcase_add_loop_test(table, the_longest_path_wins_then_a_named_method, 0, COUNT(paths));
    tcase_add_loop_test(table, addresses_are_distinguished_by_their_prefix, 0, COUNT(neighbours));
    tcase_add_test(table, an_unknown_credential_is_counted_by_address_separately);
    tcase_add_loop_test(table, a_known_caller_has_one_key_from_every_address, 0, 4);
    tcase_add_test(table, a_path_without_a_report_has_no_key_by_report);
    tcase_add_loop_test(table, keys_are_printed_and_parsed_back, 0, COUNT(texts));
    tcase_add_test(table, a_printed_key_is_the_counted_key);
    tcase_add_test(table, an_override_applies_only_to_its_key_and_window);
    tcase_add_test(table, the_more_specific_key_is_charged_first);
    suite_add_tcase(suite, table);
    tcase_add_checked_fixture(boards, open_board, close_board);
    tcase_add_test(boards, another_mapping_reads_published_statistics);
    tcase_add_test(boards, counts_belong_to_a_name_and_outlive_a_reload);
    tcase_add_test(boards, names_can_be_added_and_removed_without_end);
    tcase_add_test(boards, a_few_lines_are_logged_and_the_rest_counted);
    tcase_add_test(boards, a_file_without_statistics_is_refused);
    suite_add_tcase(suite, boards);
    return suite_run(suite);
}
