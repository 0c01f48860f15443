/* The pages of t/unit/site, graded as if fetched, compared with t/unit/site/verdicts. */
#include "t/kit/audit.h"
#include "t/kit/suite.h"
#include "core/audit/text.h"

#include <check.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCKS_MAX 64

static struct buf verdicts;
static struct str blocks[BLOCKS_MAX]; /* of verdicts, each from its first line */
static int blocks_count;

static bool read_file(const char *name, struct buf *out)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", SITE, name);
    FILE *f = fopen(path, "r");
    if (f == NULL)
        return false;
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof(piece), f)) > 0;)
        buf_add(out, piece, n);
    fclose(f);
    buf_add(out, "", 1); /* and a zero */
    out->n--;
    return buf_ok(out);
}

/* A block begins with a page line. */
static void split_blocks(void)
{
    for (struct str rest = buf_view(&verdicts), line, after; rest.n > 0; rest = after) {
        text_split(rest, '\n', &line, &after);
        if (text_starts(line, "page ")) {
            if (blocks_count == BLOCKS_MAX)
                return;
            blocks[blocks_count++] = rest;
        } else if (blocks_count == 0) {
            continue;
        }
        blocks[blocks_count - 1].n = (size_t)(line.p + line.n - blocks[blocks_count - 1].p);
    }
}

/* The rest of the next line of ${block} that starts with ${word}; false at the end. */
static bool next_line(struct str *block, const char *word, struct str *out)
{
    for (struct str line; block->n > 0;) {
        text_split(*block, '\n', &line, block);
        if (text_starts(line, word) && line.n > strlen(word) && line.p[strlen(word)] == ' ') {
            *out = text_trim(text_from(line, strlen(word)));
            return true;
        }
    }
    return false;
}

static const char *first_line(struct str block, const char *word, char *out, size_t size)
{
    struct str line = STR("");
    next_line(&block, word, &line);
    snprintf(out, size, "%.*s", (int)line.n, line.p);
    return out;
}

static void set_robots(struct facts *f, struct str block, struct buf *out)
{
    struct str line;
    if (!next_line(&block, "robots", &line))
        return;
    for (size_t i = 0; i < line.n; i++) {
        bool end = text_starts(text_from(line, i), "\\n");
        buf_add(out, end ? "\n" : line.p + i, 1);
        i += end;
    }
    f->robots = (struct fact_probe){.state = PROBE_DONE, .status = 200, .body = buf_view(out)};
}

static const struct {
    const char *word;
    enum expected outcome;
} outcomes[] = {{"pass", PASS}, {"fail", FAIL}, {"none", NA}};
#define OUTCOMES (sizeof(outcomes) / sizeof(*outcomes))

START_TEST(a_site_page_has_its_verdicts)
{
    struct str block = blocks[_i], line, id, rest = block;
    struct buf html = {0}, headers = {0}, robots = {0};
    struct facts f;
    char name[128], url[512], check[64];
    ck_assert_msg(read_file(first_line(block, "page", name, sizeof(name)), &html),
                  "%s: cannot be read", name);
    while (next_line(&rest, "header", &line))
        buf_printf(&headers, "%.*s\n", (int)line.n, line.p);
    buf_add(&headers, "", 1);
    audit_kit_facts(&f, first_line(block, "url", url, sizeof(url)), headers.p, html.p);
    set_robots(&f, block, &robots);
    unsigned held = 0;
    for (size_t i = 0; i < OUTCOMES; i++)
        for (rest = block; next_line(&rest, outcomes[i].word, &line);)
            while (text_token(&line, " ", &id)) {
                snprintf(check, sizeof(check), "%.*s", (int)id.n, id.p);
                audit_kit_expect(&f, check, outcomes[i].outcome, NULL);
                held++;
            }
    ck_assert_uint_gt(held, 0);
    facts_free(&f);
    buf_free(&html);
    buf_free(&headers);
    buf_free(&robots);
}
END_TEST

static bool is_named(const char *id, const char *word)
{
    for (struct str rest = buf_view(&verdicts), line; next_line(&rest, word, &line);)
        if (text_has_token(line, id))
            return true;
    return false;
}

START_TEST(every_page_with_verdicts_is_graded)
{
    int pages = 0;
    for (struct str rest = buf_view(&verdicts), line; next_line(&rest, "page", &line);)
        pages++;
    ck_assert_int_eq(blocks_count, pages);
    ck_assert_int_gt(pages, 5);
}
END_TEST

START_TEST(every_page_check_passes_once_and_fails_once)
{
    /* these depend on what a file cannot express: times, sizes, probes, the connection */
    static const char elsewhere[] = "not_found_page favicon text_compression load_time ttfb "
                                    "page_size http_requests redirects dom_size in_page_links "
                                    "https_redirect http2 text_html_ratio content_length";
    for (size_t i = 0; i < checks_count; i++) {
        if (text_has_token(STR(elsewhere), checks[i].id))
            continue;
        ck_assert_msg(is_named(checks[i].id, "pass"), "no page passes %s", checks[i].id);
        ck_assert_msg(is_named(checks[i].id, "fail"), "no page fails %s", checks[i].id);
    }
}
END_TEST

int main(void)
{
    setlocale(LC_CTYPE, "C.UTF-8"); /* like audit_new */
    if (!read_file("verdicts", &verdicts)) {
        perror(SITE "/verdicts");
        return EXIT_FAILURE;
    }
    split_blocks();
    Suite *s = suite_create("audit_site");
    TCase *t = tcase_create("site");
    tcase_add_loop_test(t, a_site_page_has_its_verdicts, 0, blocks_count);
    tcase_add_test(t, every_page_with_verdicts_is_graded);
    tcase_add_test(t, every_page_check_passes_once_and_fails_once);
    suite_add_tcase(s, t);
    int failed = suite_run(s);
    buf_free(&verdicts);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
