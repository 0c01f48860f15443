/*
 * What workers ask Redis and how they read it, without a Redis: keys, the command of a decision,
 * its answer, stored counts, leases, and the files of secrets; a node's part of a limit when Redis
 * does not answer. t/cluster/limits.c has a Redis.
 */
#include "core/limits/fallback.h"
#include "core/limits/lease.h"
#include "t/kit/suite.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <sys/stat.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const uint8_t secret[SECRET_FILE_KEY] = {1, 2, 3};
static struct redis_keys keys;
static const struct ratelimit_window windows[] = {
    {.seconds = 60, .limit = 10, .key = "a", .key_size = 1},
    {.seconds = 3600, .limit = 100, .key = "b", .key_size = 1},
};

static void setup(void)
{
    ck_assert(redis_keys_make("assay", secret, &keys));
}

/* ---- keys ---- */

START_TEST(a_key_names_limiter_and_window_and_hides_the_caller)
{
    char key[REDIS_KEY_SIZE], other[REDIS_KEY_SIZE];
    struct ratelimit_window window = windows[0];
    size_t n = redis_keys_of(&keys, "api", &window, key);
    ck_assert_uint_eq(n, strlen(key));
    ck_assert_uint_eq(n, strlen("assay:{api}:60:0123456789abcdef"));
    ck_assert_int_eq(strncmp(key, "assay:{api}:60:", 15), 0);
    window.limit = 11;
    redis_keys_of(&keys, "api", &window, other);
    ck_assert_str_eq(key, other);
    window.key = "b";
    redis_keys_of(&keys, "api", &window, other);
    ck_assert_str_ne(key, other);
    struct redis_keys foreign;
    uint8_t changed[SECRET_FILE_KEY] = {1, 2, 4};
    ck_assert(redis_keys_make("assay", changed, &foreign));
    redis_keys_of(&foreign, "api", &windows[0], other);
    ck_assert_str_ne(key, other);
    ck_assert_str_ne(keys.fingerprint, foreign.fingerprint);
}
END_TEST

#define HEX16 "0123456789abcDEF"

static void write_key_file(char *path, const char *text)
{
    int fd = mkstemp(path);
    ck_assert(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

/* By openssl dgst -sha256 -mac HMAC -macopt hexkey:KEY of "assay: limits in Redis" */
START_TEST(without_a_key_file_of_its_own_the_key_is_derived_from_the_clusters)
{
    static const uint8_t derived[] = {0x9e, 0xd5, 0x7a, 0x75, 0xa5, 0x7e, 0x5d, 0x61,
                                      0x4b, 0x8b, 0x14, 0xf6, 0x41, 0x63, 0xe0, 0xd8};
    char shared[] = "/tmp/assay-secret-XXXXXX", own[] = "/tmp/assay-secret-XXXXXX", why[256] = "";
    struct redis_keys read;
    write_key_file(shared, HEX16 HEX16 HEX16 HEX16 "\n");
    write_key_file(own, HEX16 HEX16 HEX16 "0123456789abcdee\n");
    struct conf conf = {.redis_prefix = (char[]){"assay"},
                        .redis_key_file = (char[]){""},
                        .cluster_log = (char[]){"host=127.0.0.1"},
                        .cluster_key_file = shared};
    ck_assert_msg(redis_keys_read(&conf, &read, why, sizeof(why)), "%s", why);
    ck_assert_mem_eq(read.siphash, derived, sizeof(derived));
    ck_assert_str_eq(read.option, "cluster.key_file");
    ck_assert_str_eq(read.prefix, "assay");
    conf.redis_key_file = own;
    ck_assert_msg(redis_keys_read(&conf, &read, why, sizeof(why)), "%s", why);
    ck_assert_mem_ne(read.siphash, derived, sizeof(derived));
    ck_assert_str_eq(read.option, "limits.redis.key_file");
    unlink(own);
    ck_assert(!redis_keys_read(&conf, &read, why, sizeof(why)));
    ck_assert(strncmp(why, own, strlen(own)) == 0 && strstr(why, ": No such file") != NULL);
    unlink(shared);
}
END_TEST

/* ---- without Redis ---- */

/*
 * Columns: limits.redis.nodes, cluster.log, the number of nodes in shared memory, a limit, the part
 * of this node.
 */
static const struct {
    unsigned option;
    char *log;
    uint64_t nodes;
    uint32_t limit, part;
} parts[] = {
    {CONF_NODES_AUTO, "", 0, 30, 30},
    {CONF_NODES_AUTO, "", 3, 30, 30},
    {3, "", 0, 30, 10},
    {CONF_NODES_AUTO, "x", 3, 30, 10},
    {CONF_NODES_AUTO, "x", 3, 32, 10},
    {CONF_NODES_AUTO, "x", 1, 30, 30},
    {CONF_NODES_AUTO, "x", 3, 2, 1},
    {CONF_NODES_AUTO, "x", 0, 30, 1}, /* the table was never read */
    {2, "x", 3, 30, 15},              /* the option wins */
    {2, "x", 0, 30, 15},
};

START_TEST(a_node_admits_its_part_of_a_limit)
{
    struct cluster_score score = {0};
    struct conf conf = {.redis_nodes = parts[_i].option, .cluster_log = parts[_i].log};
    cluster_score_publish(&score, &(struct cluster_view){.nodes = parts[_i].nodes});
    ck_assert_uint_eq(fallback_limit(parts[_i].limit, fallback_nodes(&conf, &score)),
                      parts[_i].part);
}
END_TEST

/* ---- the command and its answer ---- */

START_TEST(a_command_has_a_key_and_two_numbers_for_each_window)
{
    static const char sha[] = "0123456789012345678901234567890123456789";
    struct decision_command c;
    decision_make(&keys, sha, "widget-init", windows, 2, 5, &c);
    static const char *const words[] = {"EVALSHA", sha,  "2",  NULL,   NULL,
                                        "5",       "60", "10", "3600", "100"};
    ck_assert_int_eq(c.argc, COUNT(words));
    for (size_t i = 0; i < COUNT(words); i++) {
        ck_assert_uint_eq(c.lengths[i], strlen(c.argv[i]));
        ck_assert(words[i] == NULL || strcmp(c.argv[i], words[i]) == 0);
    }
    ck_assert_int_eq(strncmp(c.argv[3], "assay:{widget-init}:60:", 23), 0);
    ck_assert_int_eq(strncmp(c.argv[4], "assay:{widget-init}:3600:", 25), 0);
}
END_TEST

/* Columns: what Redis sends, whether it is an answer for two windows. */
static const struct {
    const char *wire;
    bool good;
} answers[] = {
    {"*6\r\n:1\r\n:1800000000123\r\n:3\r\n:1800000060\r\n:9\r\n:1800003600\r\n", true},
    {"*6\r\n:0\r\n:1800000000123\r\n:10\r\n:1800000060\r\n:9\r\n:1800003600\r\n", true},
    {"*4\r\n:1\r\n:1800000000123\r\n:3\r\n:1800000060\r\n", false},
    {"*6\r\n:-1\r\n:1800000000123\r\n:3\r\n:1800000060\r\n:9\r\n:1800003600\r\n", false},
    {"*6\r\n:1\r\n:1800000000123\r\n:3\r\n:1800000060\r\n:9\r\n$1\r\nx\r\n", false},
    {"*6\r\n:1\r\n:1800000000123\r\n:3\r\n:1800000060\r\n:9\r\n:9999999999\r\n", false},
    {"-NOSCRIPT No matching script.\r\n", false},
    {"+OK\r\n", false},
    {"$-1\r\n", false},
};

START_TEST(an_answer_is_read_or_refused)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;
    struct decision_answer answer;
    const char *wire = answers[_i].wire;
    ck_assert_int_eq(redisReaderFeed(reader, wire, strlen(wire)), REDIS_OK);
    ck_assert_int_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
    ck_assert_ptr_nonnull(reply);
    ck_assert_int_eq(decision_read(reply, 2, &answer), answers[_i].good);
    if (answers[_i].good) {
        ck_assert_int_eq(answer.now_ms, 1800000000123);
        ck_assert_uint_eq(answer.ends[1], 1800003600);
        ck_assert_uint_eq(answer.used[1], 9);
    }
    freeReplyObject(reply);
    redisReaderFree(reader);
}
END_TEST

/* Columns: end and number of a stored count, its size, the time, what it says then. */
static const struct {
    uint32_t end, count;
    size_t size;
    int64_t now_s;
    uint32_t used;
} stored[] = {
    {1800000060, 7, 8, 1800000000, 7}, {1800000060, 7, 8, 1800000059, 7},
    {1800000060, 7, 8, 1800000060, 0}, /* the window has ended */
    {1800000060, 7, 8, 1799999998, 7}, /* the clock was set back by 2 s */
    {1800000060, 7, 8, 1799999997, 0}, /* by more */
    {1800000060, 7, 7, 1800000000, 0}, /* damaged */
};

START_TEST(a_stored_count_belongs_to_its_window)
{
    unsigned char value[8];
    for (size_t i = 0; i < 4; i++) {
        value[i] = (unsigned char)(stored[_i].end >> 8 * i);
        value[4 + i] = (unsigned char)(stored[_i].count >> 8 * i);
    }
    ck_assert_uint_eq(decision_used((const char *)value, stored[_i].size, 60, stored[_i].now_s),
                      stored[_i].used);
}
END_TEST

/* ---- leases ---- */

static struct lease *lease_new(struct leases *leases, const char *key, uint64_t asked_ms)
{
    struct lease *lease = leases_get(leases, key);
    ck_assert_ptr_nonnull(lease);
    lease->asked_ms = asked_ms;
    lease->count = 1;
    lease->windows[0] = windows[0];
    return lease;
}

START_TEST(a_lease_admits_what_was_granted_and_ends_before_its_window)
{
    struct leases *leases = leases_new();
    struct lease *lease = lease_new(leases, "assay:{api}:60:0123456789abcdef", 5000);
    /* 30 s before the end of the window */
    const struct decision_answer answer = {
        .granted = 3, .now_ms = 1800000030000, .used = {4}, .ends = {1800000060}};
    ck_assert(!lease_take(lease, 5000));
    lease_granted(lease, &answer);
    ck_assert_uint_eq(lease->until_ms, 5000 + 30000 - 30 - 2);
    ck_assert_uint_eq(lease->state.remaining, 3); /* 10 - 4 - 3 */
    ck_assert(lease_take(lease, 5001));
    ck_assert(lease_take(lease, lease->until_ms - 1));
    ck_assert(!lease_take(lease, lease->until_ms));
    ck_assert_uint_eq(lease->left, 1);
    leases_free(leases);
}
END_TEST

START_TEST(a_lease_of_an_ended_window_admits_nothing)
{
    struct leases *leases = leases_new();
    struct lease *lease = lease_new(leases, "assay:{api}:60:0123456789abcdef", 5000);
    const struct decision_answer late = {
        .granted = 3, .now_ms = 1800000060500, .used = {4}, .ends = {1800000060}};
    lease_granted(lease, &late);
    ck_assert(!lease_take(lease, 5000));
    leases_free(leases);
}
END_TEST

START_TEST(the_earliest_window_ends_a_lease)
{
    struct leases *leases = leases_new();
    struct lease *lease = lease_new(leases, "assay:{api}:60:0123456789abcdef", 0);
    lease->count = 2;
    lease->windows[1] = windows[1];
    const struct decision_answer answer = {
        .granted = 1, .now_ms = 1800000000000, .used = {4, 90}, .ends = {1800000060, 1800003600}};
    lease_granted(lease, &answer);
    ck_assert_uint_eq(lease->until_ms, 60000 - 60 - 2);
    ck_assert_uint_eq(lease->state.remaining, 5); /* the first window has fewer left */
    leases_free(leases);
}
END_TEST

START_TEST(leases_that_are_over_are_freed_and_others_stay)
{
    struct leases *leases = leases_new();
    char key[REDIS_KEY_SIZE];
    for (unsigned i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "assay:{api}:60:%016x", i);
        lease_new(leases, key, 0)->until_ms = i % 2 == 0 ? 1000 : 9000;
    }
    struct lease *kept = leases_get(leases, key), *asking;
    snprintf(key, sizeof(key), "assay:{api}:60:%016x", 0u);
    asking = leases_get(leases, key);
    asking->asking = true;
    for (unsigned i = 0; i < 1000; i++)
        leases_sweep(leases, 2000);
    ck_assert_ptr_eq(leases_get(leases, key), asking);
    snprintf(key, sizeof(key), "assay:{api}:60:%016x", 4999u);
    ck_assert_ptr_eq(leases_get(leases, key), kept);
    snprintf(key, sizeof(key), "assay:{api}:60:%016x", 2u);
    ck_assert_uint_eq(leases_get(leases, key)->until_ms, 0); /* a new one */
    leases_free(leases);
}
END_TEST

/* ---- files of secrets ---- */

/* Columns: the file, its mode, what is wrong with it as a key and as a password; NULL: nothing. */
static const struct {
    const char *text;
    mode_t mode;
    const char *as_key, *as_password;
} files[] = {
    {HEX16 HEX16 HEX16 HEX16 "\n", 0600, NULL, NULL},
    {HEX16 HEX16 HEX16 HEX16, 0640, NULL, NULL},
    {HEX16 HEX16 HEX16 HEX16 "\n", 0644, "chmod 600", "chmod 600"},
    {HEX16 HEX16 HEX16 "0123456789abcde\n", 0600, "64 hexadecimal digits", NULL},
    {HEX16 HEX16 HEX16 HEX16 "0\n", 0600, "64 hexadecimal digits", NULL},
    {HEX16 HEX16 HEX16 "0123456789abcdeg\n", 0600, "64 hexadecimal digits", NULL},
    {"secret\r\nmore\n", 0600, "64 hexadecimal digits", NULL},
    {"\n", 0600, "64 hexadecimal digits", "1 to 512 bytes"},
    {"", 0600, "64 hexadecimal digits", "1 to 512 bytes"},
};

START_TEST(a_file_of_a_secret_is_read_or_refused_with_a_reason)
{
    char path[] = "/tmp/assay-secret-XXXXXX", why[256] = "", password[SECRET_FILE_PASSWORD];
    uint8_t key[SECRET_FILE_KEY];
    int fd = mkstemp(path);
    size_t n = strlen(files[_i].text);
    ck_assert(fd >= 0 && write(fd, files[_i].text, n) == (ssize_t)n);
    ck_assert(fchmod(fd, files[_i].mode) == 0 && close(fd) == 0);
    ck_assert_int_eq(secret_file_key(path, key, why, sizeof(why)), files[_i].as_key == NULL);
    ck_assert(files[_i].as_key == NULL || strstr(why, files[_i].as_key) != NULL);
    ck_assert(files[_i].as_key != NULL || (key[0] == 0x01 && key[31] == 0xef));
    ck_assert_int_eq(secret_file_password(path, password, why, sizeof(why)),
                     files[_i].as_password == NULL);
    ck_assert(files[_i].as_password == NULL || strstr(why, files[_i].as_password) != NULL);
    ck_assert(files[_i].as_password != NULL ||
              strncmp(files[_i].text, password, strlen(password)) == 0);
    unlink(path);
    ck_assert(!secret_file_key(path, key, why, sizeof(why)));
    ck_assert_str_eq(why, "No such file or directory");
}
END_TEST

START_TEST(a_secret_of_another_user_or_in_no_file_is_refused)
{
    char path[] = "/tmp/assay-secret-XXXXXX", why[256] = "";
    uint8_t key[SECRET_FILE_KEY];
    int fd = mkstemp(path);
    ck_assert(fd >= 0 && close(fd) == 0);
    if (chown(path, 12345, 0) == 0) { /* root alone can */
        ck_assert(!secret_file_key(path, key, why, sizeof(why)));
        ck_assert_ptr_nonnull(strstr(why, "belongs to another user"));
    }
    unlink(path);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!secret_file_key(path, key, why, sizeof(why)));
    ck_assert_str_eq(why, "this is not a regular file");
    unlink(path);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("redis_limits");
    TCase *tcase = tcase_create("redis_limits");
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, a_key_names_limiter_and_window_and_hides_the_caller);
    tcase_add_test(tcase, without_a_key_file_of_its_own_the_key_is_derived_from_the_clusters);
    tcase_add_loop_test(tcase, a_node_admits_its_part_of_a_limit, 0, COUNT(parts));
    tcase_add_test(tcase, a_command_has_a_key_and_two_numbers_for_each_window);
    tcase_add_loop_test(tcase, an_answer_is_read_or_refused, 0, COUNT(answers));
    tcase_add_loop_test(tcase, a_stored_count_belongs_to_its_window, 0, COUNT(stored));
    tcase_add_test(tcase, a_lease_admits_what_was_granted_and_ends_before_its_window);
    tcase_add_test(tcase, a_lease_of_an_ended_window_admits_nothing);
    tcase_add_test(tcase, the_earliest_window_ends_a_lease);
    tcase_add_test(tcase, leases_that_are_over_are_freed_and_others_stay);
    tcase_add_loop_test(tcase, a_file_of_a_secret_is_read_or_refused_with_a_reason, 0,
                        COUNT(files));
    tcase_add_test(tcase, a_secret_of_another_user_or_in_no_file_is_refused);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
