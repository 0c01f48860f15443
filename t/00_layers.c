/* Who may include whom (design: folders), read from the sources themselves. */
#include <check.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns: a folder's files, what none of their include lines may hold. */
static const struct {
    const char *files, *never[6];
} rules[] = {
    {"cmd/*.[ch]", {"<json-c/", "<h2o", "<openssl/"}},
    {"store/*.[ch]", {"<json-c/", "<h2o", "<openssl/", "core/", "\"../"}},
    {"store/*/*.[ch]", {"<json-c/", "<h2o", "<openssl/", "core/", "\"../"}},
    {"store/engine/*.[ch]", {"store/index/", "store/records/", "store/answers/"}},
    {"store/index/*.[ch]", {"store/records/", "store/answers/"}},
    {"store/records/*.[ch]", {"store/answers/"}},
    {"ratelimit/*.[ch]", {"<json-c/", "<h2o", "<openssl/", "core/", "\"../"}},
};

START_TEST(a_folder_includes_only_what_it_may)
{
    char pattern[512], line[1024];
    glob_t found;
    snprintf(pattern, sizeof(pattern), "%s/%s", SRCDIR, rules[_i].files);
    ck_assert_msg(glob(pattern, 0, NULL, &found) == 0, "no files: %s", pattern);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *file = fopen(found.gl_pathv[i], "r");
        ck_assert_ptr_nonnull(file);
        while (fgets(line, sizeof(line), file) != NULL)
            for (size_t n = 0; strncmp(line, "#include", 8) == 0 && rules[_i].never[n] != NULL; n++)
                ck_assert_msg(strstr(line, rules[_i].never[n]) == NULL, "%s: %s", found.gl_pathv[i], line);
        fclose(file);
    }
    globfree(&found);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layers");
    TCase *tcase = tcase_create("layers");
    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, a_folder_includes_only_what_it_may, 0, sizeof(rules) / sizeof(rules[0]));
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
