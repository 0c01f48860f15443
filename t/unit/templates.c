/*
 * The template compiler, core/web/make_templates: what it refuses, with file and line, and how the
 * C that it makes escapes values. The build compiles the templates of t/unit/templates.
 */
#include "core/web/put.h"
#include "core/web/texts.h"
#include "t/kit/suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct text_list {
    const struct str *at;
    size_t n;
};
struct row {
    struct str name;
    struct text_list list;
};
struct small_view {
    struct str a, b;
    bool yes;
    unsigned number;
    struct text_list list;
    struct {
        const struct row *at;
        size_t n;
    } rows;
};

#define ASSAY_WEB_VIEWS_H /* these templates have a view of their own */
#define ASSAY_WEB_TEMPLATES_H
void template_text(struct buf *out, enum language language, const struct small_view *view);
void template_urls(struct buf *out, enum language language, const struct small_view *view);
void template_sections(struct buf *out, enum language language, const struct small_view *view);
void template_texts(struct buf *out, enum language language, const struct small_view *view);
#include "t/unit/templates_made.c"

/* ---- values at run time ---- */

typedef void template_fn(struct buf *out, enum language language, const struct small_view *view);

static void expect_html(template_fn *template, enum language language,
                        const struct small_view *view, const char *want)
{
    struct buf out = {0};
    template(&out, language, view);
    buf_add(&out, "", 1);
    ck_assert(buf_ok(&out));
    ck_assert_str_eq(out.p, want);
    buf_free(&out);
}

START_TEST(values_are_escaped_in_text_and_in_attributes)
{
    const struct small_view view = {.a = STR("</title><b c='\"'>&lt;{{a}}"), .number = 7};
#define ESCAPED "&lt;/title&gt;&lt;b c='&quot;'&gt;&amp;lt;{{a}}"
    expect_html(template_text, LANGUAGE_EN, &view,
                "<!DOCTYPE html>\n<title>" ESCAPED "</title>\n<p title=\"" ESCAPED
                "\" data-n=\"7\">" ESCAPED "</p>\n<textarea>" ESCAPED "</textarea>\n");
#undef ESCAPED
}
END_TEST

static const struct {
    const char *a, *b, *whole, *after, *part;
} urls[] = {
    {"https://example.com/?a=1&b=\"2\"", "", "https://example.com/?a=1&amp;b=&quot;2&quot;", "",
     "https%3A%2F%2Fexample.com%2F%3Fa%3D1%26b%3D%222%22"},
    {"javascript:alert(1)", "", "#", "", "javascript%3Aalert%281%29"},
    {"JavaScript:alert(1)", "javascript:", "#", "#", "JavaScript%3Aalert%281%29"},
    {" javascript:alert(1)", "/", "#", "/", "%20javascript%3Aalert%281%29"},
    {"\tjavascript:alert(1)", "http://a", "#", "http://a", "%09javascript%3Aalert%281%29"},
    {"data:text/html,<script>", "", "#", "", "data%3Atext%2Fhtml%2C%3Cscript%3E"},
    {"../x", "", "../x", "", "..%2Fx"},
};

START_TEST(urls_run_no_script_and_parts_stay_parts)
{
    const struct small_view view = {.a = str_of(urls[_i].a), .b = str_of(urls[_i].b), .number = 9};
    const char *whole = urls[_i].whole, *after = urls[_i].after, *part = urls[_i].part;
    char want[2048];
    snprintf(want, sizeof(want),
             "<a href=\"%s\">\n<a href=\"%s%s\">\n<a href=\"%s/%s\">\n"
             "<a href=\"/x/%s?q=%s#9\">\n<a href=\"https://example.com%s\">\n<a href=\"x%s\">\n"
             "<svg><a xlink:href=\"%s\"></a></svg>\n"
             "<form action=\"%s\"><button formaction=\"%s\">\n<img src=\"%s\">\n",
             whole, after, part, after, part, part, part, part, part, whole, whole, whole, whole);
    expect_html(template_urls, LANGUAGE_EN, &view, want);
}
END_TEST

START_TEST(sections_show_what_is_set_and_each_item_of_a_list)
{
    const struct str items[] = {STR("<1>"), STR("2")};
    const struct row rows[] = {{STR("r\""), {items, 2}}, {STR("s"), {NULL, 0}}};
    const struct small_view none = {0}, all = {.a = STR("x"),
                                               .yes = true,
                                               .number = 1,
                                               .list = {items, 2},
                                               .rows = {rows, 2}};
    expect_html(template_sections, LANGUAGE_EN, &none, "no;no a;;;;<b >\n");
    expect_html(template_sections, LANGUAGE_EN, &all,
                "yes;a=x;n;[&lt;1&gt;][2];<i title=\"r&quot;\">(&lt;1&gt;r&quot;)(2r&quot;)</i>"
                "<i title=\"s\"></i>;<b class=\"x\">\n");
}
END_TEST

START_TEST(texts_are_shown_as_they_stand_with_their_values)
{
    const struct small_view view = {.a = STR("<"), .yes = true}, no = {.a = STR("<")};
#define BEGIN "&lt;b onclick=&quot;x()&quot;&gt;&amp;amp; &lt; "
#define YES BEGIN "&lt;i&gt;&lt;&lt;/i&gt;&lt;/b&gt;"
#define NO BEGIN "'no'&lt;/b&gt;"
#define GERMAN "&lt;/p&gt;&lt;script&gt;&lt;&lt;/script&gt;"
    expect_html(template_texts, LANGUAGE_EN, &view,
                "<p title=\"" YES "\">" YES "</p><i>A text that goes on.</i>\n");
    expect_html(template_texts, LANGUAGE_EN, &no,
                "<p title=\"" NO "\">" NO "</p><i>A text that goes on.</i>\n");
    expect_html(template_texts, LANGUAGE_DE, &view,
                "<p title=\"" GERMAN "\">" GERMAN "</p><i>Ein Wörtchen</i>\n");
}
END_TEST

/* ---- what is refused ---- */

static char dir[64];

static void begin(void)
{
    strcpy(dir, "/tmp/assay-templates-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void end(void)
{
    static const char *const names[] = {"page.html", "part.html", "file.css",
                                        "en.txt",    "de.txt",    "errors"};
    char path[128];
    for (size_t i = 0; i < COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

static void write_file(const char *name, const char *first, const char *rest)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(first, file);
    fputs(rest, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* Runs the compiler over the files of ${dir}; its exit status, and its errors in ${errors}. */
static int compile(char *errors, size_t size)
{
    char path[128];
    int status;
    snprintf(path, sizeof(path), "%s/errors", dir);
    pid_t pid = fork();
    if (pid == 0) {
        dup2(open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
        dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
        execl("core/web/make_templates", "make_templates", dir, dir, "en,de", "page.html", NULL);
        _exit(127);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t n = fread(errors, 1, size - 1, file);
    errors[n] = '\0';
    fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

struct compiled {
    const char *page; /* behind its first line, which names the view */
    const char *says; /* "FILE:LINE: words", as the error begins; NULL: it compiles */
    const char *part; /* part.html, or file.css */
    const char *en, *de;
};

static void expect_compiled(const struct compiled *t)
{
    char errors[1024], want[512];
    write_file("page.html", "{{! view: small_view }}\n", t->page);
    write_file("part.html", t->part == NULL ? "" : t->part, "");
    write_file("file.css", t->part == NULL ? "" : t->part, "");
    write_file("en.txt", "x = y\n", t->en == NULL ? "" : t->en);
    write_file("de.txt", "x = y\n", t->de != NULL ? t->de : t->en == NULL ? "" : t->en);
    int status = compile(errors, sizeof(errors));
    snprintf(want, sizeof(want), "%s/%s", dir, t->says == NULL ? "" : t->says);
    ck_assert_msg(status == (t->says == NULL ? 0 : 1), "exit status %d: %s\n%s", status, errors,
                  t->page);
    ck_assert_msg(t->says == NULL || strncmp(errors, want, strlen(want)) == 0,
                  "the error is %snot %s\n%s", errors, want, t->page);
}

#define NO_VALUE "no value is safe "
#define HERE NO_VALUE "here"

/* Values where no value is safe. */
static const struct compiled places[] = {
    {.page = "<p title={{a}}>", .says = "page.html:2: " HERE},
    {.page = "<p title='{{a}}'>", .says = "page.html:2: the value of title needs double quotes"},
    {.page = "<p\ntitle= \"{{a}}\">",
     .says = "page.html:3: the value of title needs double quotes"},
    {.page = "<p title =\"{{a}}\">", .says = "page.html:2: '=' begins no attribute"},
    {.page = "<p onclick =a=\"{{a}}\">", .says = "page.html:2: '=' begins no attribute"},
    {.page = "<p title=\"a\" {{a}}>", .says = "page.html:2: " HERE},
    {.page = "<p {{a}}=\"b\">", .says = "page.html:2: " HERE},
    {.page = "<p data-{{a}}=\"b\">", .says = "page.html:2: " HERE},
    {.page = "\n\n<{{a}}>", .says = "page.html:4: " HERE},
    {.page = "<h{{a}}>", .says = "page.html:2: " HERE},
    {.page = "</{{a}}>", .says = "page.html:2: " HERE},
    {.page = "<script>{{a}}</script>", .says = "page.html:2: " HERE},
    {.page = "<style>\n{{a}}\n</style>", .says = "page.html:3: " HERE},
    {.page = "<SCRIPT>{{a}}</SCRIPT>", .says = "page.html:2: " HERE},
    {.page = "<script>\n{{t.x}}</script>", .says = "page.html:3: " HERE},
    {.page = "<!DOCTYPE {{a}}>", .says = "page.html:2: " HERE},
    {.page = "<title>a</titl{{a}}>", .says = "page.html:2: " HERE},
    {.page = "<!-- {{a}} -->", .says = "page.html:2: only DOCTYPE may follow <!"},
    {.page = "<noscript>{{a}}</noscript>", .says = "page.html:2: " NO_VALUE "in a noscript"},
    {.page = "<noscript><p title=\"{{a}}\"></p></noscript>",
     .says = "page.html:2: " NO_VALUE "in a noscript"},
    {.page = "<p onclick=\"{{a}}\">", .says = "page.html:2: " NO_VALUE "in the attribute onclick"},
    {.page = "<p ONCLICK=\"{{a}}\">", .says = "page.html:2: " NO_VALUE "in the attribute onclick"},
    {.page = "<p onclick=\"{{t.x}}\">",
     .says = "page.html:2: " NO_VALUE "in the attribute onclick"},
    {.page = "<p/onclick=\"{{a}}\">", .says = "page.html:2: " NO_VALUE "in the attribute onclick"},
    {.page = "<p hidden/onclick=\"{{a}}\">",
     .says = "page.html:2: " NO_VALUE "in the attribute onclick"},
    {.page = "<p title=\"\"onclick=\"{{a}}\">",
     .says = "page.html:2: " NO_VALUE "in the attribute onclick"},
    {.page = "<p style=\"color: {{a}}\">",
     .says = "page.html:2: " NO_VALUE "in the attribute style"},
    {.page = "<img srcset=\"{{a}}\">", .says = "page.html:2: " NO_VALUE "in the attribute srcset"},
    {.page = "<link imagesrcset=\"{{page.a}}\">",
     .says = "page.html:2: " NO_VALUE "in the attribute imagesrcset"},
    {.page = "<p srcdoc=\"{{a}}\">", .says = "page.html:2: " NO_VALUE "in the attribute srcdoc"},
    {.page = "<a ping=\"{{a}}\">", .says = "page.html:2: " NO_VALUE "in the attribute ping"},
    {.page = "<p id=\"{{a}}\">", .says = "page.html:2: " NO_VALUE "in the attribute id"},
    {.page = "<svg fill=\"url({{a}})\">", .says = "page.html:2: " NO_VALUE "in the attribute fill"},
    {.page = "<svg xml:base=\"{{a}}\">",
     .says = "page.html:2: " NO_VALUE "in the attribute xml:base"},
    {.page = "<meta http-equiv=\"{{a}}\">",
     .says = "page.html:2: " NO_VALUE "in the attribute http-equiv"},
    {.page = "<meta http-equiv=\"refresh\" content=\"0;url={{a}}\">",
     .says = "page.html:2: " NO_VALUE "in an element with http-equiv"},
    {.page = "<meta content=\"0;url={{a}}\"\nhttp-equiv=\"refresh\">",
     .says = "page.html:3: " NO_VALUE "in an element with http-equiv"},
    {.page = "<meta {{#yes}}HTTP-EQUIV=\"refresh\"{{/yes}} content=\"{{a}}\">",
     .says = "page.html:2: " NO_VALUE "in an element with http-equiv"},
    {.page = "<base href=\"{{a}}\">", .says = "page.html:2: the element base is not safe"},
    {.page = "<iframe src=\"{{a}}\">", .says = "page.html:2: the element iframe is not safe"},
    {.page = "<object data=\"{{a}}\">", .says = "page.html:2: the element object is not safe"},
    {.page = "<embed src=\"{{a}}\">", .says = "page.html:2: the element embed is not safe"},
    {.page = "<svg><set attributeName=\"href\" to=\"{{a}}\"/></svg>",
     .says = "page.html:2: the element set is not safe"},
    {.page = "<svg><animate values=\"{{a}}\"/></svg>",
     .says = "page.html:2: the element animate is not safe"},
    {.page = "<script src=\"{{a}}\"></script>",
     .says = "page.html:2: only a member of page is safe in the element script"},
    {.page = "<link rel=\"stylesheet\" href=\"{{a}}\">",
     .says = "page.html:2: only a member of page is safe in the element link"},
    {.page = "<link {{#rows}}href=\"{{rows.name}}\"{{/rows}}>",
     .says = "page.html:2: only a member of page is safe in the element link"},
    {.page = "{{{a}}}", .says = "page.html:2: a value that is not escaped is never safe"},
    {.page = "{{&a}}", .says = "page.html:2: a value that is not escaped is never safe"},
    {.page = "<a href=\"javascript:{{a}}\">",
     .says = "page.html:2: " NO_VALUE "behind this scheme"},
    {.page = "<a href=\"JavaScript:f('{{a}}')\">",
     .says = "page.html:2: " NO_VALUE "behind this scheme"},
    {.page = "<a href=\" java\nscript:{{a}}\">",
     .says = "page.html:3: " NO_VALUE "behind this scheme"},
    {.page = "<a href=\"javascript&colon;{{a}}\">",
     .says = "page.html:2: " NO_VALUE "behind this scheme"},
    {.page = "<a href=\"data:text/html,{{a}}\">",
     .says = "page.html:2: " NO_VALUE "behind this scheme"},
    {.page = "<a href=\"java{{a}}:{{b}}\">", .says = "page.html:2: " NO_VALUE "behind this scheme"},
    {.page = "<a href=\"http{{a}}:{{b}}\">", .says = "page.html:2: " NO_VALUE "behind this scheme"},
    {.page = "<a href=\"{{a}}javascript:{{b}}\">",
     .says = "page.html:2: " NO_VALUE "behind this scheme"},
    {.page = "<a href=\"{{a}}:{{b}}\">", .says = "page.html:2: " NO_VALUE "behind this scheme"},
    {.page = "<a xlink:href=\"javascript:{{a}}\">",
     .says = "page.html:2: " NO_VALUE "behind this scheme"},
    {.page = "<a href=\"{{t.y}}{{a}}\">",
     .says = "page.html:2: " NO_VALUE "behind this scheme",
     .en = "y = javascript:\n"},
};

#define ELSEWHERE " ends in another place of the HTML than it begins"

/* Sections and partials that end elsewhere, and HTML that browsers can read in two ways. */
static const struct compiled ambiguous[] = {
    {.page = "{{#yes}}<p{{/yes}}>", .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<p {{#yes}}>{{/yes}}", .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<p {{#yes}}title=\"{{/yes}}\">", .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<p title=\"{{#yes}}\" onload=\"{{/yes}}a\">",
     .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<p title=\"{{#yes}}\" title=\"{{/yes}}a\">",
     .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<p o{{#yes}}x{{/yes}}nclick=\"{{a}}\">",
     .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<s{{#yes}}x{{/yes}}cript>", .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<a href=\"{{#yes}}/x{{/yes}}{{a}}\">",
     .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<a href=\"{{#a}}{{a}}{{/a}}{{b}}\">", .says = "page.html:2: the section a" ELSEWHERE},
    {.page = "<a href=\"java{{#yes}}x{{/yes}}script{{a}}\">",
     .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<meta http-equiv=\"refresh\" {{#yes}}><meta {{/yes}}content=\"{{a}}\">",
     .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<meta content=\"{{a}}\" {{#yes}}><meta {{/yes}}http-equiv=\"refresh\">",
     .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "{{#yes}}<script>{{/yes}}</script>", .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<script>{{#yes}}</script>{{/yes}}{{a}}",
     .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "{{#yes}}<noscript>{{/yes}}</noscript>",
     .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "{{#yes}}<{{/yes}}b>", .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<title>a{{#yes}}<{{/yes}}/title>", .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "{{^yes}}<b {{/yes}}>", .says = "page.html:2: the section yes" ELSEWHERE},
    {.page = "<p title=\"{{> part.html}}>",
     .says = "part.html:1: '<' begins no attribute",
     .part = "\"</p>\n<b title=\"<"},
    {.page = "<p title=\"{{> part.html}}\">", .says = "page.html:2: ", .part = "\" onclick=\"a"},
    {.page = "{{> part.html}}{{a}}\">", .says = "page.html:2: ", .part = "<p title=\""},
    {.page = "<style>{{> file.css}}</style>", .says = "page.html:2: ", .part = "a { }\n</style>"},
    {.page = "<style>{{> file.css}}</style>",
     .says = "file.css:2: '<' does not begin </style>",
     .part = "a { }\n</style/>"},
    {.page = "<style>{{> part.html}}</style>",
     .says = "page.html:2: only a .css file may stand in a style"},
    {.page = "<script>{{> file.css}}</script>",
     .says = "page.html:2: only a .css file may stand in a style"},
    {.page = "<p title='a'>", .says = "page.html:2: the value of title needs double quotes"},
    {.page = "<p title=a>", .says = "page.html:2: the value of title needs double quotes"},
    {.page = "<p title=\"a\" \"b\">", .says = "page.html:2: '\"' begins no attribute"},
    {.page = "<p title=\"<script>\">", .says = "page.html:2: '<' stands in the value of title"},
    {.page = "<title><p title=\"</title><script>{{a}}</script>\">",
     .says = "page.html:2: '<' does not begin </title>"},
    {.page = "<textarea><b></textarea>", .says = "page.html:2: '<' does not begin </textarea>"},
    {.page = "<script></scripts>{{a}}</script>",
     .says = "page.html:2: '<' does not begin </script>"},
    {.page = "<script></scri>{{a}}</script>", .says = "page.html:2: '<' does not begin </script>"},
    {.page = "<title></ti >{{a}}</title>", .says = "page.html:2: '<' does not begin </title>"},
    {.page = "<script><!--<script></script>{{a}}</script>",
     .says = "page.html:2: '<' does not begin </script>"},
    {.page = "<style></sty{{! }}le><script></style>{{a}}</script>",
     .says = "page.html:2: '<' does not begin </script>"},
    {.page = "<svg><style/><script></style>{{a}}</script>",
     .says = "page.html:2: '/' does not end style"},
    {.page = "<svg><style /><script></style>{{a}}</script>",
     .says = "page.html:2: '/' does not end style"},
    {.page = "<noscript><p title=\"</noscript>\">",
     .says = "page.html:2: '<' stands in the value of title"},
    {.page = "<!--><script> -->{{a}}</script>", .says = "page.html:2: only DOCTYPE may follow <!"},
    {.page = "<!-- > -->", .says = "page.html:2: only DOCTYPE may follow <!"},
    {.page = "<svg><![CDATA[ ]]></svg>", .says = "page.html:2: only DOCTYPE may follow <!"},
    {.page = "<?xml ?>", .says = "page.html:2: '?' follows '<'"},
    {.page = "a < b=\"<script>{{a}}</script>\">", .says = "page.html:2: ' ' follows '<'"},
    {.page = "a <1", .says = "page.html:2: '1' follows '<'"},
    {.page = "</>", .says = "page.html:2: '>' follows '<'"},
    {.page = "<plaintext>", .says = "page.html:2: the element plaintext is not safe"},
};

/* Tags that are wrong in themselves. */
static const struct compiled mistakes[] = {
    {.page = "a\n{{a", .says = "page.html:3: a tag is not closed"},
    {.page = "\n{{#yes}}\na\n", .says = "page.html:5: the section yes of line 3 is not closed"},
    {.page = "{{#yes}}{{#a}}{{/yes}}{{/a}}",
     .says = "page.html:2: {{/yes}} closes the section a of line 2"},
    {.page = "{{#yes}}\n{{/ye}}", .says = "page.html:3: {{/ye}} closes the section yes of line 2"},
    {.page = "{{#yes}}{{/yes2}}",
     .says = "page.html:2: {{/yes2}} closes the section yes of line 2"},
    {.page = "{{#yes}}{{/yes}", .says = "page.html:2: a tag is not closed"},
    {.page = "{{#yes}}{{/yes}x}", .says = "page.html:2: a tag is not closed"},
    {.page = "{{/yes}}", .says = "page.html:2: {{/…}} closes no section"},
    {.page = "{{> part.html}}{{#yes}}",
     .says = "part.html:1: {{/…}} closes no section",
     .part = "{{/yes}}"},
    {.page = "{{#yes}}{{> part.html}}{{/yes}}",
     .says = "part.html:1: {{/…}} closes no section",
     .part = "a{{/yes}}b"},
    {.page = "{{> part.html}}{{/yes}}",
     .says = "part.html:1: the section yes of line 1 is not closed",
     .part = "{{#yes}}a"},
    {.page = "{{t.y}}", .says = "en.txt:2: {{/…}} closes no section", .en = "y = {{/yes}}\n"},
    {.page = "{{t.y}}",
     .says = "en.txt:3: the section yes of line 3 is not closed",
     .en = "z = z\ny = {{#yes}}\n"},
    {.page = "{{t.y}}",
     .says = "de.txt:2: a value that is not escaped",
     .en = "y = a\n",
     .de = "y = {{{a}}}\n"},
    {.page = "\n{{> none.html}}", .says = "page.html:3: cannot read"},
    {.page = "\n{{t.none}}", .says = "page.html:3: "},
    {.page = "{{> page.html}}", .says = "page.html:2: partials or texts contain each other"},
    {.page = "{{> part.html}}",
     .says = "part.html:2: partials or texts contain each other",
     .part = "\n{{> part.html}}"},
    {.page = "{{t.y}}",
     .says = "en.txt:3: partials or texts contain each other",
     .en = "y = {{t.z}}\nz = {{t.y}}\n"},
    {.page = "{{a;b}}", .says = "page.html:2: a;b is not a name"},
    {.page = "{{A}}", .says = "page.html:2: A is not a name"},
    {.page = "{{}}", .says = "page.html:2:  is not a name"},
    {.page = "{{.}}", .says = "page.html:2: {{.}} stands in no list"},
    {.page = "{{^list}}{{.}}{{/list}}", .says = "page.html:2: list has no items here"},
    {.page = "<p", .says = "page.html:2: the page ends inside of a tag"},
    {.page = "<script>", .says = "page.html:2: the page ends inside of a tag"},
    {.page = "<title>a", .says = "page.html:2: the page ends inside of a tag"},
    {.page = "<noscript>", .says = "page.html:2: the page ends inside of a tag"},
    {.page = "", .says = "en.txt:2: the key y is missing in ", .en = "y = a\n", .de = ""},
    {.page = "",
     .says = "de.txt:3: the key z is missing in ",
     .en = "y = a\n",
     .de = "y = a\nz = a\n"},
    {.page = "", .says = "en.txt:3: the key y is there twice", .en = "y = a\ny = b\n"},
    {.page = "", .says = "en.txt:2: a key or a text is empty", .en = "y =\n"},
    {.page = "", .says = "en.txt:2: a line needs the form: key = text", .en = "y\n"},
    {.page = "",
     .says = "en.txt:2: the key check.a.wrong is missing",
     .en = "check.a.name = A\ncheck.a.why = A\ncheck.a.mend = A\n"},
    {.page = "", .says = "en.txt:2: y\"; is not a key", .en = "y\"; = a\n"},
};

static const struct compiled good[] = {
    {.page = "{{a}}"},
    {.page = "<!doctype html><p title=\"{{a}}{{b}}\">{{a}}</p>"},
    {.page = "<p {{#yes}}title=\"{{a}}\"{{/yes}} class=\"x{{#yes}} y{{/yes}}\">"},
    {.page = "<p title=\"{{t.x}}\">{{t.x}}</p>"},
    {.page = "<meta content=\"{{a}}\"><meta http-equiv=\"refresh\" content=\"5\">"},
    {.page = "<noscript><meta http-equiv=\"refresh\" content=\"5\"></noscript>{{a}}"},
    {.page = "<script>f();</script><style>p { }</style>{{a}}"},
    {.page = "<script src=\"{{page.a}}\"></script><link href=\"{{page.a}}\">"},
    {.page = "<a href=\"data:image/svg+xml,x\">"},
    {.page = "<a href=\"https:{{a}}\"><a href=\"mailto:{{a}}\"><a href=\"?{{a}}={{b}}\">"},
    {.page = "{{#yes}}<p>{{a}}</p>{{/yes}}{{^yes}}<b>{{/yes}}"},
    {.page = "<style>{{> file.css}}</style>", .part = "a::after { content: \"{{a}}\"; }\n"},
    {.page = "<title>{{> part.html}}</title>", .part = "{{#yes}}{{a}}{{/yes}}"},
    {.page = "<p title=\"{{> part.html}}\">", .part = "{{#yes}}{{a}}{{/yes}}"},
    {.page = "<br/><img alt=\"\" src=\"/x.png\"/>"},
};

START_TEST(no_value_stands_where_none_is_safe)
{
    expect_compiled(&places[_i]);
}
END_TEST

START_TEST(html_that_can_be_read_in_two_ways_is_refused)
{
    expect_compiled(&ambiguous[_i]);
}
END_TEST

START_TEST(mistakes_in_tags_and_texts_are_named_with_file_and_line)
{
    expect_compiled(&mistakes[_i]);
}
END_TEST

START_TEST(safe_templates_compile)
{
    expect_compiled(&good[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("templates");
    TCase *made = tcase_create("made"), *compiled = tcase_create("compiled");
    tcase_add_test(made, values_are_escaped_in_text_and_in_attributes);
    tcase_add_loop_test(made, urls_run_no_script_and_parts_stay_parts, 0, COUNT(urls));
    tcase_add_test(made, sections_show_what_is_set_and_each_item_of_a_list);
    tcase_add_test(made, texts_are_shown_as_they_stand_with_their_values);
    tcase_add_checked_fixture(compiled, begin, end);
    tcase_set_timeout(compiled, 60);
    tcase_add_loop_test(compiled, no_value_stands_where_none_is_safe, 0, COUNT(places));
    tcase_add_loop_test(compiled, html_that_can_be_read_in_two_ways_is_refused, 0,
                        COUNT(ambiguous));
    tcase_add_loop_test(compiled, mistakes_in_tags_and_texts_are_named_with_file_and_line, 0,
                        COUNT(mistakes));
    tcase_add_loop_test(compiled, safe_templates_compile, 0, COUNT(good));
    suite_add_tcase(suite, made);
    suite_add_tcase(suite, compiled);
    return suite_run(suite);
}
