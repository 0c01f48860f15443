/* The log: levels, formats and escaping. */
#include "core/base/log.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char text[16384];

/* The output of log_write to standard error, as a string. */
static const char *logged(enum log_level level, const char *message)
{
    int fds[2], kept = dup(STDERR_FILENO);
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_ge(dup2(fds[1], STDERR_FILENO), 0);
    close(fds[1]);
    log_write(level, "%s", message);
    ck_assert_int_ge(dup2(kept, STDERR_FILENO), 0);
    close(kept);
    ssize_t n = read(fds[0], text, sizeof(text) - 1);
    close(fds[0]);
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    return text;
}

START_TEST(a_json_line_has_time_level_process_and_message)
{
    log_open("worker 3", LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    const char *line = logged(LOG_LEVEL_WARN, "the disk is full");
    char expected[256];
    snprintf(expected, sizeof(expected),
             "\"level\":\"warn\",\"pid\":%ld,\"process\":\"worker 3\",\"message\":\"the disk is "
             "full\"}\n",
             (long)getpid());
    ck_assert_int_eq(strncmp(line, "{\"time\":\"20", 11), 0);
    ck_assert_ptr_nonnull(strstr(line, expected));
    ck_assert_int_eq(line[strcspn(line, "Z") + 1], '"');
}
END_TEST

START_TEST(a_message_cannot_forge_a_member_or_a_line)
{
    log_open("worker 0", LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    const char *line =
        logged(LOG_LEVEL_INFO, "a\",\"level\":\"error\n\\ \x01\xff\xc3\xa9\xed\xa0\x80");
    ck_assert_ptr_nonnull(
        strstr(line, "\"message\":\"a\\\",\\\"level\\\":\\\"error\\u000a\\\\ "
                     "\\u0001\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}\n"));
    ck_assert_ptr_eq(strchr(line, '\n'), line + strlen(line) - 1);
}
END_TEST

START_TEST(a_text_line_has_no_control_characters)
{
    log_open("writer", LOG_LEVEL_INFO, LOG_FORMAT_COMBINED);
    const char *line = logged(LOG_LEVEL_ERROR, "two\nlines \"quoted\" \x1b[31m");
    ck_assert_ptr_nonnull(strstr(line, " error writer["));
    ck_assert_ptr_nonnull(strstr(line, "]: two\\u000alines \"quoted\" \\u001b[31m\n"));
}
END_TEST

START_TEST(no_message_controls_the_terminal)
{
    static const enum log_format formats[] = {LOG_FORMAT_JSON, LOG_FORMAT_COMBINED};
    for (size_t i = 0; i < 2; i++) {
        log_open("writer", LOG_LEVEL_INFO, formats[i]);
        const char *line = logged(LOG_LEVEL_INFO, "a\xc2\x9b"
                                                  "31mb\xe2\x80\xae\xe2\x80\xa8\xc2\x85\xd8\x9c");
        ck_assert_msg(strstr(line, "a\\u009b31mb\\u202e\\u2028\\u0085\\u061c") != NULL, "%s", line);
    }
}
END_TEST

START_TEST(a_long_message_still_ends_its_line)
{
    char message[9000];
    memset(message, '\x01', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    log_open("worker 0", LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    const char *line = logged(LOG_LEVEL_INFO, message);
    size_t n = strlen(line);
    ck_assert_uint_gt(n, 1000);
    ck_assert_str_eq(line + n - 3, "\"}\n");
}
END_TEST

START_TEST(a_message_below_the_level_is_not_written)
{
    log_open("worker 0", LOG_LEVEL_WARN, LOG_FORMAT_JSON);
    ck_assert_str_eq(logged(LOG_LEVEL_INFO, "quiet"), "");
    ck_assert_str_ne(logged(LOG_LEVEL_WARN, "loud"), "");
}
END_TEST

static size_t lines_of(const char *format)
{
    int fds[2], kept = dup(STDERR_FILENO);
    size_t lines = 0;
    ck_assert_int_eq(pipe(fds), 0);
    ck_assert_int_ge(dup2(fds[1], STDERR_FILENO), 0);
    close(fds[1]);
    for (int i = 0; i < 500; i++)
        log_write(LOG_LEVEL_ERROR, format, i);
    ck_assert_int_ge(dup2(kept, STDERR_FILENO), 0);
    close(kept);
    ssize_t n;
    while ((n = read(fds[0], text, sizeof(text))) > 0)
        for (ssize_t i = 0; i < n; i++)
            lines += text[i] == '\n';
    close(fds[0]);
    return lines;
}

START_TEST(a_repeated_error_neither_fills_the_log_nor_hides_others)
{
    log_open("worker 0", LOG_LEVEL_INFO, LOG_FORMAT_JSON);
    ck_assert_uint_eq(lines_of("the disk is full, attempt %d"), 100);
    ck_assert_uint_eq(lines_of("the disk is full, attempt %d"), 0);
    ck_assert_uint_eq(lines_of("something else, attempt %d"), 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("log");
    TCase *tcase = tcase_create("log");
    tcase_add_test(tcase, a_json_line_has_time_level_process_and_message);
    tcase_add_test(tcase, a_message_cannot_forge_a_member_or_a_line);
    tcase_add_test(tcase, a_text_line_has_no_control_characters);
    tcase_add_test(tcase, no_message_controls_the_terminal);
    tcase_add_test(tcase, a_long_message_still_ends_its_line);
    tcase_add_test(tcase, a_message_below_the_level_is_not_written);
    tcase_add_test(tcase, a_repeated_error_neither_fills_the_log_nor_hides_others);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
