/* The file of the limiter: what it keeps, and what happens to a damaged one. Notes of keys. */
#include "t/kit/ratelimit.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the file ---- */

START_TEST(the_file_keeps_its_counts)
{
    ck_assert_uint_eq(admitted(window("k", 5, 60), NOW, 3), 3);
    uint64_t salt = ratelimit_salt(rl, "api");
    ratelimit_close(rl);
    open_table(1024, RATELIMIT_KEPT);
    ck_assert_uint_eq(admitted(window("k", 5, 60), NOW, 9), 2);
    ck_assert_uint_eq(ratelimit_salt(rl, "api"), salt);
}
END_TEST

START_TEST(a_file_of_other_geometry_is_recreated)
{
    ck_assert_uint_eq(admitted(window("k", 5, 60), NOW, 3), 3);
    ratelimit_close(rl);
    open_table(4096, RATELIMIT_REMADE);
    ck_assert_uint_eq(admitted(window("k", 5, 60), NOW, 9), 5);
}
END_TEST

static void overwrite(off_t at, const void *bytes, size_t size)
{
    FILE *f = fopen(table_path(), "r+");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fseek(f, at, SEEK_SET), 0);
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    fclose(f);
}

static const struct {
    off_t at;
    const char *bytes;
    size_t size;
} damages[] = {
    {0, "x", 1},
    {8, "\1", 1},
    {16, "\1", 1},
    {24, "\xff\xff\xff\xff\xff\xff\xff\xff", 8},
    {24, "\0\0\0\0\0\0\0\0", 8},
    {32, "\1", 1},
    {40, "\1", 1},
    {48, "\7", 1},
    {56, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16},
};

START_TEST(a_file_with_a_damaged_header_is_recreated)
{
    struct ratelimit *other;
    overwrite(damages[_i].at, damages[_i].bytes, damages[_i].size);
    ck_assert_int_eq(ratelimit_attach(dir, true, &other), EPROTO);
    ratelimit_close(rl);
    open_table(1024, RATELIMIT_REMADE);
    ck_assert_uint_eq(admitted(window("k", 5, 60), NOW, 9), 5);
}
END_TEST

START_TEST(a_short_file_is_recreated)
{
    ck_assert_int_eq(truncate(table_path(), 8192), 0);
    /* its pages past the end are missing: only the first ones are touched again */
    struct ratelimit *whole = rl;
    open_table(1024, RATELIMIT_REMADE);
    ck_assert_uint_eq(admitted(window("k", 5, 60), NOW, 9), 5);
    ratelimit_close(whole);
}
END_TEST

START_TEST(garbage_in_slots_refuses_nobody_for_long)
{
    /*
     * with any bytes there, every decision ends, and a key that starts again has its whole budget
     */
    unsigned char noise[4096];
    struct stat st;
    uint64_t seed = 88172645463325252u;
    ck_assert_int_eq(stat(table_path(), &st), 0);
    ratelimit_close(rl);
    for (off_t at = 4096; at < st.st_size; at += (off_t)sizeof(noise)) {
        for (size_t i = 0; i < sizeof(noise); i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            noise[i] = (unsigned char)(i % 16 >= 12 && seed % 3 == 0 ? 0xff : seed >> 32);
        }
        size_t size =
            st.st_size - at < (off_t)sizeof(noise) ? (size_t)(st.st_size - at) : sizeof(noise);
        overwrite(at, noise, size);
    }
    open_table(1024, RATELIMIT_KEPT);
    for (uint64_t key = 0; key < 3000; key++)
        if (admitted(numbered(&key, 5), NOW, 9) != 5)
            ck_abort_msg("key %llu", (unsigned long long)key);
}
END_TEST

START_TEST(an_attached_table_is_the_same_table)
{
    struct ratelimit *own = rl, *other;
    ck_assert_int_eq(ratelimit_attach(dir, false, &other), 0);
    struct ratelimit_window w = window("k", 5, 60);
    struct ratelimit_state s;
    ck_assert_uint_eq(admitted(w, NOW, 2), 2);
    ck_assert_int_eq(ratelimit_peek(other, &w, 1, NOW, &s), 0);
    ck_assert_uint_eq(s.remaining, 3);
    ratelimit_close(other);
    ck_assert_int_eq(ratelimit_attach("/nonexistent", true, &rl), ENOENT);
    rl = own;
}
END_TEST

START_TEST(the_file_is_private_and_complete)
{
    struct stat st;
    struct ratelimit_usage usage;
    ck_assert_int_eq(stat(table_path(), &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ratelimit_usage(rl, NOW, &usage);
    ck_assert_uint_eq(usage.bytes, (uint64_t)st.st_size);
    ck_assert_uint_ge((uint64_t)st.st_blocks * 512, usage.bytes);
    ck_assert_uint_ge(usage.slots, 1024);
}
END_TEST

/* ---- notes of keys near their limit ---- */

static unsigned noted_count;
static struct ratelimit_noted noted;

static void take_note(void *arg, const struct ratelimit_noted *n)
{
    (void)arg;
    noted_count++;
    noted = *n;
}

START_TEST(notes_name_keys_near_their_limit)
{
    struct ratelimit_window w = window("k", 4, 60);
    admitted(w, NOW, 2);
    ratelimit_note(rl, &w, NOW, "192.0.2.1");
    admitted(w, NOW, 1);
    ratelimit_notes(rl, NOW + 10, take_note, NULL);
    ck_assert_uint_eq(noted_count, 1);
    ck_assert_str_eq(noted.text, "192.0.2.1");
    ck_assert_uint_eq(noted.used, 3);
    ck_assert_uint_eq(noted.limit, 4);
    ck_assert_uint_eq(noted.salt, 7);
    ck_assert_int_eq(noted.reset, NOW + 60);
    ratelimit_note(rl, &w, NOW, "192.0.2.1");
    ratelimit_notes(rl, NOW + 10, take_note, NULL);
    ck_assert_uint_eq(noted_count, 2);
    ratelimit_notes(rl, NOW + 60, take_note, NULL);
    ck_assert_uint_eq(noted_count, 2);
}
END_TEST

START_TEST(notes_count_use_past_a_raised_limit)
{
    struct ratelimit_window w = window("k", 4, 60);
    admitted(w, NOW, 4);
    ratelimit_note(rl, &w, NOW, "192.0.2.1");
    w.limit = 20;
    admitted(w, NOW, 5);
    ratelimit_notes(rl, NOW + 10, take_note, NULL);
    ck_assert_uint_eq(noted_count, 1);
    ck_assert_uint_eq(noted.used, 9);
    ck_assert_uint_eq(noted.limit, 4);
}
END_TEST

START_TEST(notes_are_bounded_and_keep_the_newest)
{
    ratelimit_close(rl);
    open_table(8192, RATELIMIT_REMADE);
    for (uint64_t key = 0; key < 5000; key++) {
        struct ratelimit_window w = numbered(&key, 4);
        char text[200];
        memset(text, 'x', sizeof(text));
        text[199] = '\0';
        admitted(w, NOW, 4);
        ratelimit_note(rl, &w, NOW, text);
    }
    ratelimit_notes(rl, NOW, take_note, NULL);
    ck_assert_uint_gt(noted_count, 900);
    ck_assert_uint_le(noted_count, 1024);
    ck_assert_uint_eq(strlen(noted.text), RATELIMIT_TEXT_MAX);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("ratelimit_file");
    TCase *t = tcase_create("windows");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_file_keeps_its_counts);
    tcase_add_test(t, a_file_of_other_geometry_is_recreated);
    tcase_add_loop_test(t, a_file_with_a_damaged_header_is_recreated, 0,
                        sizeof(damages) / sizeof(damages[0]));
    tcase_add_test(t, a_short_file_is_recreated);
    tcase_add_test(t, garbage_in_slots_refuses_nobody_for_long);
    tcase_add_test(t, an_attached_table_is_the_same_table);
    tcase_add_test(t, the_file_is_private_and_complete);
    tcase_add_test(t, notes_name_keys_near_their_limit);
    tcase_add_test(t, notes_count_use_past_a_raised_limit);
    tcase_add_test(t, notes_are_bounded_and_keep_the_newest);
    suite_add_tcase(s, t);
    return suite_run(s);
}
