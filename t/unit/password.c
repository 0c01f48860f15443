/* Password hashes of private reports. */
#include "core/auth/password.h"
#include "t/kit/suite.h"

#include <check.h>

static char hash[PASSWORD_HASH_SIZE];

START_TEST(hash_verifies_its_password_and_no_other)
{
    ck_assert(password_hash(STR("correct horse"), hash));
    ck_assert_int_eq(strncmp(hash, "$scrypt$ln=14,r=8,p=1$", 22), 0);
    ck_assert(password_verify(STR("correct horse"), str_of(hash)));
    ck_assert(!password_verify(STR("correct horsE"), str_of(hash)));
    ck_assert(!password_verify(STR("correct hors"), str_of(hash)));
    ck_assert(!password_verify(STR(""), str_of(hash)));
}
END_TEST

START_TEST(two_hashes_of_one_password_differ)
{
    char again[PASSWORD_HASH_SIZE];
    ck_assert(password_hash(STR("x"), hash));
    ck_assert(password_hash(STR("x"), again));
    ck_assert_str_ne(hash, again);
}
END_TEST

START_TEST(every_byte_of_a_long_password_counts)
{
    char password[PASSWORD_MAX];
    memset(password, 'p', sizeof(password));
    ck_assert(password_hash((struct str){password, sizeof(password)}, hash));
    password[PASSWORD_MAX - 1] = 'q';
    ck_assert(!password_verify((struct str){password, sizeof(password)}, str_of(hash)));
}
END_TEST

#define KNOWN_HASH                                                                                 \
    "$scrypt$ln=10,r=8,p=1$U29kaXVtQ2hsb3JpZGVYWA$ThxM2yLxUyw0Vz3guLl8fHPpHJ1fSlnRr5//lv/Opog"
/* Python: hashlib.scrypt(b"pleaseletmein", salt=b"SodiumChlorideXX", n=1024, r=8, p=1, dklen=32) */
START_TEST(hash_of_another_implementation_verifies)
{
    ck_assert(password_verify(STR("pleaseletmein"), STR(KNOWN_HASH)));
    ck_assert(!password_verify(STR("pleaseletmeout"), STR(KNOWN_HASH)));
}
END_TEST

#define SALT "AAAAAAAAAAAAAAAAAAAAAA"
#define HASH "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
static const char *const bad_hashes[] = {
    "",
    "$",
    "plain",
    "$scrypt$ln=14,r=8,p=1$",
    "$scrypt$ln=14,r=8,p=1$" SALT,
    "$scrypt$ln=14,r=8,p=1$" SALT "$",
    "$scrypt$ln=14,r=8,p=1$" SALT "$" HASH "A",
    "$scrypt$ln=14,r=8,p=1$" SALT "A$" HASH,
    "$scrypt$ln=14,r=8,p=1$" SALT "." HASH,
    "$scrypt$ln=14,r=8,p=1$!!!!!!!!!!!!!!!!!!!!!!$" HASH,
    "$scrypt$ln=14,r=8,p=1$" SALT "$!AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "$scrypt$ln=14,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAB$" HASH, /* bits past the last byte */
    "$scrypt$ln=0,r=8,p=1$" SALT "$" HASH,
    "$scrypt$ln=31,r=8,p=1$" SALT "$" HASH,
    "$scrypt$ln=-1,r=8,p=1$" SALT "$" HASH,
    "$scrypt$ln=14,r=99,p=1$" SALT "$" HASH,
    "$scrypt$ln=14,r=8,p=99$" SALT "$" HASH,
    "$argon2id$ln=14,r=8,p=1$" SALT "$" HASH,
};

START_TEST(a_foreign_hash_verifies_nothing)
{
    ck_assert(!password_verify(STR(""), str_of(bad_hashes[_i])));
    ck_assert(!password_verify(STR("x"), str_of(bad_hashes[_i])));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("password");
    TCase *tc = tcase_create("password");
    suite_add_tcase(suite, tc);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, hash_verifies_its_password_and_no_other);
    tcase_add_test(tc, two_hashes_of_one_password_differ);
    tcase_add_test(tc, every_byte_of_a_long_password_counts);
    tcase_add_test(tc, hash_of_another_implementation_verifies);
    tcase_add_loop_test(tc, a_foreign_hash_verifies_nothing, 0,
                        sizeof(bad_hashes) / sizeof(bad_hashes[0]));
    return suite_run(suite);
}
