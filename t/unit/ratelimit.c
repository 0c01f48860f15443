/*
 * The limiter in one process, with the time as an argument: windows, keys, and a full table. Links
 * only libratelimit.a and Check.
 */
#include "t/kit/ratelimit.h"

#include <check.h>
#include <stdio.h>

START_TEST(the_limit_is_admitted_and_reported)
{
    struct ratelimit_window w = window("a", 3, 60);
    struct ratelimit_state s;
    for (uint32_t left = 3; left-- > 0;) {
        ck_assert_int_eq(take(&w, 1, NOW + 5, &s), 0);
        ck_assert_uint_eq(s.limit, 3);
        ck_assert_uint_eq(s.remaining, left);
        ck_assert_int_eq(s.reset, NOW + 60);
        ck_assert_uint_eq(s.near, left == 2 ? 0 : 1); /* the second one reaches half of three */
    }
    ck_assert_int_eq(take(&w, 1, NOW + 59, &s), 1);
    ck_assert_uint_eq(s.remaining, 0);
    ck_assert_int_eq(s.reset, NOW + 60);
    ck_assert_uint_eq(s.near, 0);
    ck_assert_uint_eq(admitted(w, NOW + 60, 5), 3);
}
END_TEST

static const struct {
    int64_t first, then; /* seconds from the start of a window of 60 */
    bool same_window;
    const char *why;
} clocks[] = {
    {0, 59, true, "the window's last second"},
    {0, 60, false, "the next window"},
    {59, 60, false, "the next window begins at once"},
    {60, 59, true, "a clock that lags a second adopts the window that has begun"},
    {60, 58, true, "two seconds are adopted, too"},
    {60, 57, false, "three are a clock that was stepped back"},
    {3600, 0, false, "back by an hour: a window of its own"},
    {-3600, 0, false, "forward by an hour"},
    {86400 * 400, 0, false, "back by more than a year"},
};

START_TEST(windows_follow_the_clock)
{
    /* the second key meets a table to which the first one has given the time */
    struct ratelimit_window keys[2] = {window("leads", 100, 60), window("follows", 100, 60)};
    for (int i = 0; i < 2; i++)
        ck_assert_uint_eq(admitted(keys[i], NOW + clocks[_i].first, 2), 2);
    for (int i = 0; i < 2; i++)
        ck_assert_msg(admitted(keys[i], NOW + clocks[_i].then, 120) ==
                          (clocks[_i].same_window ? 98 : 100),
                      "%s", clocks[_i].why);
}
END_TEST

START_TEST(nobody_is_locked_out_longer_than_a_window_and_two_seconds)
{
    /*
     * saturated at NOW, then the clock steps by any amount: within 62 s of its own time there is a
     * budget again
     */
    static const int64_t steps[] = {-1, -2, -3, -59, -60,  -61,   -3600, -86400,
                                    1,  2,  3,  61,  3600, 86400, 0};
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        char key[24];
        snprintf(key, sizeof(key), "step%zu", i);
        struct ratelimit_window w = window(key, 5, 60);
        ck_assert_uint_eq(admitted(w, NOW, 9), 5);
        int64_t waited = 0;
        while (admitted(w, NOW + steps[i] + waited, 1) == 0)
            waited++;
        ck_assert_msg(waited <= 62, "step %lld: refused for %lld s", (long long)steps[i],
                      (long long)waited);
    }
}
END_TEST

START_TEST(a_time_from_before_a_clock_jump_is_refused)
{
    struct ratelimit_window w = window("k", 3, 60);
    struct ratelimit_state s;
    struct ratelimit_time old = {ratelimit_token(rl), NOW};
    ck_assert_uint_eq(admitted(w, NOW - 3600, 1), 1);
    ck_assert_int_eq(ratelimit_take(rl, &w, 1, old, &s), -1);
    old.token = ratelimit_token(rl);
    ck_assert_uint_eq(admitted(w, NOW, 1), 1);
    ck_assert_int_eq(ratelimit_take(rl, &w, 1, old, &s), -1);
}
END_TEST

START_TEST(a_time_from_before_a_clock_jump_is_refused_for_a_live_key)
{
    static const uint32_t limits[] = {100, 4, 2, 1}; /* used a little, a quarter, half, all */
    struct ratelimit_state s;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct ratelimit_window w = window("k", limits[i], 60 + (uint32_t)i);
        ck_assert_uint_eq(admitted(w, NOW, 1), 1);
        struct ratelimit_time old = {ratelimit_token(rl), NOW};
        ck_assert_uint_eq(admitted(window("other", 100, 60), NOW - 3600, 1), 1);
        ck_assert_int_eq(ratelimit_take(rl, &w, 1, old, &s), -1);
    }
}
END_TEST

START_TEST(a_stale_time_is_refused)
{
    /* the process slept for three seconds after it read the clock: others are in a later window */
    struct ratelimit_window w = window("k", 3, 60);
    struct ratelimit_state s;
    ck_assert_uint_eq(admitted(w, NOW + 58, 3), 3);
    struct ratelimit_time old = {ratelimit_token(rl), NOW + 58};
    for (int64_t t = 59; t <= 61; t++)
        ck_assert_uint_eq(admitted(w, NOW + t, 1), t >= 60);
    ck_assert_int_eq(ratelimit_take(rl, &w, 1, old, &s), -1);
    ck_assert_uint_eq(admitted(w, NOW + 61, 3), 1);
}
END_TEST

START_TEST(refused_request_charges_no_window)
{
    struct ratelimit_window both[2] = {window("agent", 10, 60), window("address", 4, 3600)};
    struct ratelimit_state s;
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(take(both, 2, NOW, &s), 0);
    for (int i = 0; i < 50; i++) {
        ck_assert_int_eq(take(both, 2, NOW, &s), 1);
        ck_assert_uint_eq(s.window, 1);
        ck_assert_int_eq(s.reset, NOW + 3600);
    }
    ck_assert_uint_eq(admitted(both[0], NOW, 20), 6);
}
END_TEST

START_TEST(refused_request_makes_no_slot)
{
    /* charging the first window and refunding it would block another request for that moment */
    struct ratelimit_window both[2] = {window("agent", 10, 60), window("address", 1, 3600)};
    struct ratelimit_usage usage;
    struct ratelimit_state s;
    ck_assert_uint_eq(admitted(both[1], NOW, 1), 1);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(take(both, 2, NOW, &s), 1);
    ratelimit_usage(rl, NOW, &usage);
    ck_assert_uint_eq(usage.used, 1);
}
END_TEST

START_TEST(headers_describe_the_window_with_the_fewest_remaining)
{
    struct ratelimit_window both[2] = {window("narrow", 3, 60), window("wide", 5, 3600)};
    struct ratelimit_state s;
    ck_assert_int_eq(take(both, 2, NOW, &s), 0);
    ck_assert_uint_eq(s.window, 0);
    ck_assert_uint_eq(s.limit, 3);
    ck_assert_uint_eq(s.remaining, 2);
    ck_assert_uint_eq(admitted(both[1], NOW, 3), 3);
    ck_assert_int_eq(ratelimit_peek(rl, both, 2, NOW, &s), 0);
    ck_assert_uint_eq(s.window, 1);
    ck_assert_uint_eq(s.remaining, 1);
    ck_assert_int_eq(take(both, 2, NOW, &s), 0);
    ck_assert_int_eq(take(both, 2, NOW, &s), 1);
    ck_assert_uint_eq(s.window, 1);
}
END_TEST

START_TEST(the_later_reset_counts_when_two_windows_refuse)
{
    struct ratelimit_window both[2] = {window("k", 2, 3600), window("k", 2, 60)};
    struct ratelimit_state s;
    ck_assert_uint_eq(admitted(both[0], NOW, 2), 2);
    ck_assert_uint_eq(admitted(both[1], NOW, 2), 2);
    ck_assert_int_eq(take(both, 2, NOW, &s), 1);
    ck_assert_int_eq(s.reset, NOW + 3600);
    struct ratelimit_window turned[2] = {both[1], both[0]};
    ck_assert_int_eq(take(turned, 2, NOW, &s), 1);
    ck_assert_int_eq(s.reset, NOW + 3600);
}
END_TEST

START_TEST(a_changed_limit_applies_at_once)
{
    ck_assert_uint_eq(admitted(window("k", 10, 60), NOW, 8), 8);
    struct ratelimit_state s;
    struct ratelimit_window less = window("k", 5, 60), more = window("k", 20, 60);
    ck_assert_int_eq(take(&less, 1, NOW, &s), 1);
    ck_assert_uint_eq(s.remaining, 0);
    ck_assert_uint_eq(admitted(more, NOW, 50), 12);
}
END_TEST

START_TEST(keys_limiters_and_lengths_are_counted_separately)
{
    struct ratelimit_window w = window("k", 1, 60), other = w;
    ck_assert_uint_eq(admitted(w, NOW, 2), 1);
    other.salt = 8;
    ck_assert_uint_eq(admitted(other, NOW, 2), 1);
    other = w;
    other.seconds = 120;
    ck_assert_uint_eq(admitted(other, NOW, 2), 1);
    ck_assert_uint_eq(admitted(window("k2", 1, 60), NOW, 2), 1);
    ck_assert_uint_eq(admitted(window("", 1, 60), NOW, 2), 1);
    ck_assert_uint_ne(ratelimit_salt(rl, "a"), ratelimit_salt(rl, "b"));
}
END_TEST

START_TEST(a_saved_hash_is_the_same_key)
{
    struct ratelimit_window w = window("k", 3, 60), kept = {.salt = 7, .seconds = 60, .limit = 3};
    kept.hash = ratelimit_hash(rl, &w);
    ck_assert_uint_eq(admitted(w, NOW, 2), 2);
    ck_assert_uint_eq(admitted(kept, NOW, 2), 1);
}
END_TEST

START_TEST(an_expected_key_is_the_same_key)
{
    unsigned char key[RATELIMIT_KEY_MAX];
    for (unsigned char i = 0; i < sizeof(key); i++)
        key[i] = (unsigned char)(i * 37 + 1);
    for (size_t size = 0; size <= RATELIMIT_KEY_MAX; size++) {
        struct ratelimit_window w = {.salt = 7,
                                     .seconds = 60,
                                     .limit = 3,
                                     .key = key,
                                     .key_size = size},
                                expected = w;
        ratelimit_prefetch(rl, &expected);
        ck_assert_uint_eq(expected.hash, ratelimit_hash(rl, &w));
        expected.key = NULL;
        ck_assert_uint_eq(admitted(expected, NOW, 2), 2);
        ck_assert_uint_eq(admitted(w, NOW, 2), 1);
    }
}
END_TEST

START_TEST(a_reset_restores_the_current_window)
{
    struct ratelimit_window w = window("k", 3, 60);
    ck_assert(!ratelimit_reset(rl, &w, NOW));
    ck_assert_uint_eq(admitted(w, NOW, 5), 3);
    ck_assert(ratelimit_reset(rl, &w, NOW));
    ck_assert(!ratelimit_reset(rl, &w, NOW));
    ck_assert_uint_eq(admitted(w, NOW, 5), 3);
}
END_TEST

START_TEST(a_peek_charges_nothing_and_creates_nothing)
{
    struct ratelimit_window w = window("k", 3, 60);
    struct ratelimit_state s;
    struct ratelimit_usage usage;
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(ratelimit_peek(rl, &w, 1, NOW, &s), 0);
    ck_assert_uint_eq(s.remaining, 3);
    ratelimit_usage(rl, NOW, &usage);
    ck_assert_uint_eq(usage.used, 0);
    ck_assert_uint_eq(admitted(w, NOW, 5), 3);
    ck_assert_int_eq(ratelimit_peek(rl, &w, 1, NOW, &s), 1);
    ratelimit_usage(rl, NOW, &usage);
    ck_assert_uint_eq(usage.used, 1);
    ratelimit_usage(rl, NOW + 60, &usage);
    ck_assert_uint_eq(usage.used, 0);
}
END_TEST

/* ---- a table with many keys ---- */

START_TEST(the_table_holds_its_configured_number_of_keys)
{
    ratelimit_close(rl);
    open_table(65536, RATELIMIT_REMADE);
    struct ratelimit_usage usage;
    for (uint64_t key = 0; key < 65536; key++)
        ck_assert_uint_eq(admitted(numbered(&key, 2), NOW, 1), 1);
    ratelimit_usage(rl, NOW, &usage);
    ck_assert_uint_eq(usage.evicted_alive, 0);
    ck_assert_uint_gt(usage.used, 64000); /* from a sample */
    ck_assert_uint_lt(usage.used, 67000);
    for (uint64_t key = 0; key < 65536; key++)
        if (admitted(numbered(&key, 2), NOW, 3) != 1)
            ck_abort_msg("key %llu lost its count", (unsigned long long)key);
}
END_TEST

START_TEST(ended_windows_are_reused_without_eviction)
{
    struct ratelimit_usage usage;
    for (uint64_t key = 0; key < 1024; key++)
        admitted(numbered(&key, 100), NOW, 1);
    for (uint64_t key = 5000; key < 6024; key++)
        admitted(numbered(&key, 100), NOW + 63, 1);
    ratelimit_usage(rl, NOW + 63, &usage);
    ck_assert_uint_eq(usage.evicted_alive, 0);
    ck_assert_uint_eq(usage.used, 1024);
}
END_TEST

START_TEST(windows_of_a_clock_far_ahead_are_reused_without_eviction)
{
    struct ratelimit_usage usage;
    for (uint64_t key = 0; key < 1024; key++)
        admitted(numbered(&key, 100), NOW + 86400 * 400, 1);
    for (uint64_t key = 5000; key < 6024; key++)
        admitted(numbered(&key, 100), NOW, 1);
    ratelimit_usage(rl, NOW, &usage);
    ck_assert_uint_eq(usage.evicted_alive, 0);
    ck_assert_uint_eq(usage.used, 1024);
}
END_TEST

START_TEST(usage_and_evictions_are_reported_by_tag)
{
    struct ratelimit_usage usage;
    struct ratelimit_state s;
    for (uint64_t key = 0; key < 6000; key++) { /* three times the number of slots */
        struct ratelimit_window w = numbered(&key, 100);
        w.tag = key < 600 ? 63 : 5;
        ck_assert_int_eq(take(&w, 1, NOW, &s), 0);
    }
    ratelimit_usage(rl, NOW, &usage);
    ck_assert_uint_eq(usage.used_by[63] + usage.used_by[5], usage.used);
    ck_assert_uint_eq(usage.used_by[63] + usage.evicted_by[63], 600);
    ck_assert_uint_eq(usage.used_by[5] + usage.evicted_by[5], 5400);
    ck_assert_uint_gt(usage.evicted_by[63], 0);
    ck_assert_uint_eq(usage.evicted_by[63] + usage.evicted_by[5], usage.evicted_alive);
}
END_TEST

START_TEST(a_key_is_counted_under_its_latest_tag)
{
    struct ratelimit_window w = window("k", 100, 60);
    struct ratelimit_usage usage;
    for (unsigned tag = 1; tag < 4; tag++) {
        w.tag = tag;
        ck_assert_uint_eq(admitted(w, NOW, 2), 2);
        ratelimit_usage(rl, NOW, &usage);
        ck_assert_uint_eq(usage.used_by[tag], 1);
        ck_assert_uint_eq(usage.used, 1);
    }
}
END_TEST

START_TEST(saturated_keys_survive_a_flood_of_cold_keys)
{
    /* a quarter of the slots, so that no neighbourhood is completely saturated */
    struct ratelimit_usage usage;
    ratelimit_usage(rl, NOW, &usage);
    uint64_t hot = usage.slots / 4;
    for (uint64_t key = 0; key < hot; key++)
        ck_assert_uint_eq(admitted(numbered(&key, 5), NOW, 9), 5);
    for (uint64_t key = 1000000; key < 1200000; key++)
        admitted(numbered(&key, 5), NOW, 1);
    for (uint64_t key = 0; key < hot; key++)
        if (admitted(numbered(&key, 5), NOW, 1) != 0)
            ck_abort_msg("saturated key %llu was evicted", (unsigned long long)key);
    ratelimit_usage(rl, NOW, &usage);
    ck_assert_uint_gt(usage.evicted_alive, 100000);
}
END_TEST

START_TEST(saturated_keys_of_a_small_limit_survive_colder_keys)
{
    struct ratelimit_usage usage;
    ratelimit_usage(rl, NOW, &usage);
    uint64_t hot = usage.slots / 8, lost = 0;
    for (uint64_t key = 0; key < hot; key++)
        ck_assert_uint_eq(admitted(numbered(&key, 9), NOW, 20), 9);
    for (uint64_t key = 1000000; key < 1030000; key++)
        admitted(numbered(&key, 1000), NOW, 20);
    for (uint64_t key = 0; key < hot; key++)
        lost += admitted(numbered(&key, 9), NOW, 1);
    ck_assert_uint_eq(lost, 0);
}
END_TEST

START_TEST(the_colder_of_two_keys_is_evicted)
{
    /* every slot: half of them used twice of a hundred, half once; as many new keys arrive */
    struct ratelimit_usage usage;
    ratelimit_usage(rl, NOW, &usage);
    uint64_t half = usage.slots / 8, lost = 0;
    for (uint64_t key = 0; key < half; key++)
        admitted(numbered(&key, 100), NOW, 2);
    for (uint64_t key = 1000000; key < 1000000 + 40 * half; key++)
        admitted(numbered(&key, 100), NOW, 1);
    for (uint64_t key = 0; key < half; key++)
        lost += admitted(numbered(&key, 100), NOW, 100) != 98;
    ck_assert_uint_eq(lost, 0);
}
END_TEST

START_TEST(a_table_of_saturated_keys_accepts_a_new_key)
{
    uint64_t key;
    for (key = 0; key < 20000; key++)
        ck_assert_uint_eq(admitted(numbered(&key, 1), NOW, 1), 1);
    ck_assert_uint_eq(admitted(numbered(&key, 3), NOW, 9), 3);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ratelimit");
    TCase *t = tcase_create("windows");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_limit_is_admitted_and_reported);
    tcase_add_loop_test(t, windows_follow_the_clock, 0, sizeof(clocks) / sizeof(clocks[0]));
    tcase_add_test(t, nobody_is_locked_out_longer_than_a_window_and_two_seconds);
    tcase_add_test(t, a_time_from_before_a_clock_jump_is_refused);
    tcase_add_test(t, a_time_from_before_a_clock_jump_is_refused_for_a_live_key);
    tcase_add_test(t, a_stale_time_is_refused);
    tcase_add_test(t, refused_request_charges_no_window);
    tcase_add_test(t, refused_request_makes_no_slot);
    tcase_add_test(t, headers_describe_the_window_with_the_fewest_remaining);
    tcase_add_test(t, the_later_reset_counts_when_two_windows_refuse);
    tcase_add_test(t, a_changed_limit_applies_at_once);
    tcase_add_test(t, keys_limiters_and_lengths_are_counted_separately);
    tcase_add_test(t, a_saved_hash_is_the_same_key);
    tcase_add_test(t, an_expected_key_is_the_same_key);
    tcase_add_test(t, a_reset_restores_the_current_window);
    tcase_add_test(t, a_peek_charges_nothing_and_creates_nothing);
    tcase_add_test(t, the_table_holds_its_configured_number_of_keys);
    tcase_add_test(t, ended_windows_are_reused_without_eviction);
    tcase_add_test(t, windows_of_a_clock_far_ahead_are_reused_without_eviction);
    tcase_add_test(t, usage_and_evictions_are_reported_by_tag);
    tcase_add_test(t, a_key_is_counted_under_its_latest_tag);
    tcase_add_test(t, saturated_keys_survive_a_flood_of_cold_keys);
    tcase_add_test(t, saturated_keys_of_a_small_limit_survive_colder_keys);
    tcase_add_test(t, the_colder_of_two_keys_is_evicted);
    tcase_add_test(t, a_table_of_saturated_keys_accepts_a_new_key);
    suite_add_tcase(s, t);
    return suite_run(s);
}
