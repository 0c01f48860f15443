/* API keys and workspace tokens: their format and their hashes. */
#include "core/auth/credential.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * The CRC-32 of "asy_key_" and thirty zeros is 0x6f7c7cd1, computed independently with Python's
 * zlib.crc32 and base 62.
 */
#define KNOWN                                                                                      \
    "asy_key_000000000000000000000000000000"                                                       \
    "22a881"

static bool parses(const char *text)
{
    enum credential_kind kind = CREDENTIAL_KINDS;
    bool good = credential_parse(str_of(text), &kind);
    ck_assert(!good || kind == CREDENTIAL_KEY);
    return good;
}

START_TEST(known_credential_parses)
{
    ck_assert(parses(KNOWN));
}
END_TEST

START_TEST(the_checksum_detects_any_single_typo)
{
    char text[] = KNOWN;
    for (size_t i = 0; text[i] != '\0'; i++) {
        char kept = text[i];
        text[i] = kept == 'x' ? 'y' : 'x';
        ck_assert_msg(!parses(text), "%s", text);
        text[i] = kept;
    }
}
END_TEST

static const char *const malformed[] = {
    "",
    "asy_key_",
    "asy_wp_000000000000000000000000000000000000",
    KNOWN "0",
    "Asy_key_00000000000000000000000000000000000",
    "asy_key_00000000000000000000000000000/000000",
};

START_TEST(malformed_credential_is_refused)
{
    ck_assert_msg(!parses(malformed[_i]), "%s", malformed[_i]);
}
END_TEST

START_TEST(a_credential_with_a_nul_is_refused)
{
    char text[] = KNOWN;
    enum credential_kind kind;
    text[12] = '\0';
    ck_assert(!credential_parse((struct str){text, sizeof(text) - 1}, &kind));
}
END_TEST

START_TEST(new_credentials_parse_and_differ_and_use_every_character)
{
    char text[CREDENTIAL_SIZE], previous[CREDENTIAL_SIZE] = "";
    unsigned counts[128] = {0}, used = 0;
    for (int n = 0; n < 500; n++) {
        ck_assert(credential_new(credential_prefix(CREDENTIAL_KEY), text));
        ck_assert_uint_eq(strlen(text), 44);
        ck_assert(parses(text));
        ck_assert_str_ne(text, previous);
        memcpy(previous, text, sizeof(text));
        for (size_t i = 8; i < 38; i++)
            counts[(unsigned char)text[i]]++;
    }
    /*
     * 15000 draws over 62 characters: each is expected 242 times; under 120 or over 400 is nine
     * standard deviations off.
     */
    for (size_t c = 0; c < 128; c++) {
        used += counts[c] > 0;
        ck_assert_msg(counts[c] == 0 || (counts[c] > 120 && counts[c] < 400), "%c: %u", (char)c,
                      counts[c]);
    }
    ck_assert_uint_eq(used, 62);
}
END_TEST

START_TEST(a_wrong_prefix_is_refused)
{
    char text[CREDENTIAL_SIZE];
    ck_assert(!credential_new("much_too_long_", text));
    ck_assert_str_eq(text, "");
}
END_TEST

static const struct {
    const char *text, *hex;
} vectors[] = {
    /* FIPS 180-4 examples */
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

START_TEST(hash_is_sha256)
{
    uint8_t hash[CREDENTIAL_HASH];
    char hex[2 * CREDENTIAL_HASH + 1];
    for (int again = 0; again < 2; again++) {
        ck_assert(credential_hash(str_of(vectors[_i].text), hash));
        for (size_t i = 0; i < CREDENTIAL_HASH; i++)
            snprintf(hex + 2 * i, 3, "%02x", hash[i]);
        ck_assert_str_eq(hex, vectors[_i].hex);
    }
}
END_TEST

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void)
{
    Suite *suite = suite_create("credential");
    TCase *tcase = tcase_create("credential");
    tcase_add_test(tcase, known_credential_parses);
    tcase_add_test(tcase, the_checksum_detects_any_single_typo);
    tcase_add_loop_test(tcase, malformed_credential_is_refused, 0, COUNT(malformed));
    tcase_add_test(tcase, a_credential_with_a_nul_is_refused);
    tcase_add_test(tcase, new_credentials_parse_and_differ_and_use_every_character);
    tcase_add_test(tcase, a_wrong_prefix_is_refused);
    tcase_add_loop_test(tcase, hash_is_sha256, 0, COUNT(vectors));
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
