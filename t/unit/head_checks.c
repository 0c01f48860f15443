/* Checks of request heads before any handler. */
#include "core/http/head_checks.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>

#define OK_HEAD "GET / HTTP/1.1\r\nHost: a\r\n"

/* Columns: head, whether it is HTTP/1.1, a word of the error (NULL: none). */
static const struct {
    const char *head;
    bool http11;
    const char *fault;
} cases[] = {
    {OK_HEAD "\r\n", true, NULL},
    {OK_HEAD "Content-Length: 3\r\n\r\nabc\nx", true, NULL},
    {OK_HEAD "Transfer-Encoding: chunked\r\n\r\n", true, NULL},
    {"GET / HTTP/1.0\r\n\r\n", false, NULL},
    {OK_HEAD "X-Content-Length: 1\r\nX-Content-Length: 2\r\n\r\n", true, NULL},
    {OK_HEAD "Accept: a\r\nAccept: b\r\n\r\n", true, NULL},
    {OK_HEAD "X: \r\n\r\n", true, NULL},
    {OK_HEAD "Content-Length: 3\r\nContent-Length: 3\r\n\r\n", true, "two Content-Length"},
    {OK_HEAD "content-length: 3\r\nCONTENT-LENGTH: 4\r\n\r\n", true, "two Content-Length"},
    {OK_HEAD "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", true,
     "both Content-Length and"},
    {OK_HEAD "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n", true,
     "both Content-Length and"},
    {OK_HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", true,
     "two Transfer-Encoding"},
    {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", false, "HTTP/1.0"},
    {OK_HEAD "Host: b\r\n\r\n", true, "two Host"},
    {OK_HEAD "Authorization: a\r\nauthorization: a\r\n\r\n", true, "two Authorization"},
    {OK_HEAD "Content-Type: a\r\nContent-Type: b\r\n\r\n", true, "two Content-Type"},
    {OK_HEAD "X: a\r\n b\r\n\r\n", true, "folded"},
    {OK_HEAD "X: a\r\n\tb\r\n\r\n", true, "folded"},
    {"GET / HTTP/1.1\r\n Host: a\r\n\r\n", true, "folded"},
    {"GET / HTTP/1.1\nHost: a\n\n", true, "carriage return"},
    {OK_HEAD "X: a\n\r\n", true, "carriage return"},
    {OK_HEAD "\n", true, "carriage return"},
    {"GET / HTTP/1.1\r\n\r\n", true, "no Host"},
    {"\n" OK_HEAD "\r\n", true, "carriage return"},
    {"GET / HTTP/1.1\r\nHostess: a\r\n\r\n", true, "no Host"},
};

START_TEST(each_head_has_its_verdict)
{
    bool chunked;
    const char *fault = head_fault(str_of(cases[_i].head), cases[_i].http11, &chunked);
    if (cases[_i].fault == NULL)
        ck_assert_msg(fault == NULL, "%s: %s", cases[_i].head, fault);
    else
        ck_assert_msg(fault != NULL && strstr(fault, cases[_i].fault) != NULL, "%s: %s",
                      cases[_i].head, fault);
}
END_TEST

/* the library skips an empty line before the request: the head after it is checked all the same */
START_TEST(empty_line_before_the_request_hides_nothing)
{
    bool chunked;
    struct buf head = {0};
    if (cases[_i].head[0] == '\n')
        return;
    buf_adds(&head, "\r\n");
    buf_adds(&head, cases[_i].head);
    const char *fault = head_fault(buf_view(&head), cases[_i].http11, &chunked);
    if (cases[_i].fault == NULL)
        ck_assert_msg(fault == NULL, "%s: %s", cases[_i].head, fault);
    else
        ck_assert_msg(fault != NULL && strstr(fault, cases[_i].fault) != NULL, "%s: %s",
                      cases[_i].head, fault);
    buf_free(&head);
}
END_TEST

START_TEST(a_chunked_body_is_recognized)
{
    bool chunked;
    ck_assert_ptr_null(
        head_fault(STR(OK_HEAD "transfer-encoding: chunked\r\n\r\n"), true, &chunked));
    ck_assert(chunked);
    ck_assert_ptr_null(head_fault(STR(OK_HEAD "Content-Length: 1\r\n\r\n"), true, &chunked));
    ck_assert(!chunked);
}
END_TEST

START_TEST(head_of_32_kib_passes_and_one_byte_more_does_not)
{
    for (size_t total = HEAD_MAX_BYTES; total <= HEAD_MAX_BYTES + 1; total++) {
        struct buf head = {0};
        buf_adds(&head, OK_HEAD "X: ");
        while (head.n < total - 4)
            buf_adds(&head, "y");
        buf_adds(&head, "\r\n\r\n");
        bool chunked;
        const char *fault = head_fault(buf_view(&head), true, &chunked);
        ck_assert_int_eq(fault == NULL, total == HEAD_MAX_BYTES);
        ck_assert(fault == NULL || strstr(fault, "32 KiB") != NULL);
        buf_free(&head);
    }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("head_checks");
    TCase *t = tcase_create("head");
    tcase_add_loop_test(t, each_head_has_its_verdict, 0, sizeof(cases) / sizeof(cases[0]));
    tcase_add_loop_test(t, empty_line_before_the_request_hides_nothing, 0,
                        sizeof(cases) / sizeof(cases[0]));
    tcase_add_test(t, a_chunked_body_is_recognized);
    tcase_add_test(t, head_of_32_kib_passes_and_one_byte_more_does_not);
    suite_add_tcase(s, t);
    return suite_run(s);
}
