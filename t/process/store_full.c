/* A full store: what it refuses, and the space that it keeps for deletes. */
#include "t/kit/store_children.h"

#include <fcntl.h>
#include <unistd.h>

START_TEST(a_full_store_refuses_only_creates)
{
    unsigned made, again;
    k.s = store_of(STORE_WRITE, 8 << 20, 16);
    uint64_t w = kit_workspace(&k, "acme");
    kit_key(&k, w, 1);
    uint64_t waiting = kit_create(&k, w, "https://a.com/", "a.com");
    struct store_answer a = fill(w, &made);
    ck_status(a.status, STORE_FULL);
    ck_assert_uint_gt(made, 100);
    ck_assert_ptr_nonnull(strstr(store_why(k.s), "map"));
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    ck_assert_uint_ge(u.space.used_bytes * 100, u.space.map_bytes * 94);
    store_read_end(k.s);
    char hash[32] = {9};
    ck_status(
        kit_status(&k, &(struct store_change){.kind = CHANGE_WORKSPACE_CREATE, .name = STR("b")}),
        STORE_FULL);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_KEY_CREATE,
                                                    .workspace = w,
                                                    .hash = {hash, 32}}),
              STORE_FULL);
    struct store_change c = {.kind = CHANGE_REPORT_UPDATE,
                             .workspace = w,
                             .id = waiting + 1,
                             .fields = CHANGE_REGENERATE};
    ck_status(kit_status(&k, &c), STORE_FULL);
    c = kit_done_change(waiting, 1, 77);
    ck_status(kit_status(&k, &c), STORE_OK);
    c = (struct store_change){.kind = CHANGE_REPORT_UPDATE,
                              .workspace = w,
                              .id = waiting,
                              .fields = CHANGE_HAS_PRIVACY,
                              .privacy = 1};
    ck_status(kit_status(&k, &c), STORE_OK);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_KEY_REVOKE, .id = 1}), STORE_OK);
    ck_status(kit_report(k.s, w, waiting, NULL), STORE_OK);
    store_read_end(k.s);
    ck_status(
        kit_status(&k,
                   &(struct store_change){.kind = CHANGE_PROJECT_DELETE, .workspace = w, .id = 1}),
        STORE_OK);
    kit_purge(&k, 20);
    kit_check_clean(k.s);
    a = fill(w, &again);
    ck_status(a.status, STORE_FULL);
    ck_assert_uint_gt(again, made / 2);
    kit_check_clean(k.s);
}
END_TEST

/*
 * Finish every report with large results, several per transaction. Returns how many found the store
 * full.
 */
static unsigned finish_all(const uint64_t *ids, unsigned count, unsigned at_once)
{
    unsigned refused = 0;
    for (unsigned i = 0; i < count;) {
        struct store_txn *t;
        ck_status(store_begin(k.s, &t), STORE_OK);
        for (unsigned end = i + at_once; i < end && i < count; i++) {
            struct store_answer answer = {0};
            struct store_change c = kit_done_change(ids[i], 1, 50);
            c.results = large_results();
            store_apply(t, &c, k.now, &answer);
            refused += answer.status == STORE_FULL;
        }
        /* none filled the map within the transaction */
        ck_status(store_commit(t), STORE_OK);
    }
    return refused;
}

/* changes per transaction */
static const unsigned bursts[] = {1, 7, 400};

START_TEST(a_burst_of_results_leaves_space_for_deletes)
{
    enum { WAITING = 400 };
    uint64_t waiting[WAITING];
    unsigned made;
    k.s = store_of(STORE_WRITE, 8 << 20, 16);
    uint64_t w = kit_workspace(&k, "acme");
    kit_key(&k, w, 1);
    for (unsigned i = 0; i < WAITING; i++)
        waiting[i] = kit_create(&k, w, "https://a.com/", "a.com");
    ck_status(fill(w, &made).status, STORE_FULL);
    unsigned refused = finish_all(waiting, WAITING, bursts[_i]);
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_lt(refused, WAITING);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_KEY_REVOKE, .id = 1}), STORE_OK);
    for (uint64_t id = waiting[WAITING - 1] + 1; id <= waiting[WAITING - 1] + made; id++)
        ck_status(
            kit_status(
                &k, &(struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id}),
            STORE_OK);
    ck_assert_uint_eq(finish_all(waiting, WAITING, 1), 0);
    kit_check_clean(k.s);
}
END_TEST

static const char *long_url(unsigned seed)
{
    static char url[1400];
    memset(url, 'u', sizeof(url) - 1);
    url[snprintf(url, sizeof(url), "https://a.com/%u/", seed)] = 'u';
    return url;
}

/* Create ${count} reports in one transaction; returns how many are stored. */
static unsigned create_burst(uint64_t w, unsigned count)
{
    struct store_txn *t;
    struct store_answer a;
    unsigned made = 0;
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (unsigned i = 0; i < count && store_txn_error(t) == STORE_OK; i++) {
        struct store_change c = kit_create_change(w, long_url(i), "a.com");
        store_apply(t, &c, k.now, &a);
        made += a.status == STORE_OK;
    }
    return store_commit(t) == STORE_OK ? made : 0;
}

static enum store_status delete_report(uint64_t w, uint64_t id)
{
    return kit_status(
        &k, &(struct store_change){.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id});
}

/* creates per transaction */
static const unsigned create_bursts[] = {1, 30, 60, 100};

START_TEST(a_burst_of_creates_leaves_space_for_deletes)
{
    uint64_t last = 0;
    unsigned made;
    k.s = store_of(STORE_WRITE, 4 << 20, 16);
    uint64_t w = kit_workspace(&k, "acme");
    for (unsigned count = create_bursts[_i]; count > 0; count -= made == 0) {
        made = create_burst(w, count);
        last += made;
    }
    ck_assert_uint_gt(last, 400);
    for (uint64_t id = 1; id <= last; id++)
        ck_status(delete_report(w, id), STORE_OK);
    kit_check_clean(k.s);
}
END_TEST

static void read_until_told(int from, int to)
{
    struct store *s = store_of(STORE_READ, 0, 0);
    ck_status(kit_get_workspace(s, 1, NULL), STORE_OK); /* its snapshot stays open */
    send_byte(to, 'r');
    receive(from);
    store_read_end(s);
    send_byte(to, 'e');
    receive(from);
    _exit(0);
}

START_TEST(deletes_on_a_full_store_continue_after_the_end_of_a_snapshot)
{
    struct child c;
    int from, to;
    unsigned made;
    uint64_t id = 1;
    k.s = store_of(STORE_WRITE, 4 << 20, 16);
    uint64_t w = kit_workspace(&k, "acme");
    ck_status(fill(w, &made).status, STORE_FULL);
    store_close(k.s);
    k.s = NULL;
    if (child_start(&c, &from, &to))
        read_until_told(from, to);
    ck_assert_int_eq(receive(c.from), 'r');
    k.s = store_of(STORE_WRITE, 4 << 20, 16);
    while (id < made && delete_report(w, id) == STORE_OK)
        id++;
    ck_assert_uint_lt(id, made);
    ck_assert(store_release_pages(k.s));
    ck_status(delete_report(w, id), STORE_FULL);
    send_byte(c.to, 'e');
    ck_assert_int_eq(receive(c.from), 'e');
    while (delete_report(w, id) != STORE_OK)
        ck_assert(store_release_pages(k.s));
    for (id++; id <= made; id++)
        ck_status(delete_report(w, id), STORE_OK);
    send_byte(c.to, 's');
    child_ends_well(&c);
    kit_check_clean(k.s);
}
END_TEST

/* An error makes a report's record longer: these records then need a page of their own. */
START_TEST(failed_results_on_a_full_store_leave_space_for_deletes)
{
    char url[1900], message[300];
    uint64_t last = 0;
    k.s = store_of(STORE_WRITE, 16 << 20, 16);
    uint64_t w = kit_workspace(&k, "acme");
    memset(url, 'u', sizeof(url));
    memcpy(url, "https://a.com/", 14);
    url[sizeof(url) - 1] = '\0';
    memset(message, 'm', sizeof(message));
    struct store_change c = kit_create_change(w, url, "a.com");
    for (struct store_answer a; (a = kit_apply(&k, &c)).status == STORE_OK;)
        last = a.id;
    ck_assert_uint_gt(last, 1000);
    c = kit_failed_change(1, 1);
    c.error_message = (struct str){message, sizeof(message)};
    while (c.id <= last && kit_status(&k, &c) == STORE_OK)
        c.id++;
    ck_assert_uint_gt(c.id, 1);
    for (uint64_t id = 1; id <= last; id++) {
        const struct store_change gone = {.kind = CHANGE_REPORT_DELETE, .workspace = w, .id = id};
        ck_status(kit_status(&k, &gone), STORE_OK);
    }
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_transaction_larger_than_the_map_stays_full_and_leaves_nothing)
{
    struct store_txn *t;
    struct store_answer a = {0};
    char hash[2048];
    k.s = store_of(STORE_WRITE, 2 << 20, 16);
    uint64_t w = kit_workspace(&k, "acme");
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (int i = 0; i < 5000 && store_txn_error(t) == STORE_OK; i++) {
        struct store_change c = kit_create_change(w, "https://a.com/page", "a.com");
        store_apply(t, &c, NOW, &a);
        if (a.status == STORE_FULL)
            continue;
        c = kit_done_change(a.id, 1, 50);
        c.results = large_results();
        store_apply(t, &c, NOW, &a);
    }
    ck_status(a.status, STORE_FULL);
    /* A change of existing records is allowed, and longer hashes grow it beyond the map. */
    memset(hash, 'h', sizeof(hash));
    for (uint64_t id = 1; id <= 5000 && store_txn_error(t) == STORE_OK; id++)
        store_apply(t,
                    &(struct store_change){.kind = CHANGE_REPORT_UPDATE,
                                           .workspace = w,
                                           .id = id,
                                           .fields = CHANGE_HAS_PRIVACY | CHANGE_HAS_PASSWORD,
                                           .privacy = PRIVACY_PASSWORD,
                                           .hash = {hash, sizeof(hash)}},
                    NOW, &a);
    ck_status(store_txn_error(t), STORE_FULL);
    struct store_change c = kit_create_change(w, "https://a.com/page", "a.com");
    store_apply(t, &c, NOW, &a);
    ck_status(a.status, STORE_FULL);
    ck_status(store_commit(t), STORE_FULL);
    size_t count;
    store_events(k.s, &count);
    ck_assert_uint_eq(count, 0);
    struct store_workspace got;
    ck_status(kit_get_workspace(k.s, w, &got), STORE_OK);
    ck_assert_uint_eq(got.reports, 0);
    ck_assert_uint_eq(kit_create(&k, w, "https://a.com/", "a.com"), 1);
    kit_check_clean(k.s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_full");
    TCase *tc = tcase_create("processes");
    tcase_add_checked_fixture(tc, children_setup, children_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_full_store_refuses_only_creates);
    tcase_add_loop_test(tc, a_burst_of_results_leaves_space_for_deletes, 0,
                        sizeof(bursts) / sizeof(bursts[0]));
    tcase_add_loop_test(tc, a_burst_of_creates_leaves_space_for_deletes, 0,
                        sizeof(create_bursts) / sizeof(create_bursts[0]));
    tcase_add_test(tc, deletes_on_a_full_store_continue_after_the_end_of_a_snapshot);
    tcase_add_test(tc, failed_results_on_a_full_store_leave_space_for_deletes);
    tcase_add_test(tc, a_transaction_larger_than_the_map_stays_full_and_leaves_nothing);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
