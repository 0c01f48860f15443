/* Accept and Accept-Encoding: the quality of each media type and coding. */
#include "core/http/accept.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>

static const struct {
    const char *header;
    bool json;
} accepts[] = {
    {"", true},
    {"*/*", true},
    {"application/json", true},
    {"Application/JSON", true},
    {"text/html, application/json;q=0.9", true},
    {"application/*", true},
    {"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true},
    {"application/json;charset=utf-8", true},
    {"text/html", false},
    {"application/json;q=0", false},
    {"application/json;q=0, */*", false},
    {"application/json; q=0.0, text/html", false},
    {"*/*;q=0", false},
    {"application/xml", false},
    {"application/*;q=0, */*", false},
};

START_TEST(accept_excludes_json_only_explicitly)
{
    ck_assert_msg(accept_json(str_of(accepts[_i].header)) == accepts[_i].json, "%s",
                  accepts[_i].header);
}
END_TEST

static const struct {
    const char *header;
    bool html;
} pages[] = {
    {"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8", true},
    {"text/html", true},
    {"text/html;q=0.1", true},
    {"TEXT/HTML;charset=utf-8, */*;q=0.1", true},
    {"text/html, application/json;q=0.9", true},
    {"text/html, application/*;q=0.5, */*", true},
    {"", false},
    {"*/*", false},
    {"text/*", false},
    {"text/html, */*", false}, /* JSON is as good */
    {"text/html, application/json", false},
    {"text/html;q=0.8, application/json", false},
    {"text/html;q=0.8, application/*;q=0.9", false},
    {"text/html;q=0", false},
    {"text/html;q=0, */*;q=0", false},
    {"application/json", false},
    {"image/avif, */*;q=0.1", false},
    {"text/htmlx", false},
};

START_TEST(accept_prefers_html_if_it_names_it_first)
{
    ck_assert_msg(accept_prefers_html(str_of(pages[_i].header)) == pages[_i].html, "%s",
                  pages[_i].header);
}
END_TEST

static const struct {
    const char *header;
    int quality;
} codings[] = {
    {"gzip", 1000},         {"br, gzip;q=0.5", 500},
    {"GZIP", 1000},         {"*", 1000},
    {"*;q=0.3, br", 300},   {"gzip;q=0, *", 0},
    {"identity", 0},        {"", 0},
    {"gzip;q=0.001", 1},    {"gzip;q=0.0", 0},
    {"gzip;q=1.000", 1000}, {"deflate, gzip ; q=1.0", 1000},
    {"x-gzip", 0},          {"gzip;q=oops", 1000},
    {", ,gzip,,", 1000},
};

START_TEST(a_coding_has_its_stated_quality)
{
    ck_assert_msg(accept_quality(str_of(codings[_i].header), STR("gzip"), STR("*")) ==
                      codings[_i].quality,
                  "%s", codings[_i].header);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("accept");
    TCase *t = tcase_create("accept");
    tcase_add_loop_test(t, accept_excludes_json_only_explicitly, 0,
                        sizeof(accepts) / sizeof(accepts[0]));
    tcase_add_loop_test(t, accept_prefers_html_if_it_names_it_first, 0,
                        sizeof(pages) / sizeof(pages[0]));
    tcase_add_loop_test(t, a_coding_has_its_stated_quality, 0,
                        sizeof(codings) / sizeof(codings[0]));
    suite_add_tcase(s, t);
    return suite_run(s);
}
