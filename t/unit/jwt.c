/* Visitors' tokens and the keys that sign them. The test sets the clock. */
#include "core/auth/jwt.h"
#include "t/kit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOW INT64_C(1800000000000)
#define TTL INT64_C(3600000)

static char dir[64], path[128];
static struct signing_keys *secrets;
static char why[SECRETS_PATH + 256];

static void begin(void)
{
    strcpy(dir, "/tmp/assay-jwt-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/secrets", dir);
    ck_assert_int_eq(signing_keys_make(path, NOW - 1000000, why, sizeof(why)), 0);
    secrets = signing_keys_open(path, why, sizeof(why));
    ck_assert_msg(secrets != NULL, "%s", why);
}

static void end(void)
{
    signing_keys_free(secrets);
    unlink(path);
    rmdir(dir);
}

static struct jwt claims_at(int64_t now_ms)
{
    return (struct jwt){.agent = {{1, 2, 3}},
                        .visitor = {{4, 5, 6}},
                        .conversation = {{7, 8, 9}},
                        .iat = now_ms / 1000,
                        .exp = (now_ms + TTL) / 1000,
                        .position = {0xfedcba9876543210, UINT64_MAX}};
}

static struct str sign_at(int64_t now_ms, char out[JWT_SIZE])
{
    struct jwt claims = claims_at(now_ms);
    size_t n = jwt_sign(secrets, now_ms, &claims, out);
    ck_assert_uint_gt(n, 100);
    ck_assert_uint_eq(n, strlen(out));
    return (struct str){out, n};
}

static bool is_valid_at(struct str token, int64_t now_ms)
{
    struct jwt claims;
    return jwt_verify(secrets, token, now_ms, TTL, &claims);
}

START_TEST(a_token_carries_the_signed_claims)
{
    char text[JWT_SIZE];
    struct jwt claims, want = claims_at(NOW);
    ck_assert(jwt_verify(secrets, sign_at(NOW, text), NOW, TTL, &claims));
    ck_assert(ulid_eq(&claims.agent, &want.agent) && ulid_eq(&claims.visitor, &want.visitor) &&
              ulid_eq(&claims.conversation, &want.conversation));
    ck_assert_int_eq(claims.iat, want.iat);
    ck_assert_int_eq(claims.exp, want.exp);
    ck_assert(claims.position.log == want.position.log);
    ck_assert(claims.position.entry == want.position.entry);
}
END_TEST

START_TEST(a_token_of_a_server_without_a_cluster_has_no_position)
{
    char text[JWT_SIZE];
    struct jwt claims = claims_at(NOW);
    claims.position = (struct log_position){0};
    size_t n = jwt_sign(secrets, NOW, &claims, text);
    claims.position = (struct log_position){1, 1};
    ck_assert(jwt_verify(secrets, (struct str){text, n}, NOW, TTL, &claims));
    ck_assert_uint_eq(claims.position.log, 0);
}
END_TEST

START_TEST(clocks_may_differ_by_thirty_seconds_and_no_more)
{
    char text[JWT_SIZE];
    struct str token = sign_at(NOW, text);
    ck_assert(is_valid_at(token, NOW - 30000));
    ck_assert(!is_valid_at(token, NOW - 31000));
    ck_assert(is_valid_at(token, NOW + TTL + 29000));
    ck_assert(!is_valid_at(token, NOW + TTL + 30000));
}
END_TEST

START_TEST(any_changed_character_is_detected)
{
    char text[JWT_SIZE];
    struct str token = sign_at(NOW, text);
    for (size_t i = 0; i < token.n; i++) {
        char kept = text[i];
        text[i] = kept == 'A' ? 'B' : 'A';
        ck_assert_msg(!is_valid_at(token, NOW), "byte %zu", i);
        text[i] = kept;
    }
    ck_assert(is_valid_at(token, NOW));
}
END_TEST

START_TEST(any_truncated_or_extended_token_is_detected)
{
    char text[2 * JWT_MAX] = "";
    struct str token = sign_at(NOW, text);
    for (size_t n = 0; n < token.n; n++)
        ck_assert_msg(!is_valid_at((struct str){text, n}, NOW), "%zu bytes", n);
    static const char *const tails[] = {"A", ".", ".A", "=", "\n", " "};
    for (size_t i = 0; i < sizeof(tails) / sizeof(tails[0]); i++) {
        strcpy(text + token.n, tails[i]);
        ck_assert_msg(!is_valid_at(str_of(text), NOW), "%s", tails[i]);
    }
    memset(text, 'A', sizeof(text));
    text[100] = text[200] = '.';
    ck_assert(!is_valid_at((struct str){text, sizeof(text)}, NOW));
}
END_TEST

/* ---- tokens of another implementation, signed with the right key ---- */

static size_t b64(const char *p, size_t n, char *out)
{
    unsigned char padded[2048];
    int m = EVP_EncodeBlock(padded, (const unsigned char *)p, (int)n);
    while (m > 0 && padded[m - 1] == '=')
        m--;
    for (int i = 0; i < m; i++)
        out[i] = padded[i] == '+' ? '-' : padded[i] == '/' ? '_' : (char)padded[i];
    return (size_t)m;
}

static struct str forge(const char *head, const char *body, const char *signature, char *out)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned mac_n = 0;
    const struct secret *secret = signing_keys_signing(secrets, NOW);
    size_t n = b64(head, strlen(head), out);
    out[n++] = '.';
    n += b64(body, strlen(body), out + n);
    HMAC(EVP_sha256(), secret->key, SECRET_BYTES, (unsigned char *)out, n, mac, &mac_n);
    out[n++] = '.';
    if (signature != NULL)
        n += (size_t)sprintf(out + n, "%s", signature);
    else
        n += b64((char *)mac, mac_n, out + n);
    return (struct str){out, n};
}

#define HEAD "{\"alg\":\"HS256\",\"typ\":\"JWT\",\"kid\":\"KID\"}"
#define IDS                                                                                        \
    ",\"agent_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAV\",\"visitor_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAW\","  \
    "\"conversation_id\":"                                                                         \
    "\"01ARZ3NDEKTSV4RRFFQ69G5FAX\"}"
#define BODY "{\"iss\":\"assay\",\"iat\":1800000000,\"exp\":1800003600" IDS

static const struct {
    const char *head, *body, *signature;
    bool good;
} forged[] = {
    {HEAD, BODY, NULL, true},
    {"{\"kid\":\"KID\",\"alg\":\"HS256\"}", BODY, NULL, true},
    {"{\"alg\":\"none\",\"typ\":\"JWT\",\"kid\":\"KID\"}", BODY, NULL, false},
    {"{\"alg\":\"none\",\"typ\":\"JWT\",\"kid\":\"KID\"}", BODY, "", false},
    {HEAD, BODY, "", false},
    {"{\"alg\":\"NONE\",\"kid\":\"KID\"}", BODY, "", false},
    {"{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"KID\"}", BODY, NULL, false},
    {"{\"alg\":\"HS512\",\"typ\":\"JWT\",\"kid\":\"KID\"}", BODY, NULL, false},
    {"{\"alg\":\"hs256\",\"typ\":\"JWT\",\"kid\":\"KID\"}", BODY, NULL, false},
    {"{\"alg\":[\"HS256\"],\"kid\":\"KID\"}", BODY, NULL, false},
    {"{\"typ\":\"JWT\",\"kid\":\"KID\"}", BODY, NULL, false},
    {"{\"alg\":\"HS256\",\"alg\":\"none\",\"kid\":\"KID\"}", BODY, NULL, false},
    {"{\"alg\":\"HS256\",\"typ\":\"JWT\"}", BODY, NULL, false},
    {"{\"alg\":\"HS256\",\"kid\":\"000000000000\"}", BODY, NULL, false},
    {"{\"alg\":\"HS256\",\"kid\":\"../../etc/passwd\"}", BODY, NULL, false},
    {"{\"alg\":\"HS256\",\"kid\":1}", BODY, NULL, false},
    {"{\"alg\":\"HS256\",\"kid\":\"KID\",\"crit\":[\"exp\"]}", BODY, NULL, false},
    {"{\"alg\":\"HS256\",\"typ\":\"at+jwt\",\"kid\":\"KID\"}", BODY, NULL, false},
    {"[]", BODY, NULL, false},
    {"{", BODY, NULL, false},
    {"", BODY, NULL, false},
    {HEAD, "", NULL, false},
    {HEAD, "[]", NULL, false},
    {HEAD, "{\"iss\":\"other\",\"iat\":1800000000,\"exp\":1800003600" IDS, NULL, false},
    {HEAD, "{\"iat\":1800000000,\"exp\":1800003600" IDS, NULL, false},
    {HEAD, "{\"iss\":\"assay\",\"iat\":1800000000" IDS, NULL, false},
    {HEAD, "{\"iss\":\"assay\",\"exp\":1800003600" IDS, NULL, false},
    {HEAD, "{\"iss\":\"assay\",\"iat\":1800000000,\"exp\":\"1800003600\"" IDS, NULL, false},
    {HEAD, "{\"iss\":\"assay\",\"iat\":1800000000,\"exp\":1800003600.5" IDS, NULL, false},
    {HEAD, "{\"iss\":\"assay\",\"iat\":1800000000,\"exp\":9223372036854775807" IDS, NULL, false},
    {HEAD, "{\"iss\":\"assay\",\"iat\":1800000000,\"exp\":-1" IDS, NULL, false},
    {HEAD, "{\"iss\":\"assay\",\"iat\":1800000000,\"exp\":1800003600,\"nbf\":1800000100" IDS, NULL,
     false},
    {HEAD, "{\"iss\":\"assay\",\"iat\":1800000000,\"exp\":1800003600,\"nbf\":\"x\"" IDS, NULL,
     false},
    {HEAD, "{\"iss\":\"assay\",\"iat\":1800000000,\"exp\":1800003600,\"nbf\":1800000000" IDS, NULL,
     true},
    {HEAD, "{\"iss\":\"assay\",\"iat\":1800000000,\"exp\":1800003600}", NULL, false},
    {HEAD, "{\"iss\":\"assay\",\"iat\":1800000000,\"exp\":1800003600,\"exp\":1900003600" IDS, NULL,
     false},
    {HEAD,
     "{\"iss\":\"assay\",\"iat\":1800000000,\"exp\":1800003600,\"agent_id\":"
     "\"01ARZ3NDEKTSV4RRFFQ69G5FA\",\"visitor_id\":"
     "\"01ARZ3NDEKTSV4RRFFQ69G5FAW\",\"conversation_id\":\"01ARZ3NDEKTSV4RRFFQ69G5FAX\"}",
     NULL, false},
};

START_TEST(a_token_of_another_implementation_is_verified)
{
    char head[512], out[4096];
    snprintf(head, sizeof(head), "%s", forged[_i].head);
    char *kid = strstr(head, "KID");
    if (kid != NULL) {
        char rest[512];
        strcpy(rest, kid + 3);
        snprintf(kid, sizeof(head) - (size_t)(kid - head), "%s%s",
                 signing_keys_signing(secrets, NOW)->kid, rest);
    }
    struct str token = forge(head, forged[_i].body, forged[_i].signature, out);
    ck_assert_msg(is_valid_at(token, NOW) == forged[_i].good, "%s %s", head, forged[_i].body);
}
END_TEST

/* ---- rotation ---- */

START_TEST(a_rotation_logs_nobody_out)
{
    char before[JWT_SIZE], between[JWT_SIZE], after[JWT_SIZE], old[SECRET_KID + 1];
    struct str first = sign_at(NOW, before);
    strcpy(old, signing_keys_signing(secrets, NOW)->kid);
    uint64_t generation = signing_keys_generation(secrets);
    ck_assert_int_eq(signing_keys_rotate(path, NOW, TTL, why, sizeof(why)), 0);
    signing_keys_reload(secrets);
    ck_assert_uint_eq(signing_keys_generation(secrets), generation + 1);
    /* the old key signs until every process knows the new one */
    ck_assert_str_eq(signing_keys_signing(secrets, NOW + SECRETS_SETTLE_MS - 1)->kid, old);
    struct str second = sign_at(NOW + SECRETS_SETTLE_MS - 1, between);
    ck_assert_str_ne(signing_keys_signing(secrets, NOW + SECRETS_SETTLE_MS)->kid, old);
    struct str third = sign_at(NOW + SECRETS_SETTLE_MS, after);
    for (int64_t at = NOW + 1000; at < NOW + TTL; at += TTL / 7)
        ck_assert(is_valid_at(first, at) && is_valid_at(second, at) && is_valid_at(third, at));
    signing_keys_reload(secrets);
    ck_assert_uint_eq(signing_keys_generation(secrets), generation + 1);
}
END_TEST

START_TEST(an_old_secret_expires_with_its_last_token)
{
    char kid[SECRET_KID + 1];
    strcpy(kid, signing_keys_signing(secrets, NOW)->kid);
    ck_assert_int_eq(signing_keys_rotate(path, NOW, TTL, why, sizeof(why)), 0);
    signing_keys_reload(secrets);
    ck_assert_ptr_nonnull(
        signing_keys_find(secrets, str_of(kid), NOW + SECRETS_SETTLE_MS + TTL, TTL));
    ck_assert_ptr_null(
        signing_keys_find(secrets, str_of(kid), NOW + SECRETS_SETTLE_MS + TTL + 1, TTL));
    ck_assert_int_eq(signing_keys_rotate(path, NOW + TTL + 1, TTL, why, sizeof(why)), 0);
    signing_keys_reload(secrets);
    ck_assert_ptr_null(
        signing_keys_find(secrets, str_of(kid), NOW, TTL)); /* it is not even stored */
}
END_TEST

START_TEST(too_many_rotations_are_refused_before_anybody_is_logged_out)
{
    char first[JWT_SIZE];
    struct str token = sign_at(NOW, first);
    for (int i = 1; i < SECRETS_MAX; i++)
        ck_assert_int_eq(signing_keys_rotate(path, NOW + i, TTL, why, sizeof(why)), 0);
    ck_assert_int_eq(signing_keys_rotate(path, NOW + SECRETS_MAX, TTL, why, sizeof(why)), -1);
    ck_assert_ptr_nonnull(strstr(why, "jwt.ttl"));
    signing_keys_reload(secrets);
    ck_assert(is_valid_at(token, NOW + 1000));
}
END_TEST

START_TEST(the_file_is_private_and_created_once)
{
    struct stat before, after;
    ck_assert_int_eq(stat(path, &before), 0);
    ck_assert_int_eq(before.st_mode & 0777, 0600);
    ck_assert_int_eq(signing_keys_make(path, NOW, why, sizeof(why)), 0);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert(before.st_ino == after.st_ino && before.st_mtim.tv_nsec == after.st_mtim.tv_nsec);
}
END_TEST

/*
 * The process that creates the secrets forks those that must not have them. Nothing here may
 * allocate, because that could overwrite leftovers.
 */
static bool heap_holds(const char *bytes, size_t n)
{
    static char maps[1 << 16], heap[1 << 22];
    unsigned long from = 0, to = 0;
    int fd = open("/proc/self/maps", O_RDONLY), mem = open("/proc/self/mem", O_RDONLY);
    for (ssize_t got, at = 0; (got = read(fd, maps + at, sizeof(maps) - 1 - (size_t)at)) > 0;)
        at += got;
    char *line = strstr(maps, "[heap]");
    while (line != NULL && line > maps && line[-1] != '\n')
        line--;
    if (line != NULL)
        sscanf(line, "%lx-%lx", &from, &to);
    ssize_t size =
        pread(mem, heap, to - from < sizeof(heap) ? to - from : sizeof(heap), (off_t)from);
    close(fd);
    close(mem);
    return size > 0 && memmem(heap, (size_t)size, bytes, n) != NULL;
}

START_TEST(creating_secrets_leaves_none_in_memory)
{
    char text[1024] = "";
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(signing_keys_make(path, NOW, why, sizeof(why)), 0);
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    ck_assert_int_gt(n, 2 * SECRET_BYTES);
    ck_assert(!heap_holds(text + n - 1 - 2 * SECRET_BYTES, 2 * SECRET_BYTES));
}
END_TEST

static const char *const damaged[] = {
    "",
    "# nothing\n",
    "x\n",
    "0123456789ab 1\n",
    "0123456789ab 1 00\n",
    "0123456789ab 1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f0\n",
    ("0123456789ab 2 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"
     "0123456789ac 1 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n"),
};

START_TEST(a_damaged_file_is_refused_and_the_loaded_keys_stay)
{
    char text[JWT_SIZE];
    struct str token = sign_at(NOW, text);
    FILE *file = fopen(path, "w");
    fputs(damaged[_i], file);
    fclose(file);
    signing_keys_reload(secrets);
    ck_assert(is_valid_at(token, NOW));
    ck_assert_ptr_null(signing_keys_open(path, why, sizeof(why)));
    ck_assert_ptr_nonnull(strstr(why, path));
    ck_assert_int_eq(signing_keys_rotate(path, NOW, TTL, why, sizeof(why)), -1);
}
END_TEST

START_TEST(a_world_readable_file_is_refused)
{
    ck_assert_int_eq(chmod(path, 0644), 0);
    ck_assert_ptr_null(signing_keys_open(path, why, sizeof(why)));
    ck_assert_ptr_nonnull(strstr(why, "chmod"));
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void)
{
    Suite *suite = suite_create("jwt");
    TCase *tc = tcase_create("jwt");
    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, a_token_carries_the_signed_claims);
    tcase_add_test(tc, a_token_of_a_server_without_a_cluster_has_no_position);
    tcase_add_test(tc, clocks_may_differ_by_thirty_seconds_and_no_more);
    tcase_add_test(tc, any_changed_character_is_detected);
    tcase_add_test(tc, any_truncated_or_extended_token_is_detected);
    tcase_add_loop_test(tc, a_token_of_another_implementation_is_verified, 0, COUNT(forged));
    tcase_add_test(tc, a_rotation_logs_nobody_out);
    tcase_add_test(tc, an_old_secret_expires_with_its_last_token);
    tcase_add_test(tc, too_many_rotations_are_refused_before_anybody_is_logged_out);
    tcase_add_test(tc, the_file_is_private_and_created_once);
    tcase_add_test(tc, creating_secrets_leaves_none_in_memory);
    tcase_add_loop_test(tc, a_damaged_file_is_refused_and_the_loaded_keys_stay, 0, COUNT(damaged));
    tcase_add_test(tc, a_world_readable_file_is_refused);
    suite_add_tcase(suite, tc);
    return suite_run(suite);
}
