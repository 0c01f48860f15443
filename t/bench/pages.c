/*
 * How many pages a core grades, without the network: pages as documentation has them, made here,
 * each brought to UTF-8, parsed, checked and turned into results.
 *
 *   run_pages PAGES ROUNDS [DIRECTORY]     every page as often as ROUNDS; the pages are written to
 *   DIRECTORY for a peer to read
 *
 * Prints: pages per CPU second, bytes per page, mean score
 */
#include "core/audit/results_internal.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAGE_BYTES 77000
#define PAGES_MAX 1000

static const char *const words[] = {
    "server",        "request",  "the",    "a",     "of",     "connection", "returns", "value",
    "configuration", "default",  "when",   "is",    "to",     "and",        "in",      "option",
    "module",        "function", "result", "error", "memory", "process",    "file",    "for",
    "each",          "client",   "with",   "by",    "this",   "limit",      "header",  "timeout",
    "example",       "number",   "index",  "store", "that",   "written",    "key",     "table",
    "reads",         "version",  "page",   "list",  "must",   "before",     "after",   "never",
};

static const struct conf conf = {
    .reports_weight_high = 10, .reports_weight_medium = 5, .reports_weight_low = 1};
static uint64_t state;

/* The same pages in every run: a generator of its own (xorshift64). */
static unsigned next(unsigned below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)((state >> 11) % below);
}

static const char *word(void)
{
    return words[next(sizeof(words) / sizeof(*words))];
}

static void add_words(struct buf *out, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        buf_printf(out, "%s%s", i == 0 ? "" : " ", word());
}

static void add_head(struct buf *out, unsigned number)
{
    buf_printf(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>The %s of the %s &#8212; Manual %u</title>\n<meta name=\"description\" content=\"",
        word(), word(), number);
    add_words(out, 20);
    buf_printf(out,
               "\">\n<link rel=\"canonical\" href=\"https://docs.example.com/manual/%u.html\">\n"
               "<link rel=\"icon\" href=\"/static/favicon.svg\" type=\"image/svg+xml\">\n"
               "<link rel=\"stylesheet\" href=\"/static/pygments.css?v=%u\">\n<link "
               "rel=\"stylesheet\" href=\"/static/theme.css\">\n"
               "<script src=\"/static/search.js\" defer=\"defer\"></script>\n"
               "<script>window.docs = {version: '%u', page: \"x < y\", items: [1, 2, "
               "3]};</script>\n</head>\n",
               number, number, number);
}

static void add_sidebar(struct buf *out)
{
    buf_adds(
        out,
        "<body>\n<div class=\"document\"><nav class=\"sidebar\" aria-label=\"Contents\">\n<ul>\n");
    for (unsigned i = 0; i < 100; i++)
        buf_printf(out,
                   "<li class=\"toctree-l%u\"><a class=\"reference internal\" "
                   "href=\"../%s/%s.html#%s-%u\">%s %s <code "
                   "class=\"docutils literal notranslate\"><span "
                   "class=\"pre\">%s()</span></code></a></li>\n",
                   1 + next(3), word(), word(), word(), i, word(), word(), word());
    buf_adds(out, "</ul>\n</nav>\n<main class=\"body\" role=\"main\">\n");
}

static void add_paragraph(struct buf *out)
{
    buf_adds(out, "<p>");
    for (unsigned i = 0; i < 4; i++) {
        add_words(out, 12 + next(10));
        buf_printf(out,
                   " <a class=\"reference external\" href=\"https://%s.example.org/%s\">%s %s</a>, "
                   "&#8220;",
                   word(), word(), word(), word());
        add_words(out, 5);
        buf_printf(out,
                   "&#8221; &amp; <em>%s</em> or <code class=\"docutils literal "
                   "notranslate\"><span class=\"pre\">%s-&gt;%s</span></code>. ",
                   word(), word(), word());
    }
    buf_adds(out, "</p>\n");
}

static void add_code(struct buf *out)
{
    static const char *const kinds[] = {"n", "k", "kt", "mi", "s", "o", "p", "c1"};
    buf_adds(out,
             "<div class=\"highlight-c notranslate\"><div class=\"highlight\"><pre><span></span>");
    for (unsigned i = 0; i < 8; i++) {
        for (unsigned j = 0; j < 6; j++)
            buf_printf(out, "<span class=\"%s\">%s</span>%s", kinds[next(8)], word(),
                       next(4) == 0 ? " &lt; " : " ");
        buf_adds(out, "\n");
    }
    buf_adds(out, "</pre></div></div>\n");
}

static void add_table(struct buf *out)
{
    buf_adds(out, "<table class=\"docutils align-default\">\n<thead><tr><th "
                  "class=\"head\"><p>Option</p></th><th class=\"head\"><p>"
                  "Meaning</p></th></tr></thead>\n<tbody>\n");
    for (unsigned i = 0; i < 8; i++) {
        buf_printf(out, "<tr class=\"row-%s\"><td><p><code>%s_%s</code></p></td><td><p>",
                   i % 2 == 0 ? "even" : "odd", word(), word());
        add_words(out, 14);
        buf_adds(out, "</p></td></tr>\n");
    }
    buf_adds(out, "</tbody></table>\n");
}

static void add_section(struct buf *out, unsigned level)
{
    const char *id = word();
    buf_printf(out,
               "<section id=\"%s\"><h%u>%s %s<a class=\"headerlink\" href=\"#%s\" title=\"Link to "
               "this heading\">&para;</a></h%u>\n",
               id, level, word(), word(), id, level);
    for (unsigned i = 0; i < 3; i++)
        add_paragraph(out);
    if (next(2) == 0)
        add_code(out);
    if (next(4) == 0)
        add_table(out);
    if (next(4) == 0)
        buf_printf(out,
                   "<figure><img src=\"../_images/%s.png\" alt=\"%s %s\" width=\"640\" "
                   "height=\"360\" loading=\"lazy\"></figure>\n",
                   word(), word(), word());
    buf_adds(out, "<!-- end of the section --></section>\n");
}

static void make_page(struct buf *out, unsigned number)
{
    state = 88172645463325252u + number;
    add_head(out, number);
    add_sidebar(out);
    for (unsigned level = 1; out->n < PAGE_BYTES - 500; level = 2 + next(2))
        add_section(out, level);
    buf_adds(out, "</main></div>\n<footer>Copyright, the authors. <a "
                  "href=\"https://github.com/example/docs\">Source</a>.</footer>\n"
                  "</body>\n</html>\n");
}

static bool write_page(const char *directory, unsigned number, const struct buf *page)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%u.html", directory, number);
    FILE *f = fopen(path, "w");
    bool ok = f != NULL && fwrite(page->p, 1, page->n, f) == page->n;
    return f != NULL && fclose(f) == 0 && ok;
}

/*
 * The page as if it had been fetched from a good server; one that is not ${compressed} is packed to
 * see what that would save. The score; -1 when it could not be graded.
 */
static int grade(const struct buf *page, bool compressed)
{
    struct facts facts;
    struct audit_findings findings = {.score = -1};
    struct buf json = {0};
    facts_init(&facts);
    facts.response = (struct fact_response){
        .status = 200,
        .url = STR("https://docs.example.com/manual/page.html"),
        .origin = STR("https://docs.example.com"),
        .host = STR("docs.example.com"),
        .target = STR("/manual/page.html"),
        .https = true,
        .http_version = 20,
        .certificate.verified = true,
        .headers = {{STR("content-type"), STR("text/html; charset=utf-8")},
                    {STR("content-encoding"), STR("gzip")}},
        .header_count = compressed ? 2 : 1,
        .wire_bytes = page->n / 5,
        .decoded_bytes = page->n,
    };
    facts.robots = (struct fact_probe){
        .state = PROBE_DONE, .status = 200, .body = STR("User-agent: *\nDisallow: /private\n")};
    if (facts_read(&facts, buf_view(page), 1000) == PAGE_OK &&
        !results_make(&facts, &conf, &findings, &json))
        findings.score = -1;
    buf_free(&json);
    facts_free(&facts);
    return findings.score;
}

int main(int argc, char **argv)
{
    static struct buf pages[PAGES_MAX];
    unsigned count = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 0,
             rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    size_t bytes = 0, scores = 0;
    if (argc > 4 || count == 0 || count > PAGES_MAX) {
        fprintf(stderr, "usage: run_pages PAGES ROUNDS [DIRECTORY]\n");
        return 2;
    }
    setlocale(LC_CTYPE, "C.UTF-8"); /* as audit_new does */
    for (unsigned i = 0; i < count; i++) {
        make_page(&pages[i], i);
        bytes += pages[i].n;
        if (!buf_ok(&pages[i]) || (argc == 4 && !write_page(argv[3], i, &pages[i]))) {
            perror("run_pages: cannot write a page");
            return 1;
        }
    }
    clock_t began = clock();
    for (unsigned i = 0; i < count * rounds; i++) {
        int score = grade(&pages[i % count], i % 2 == 0); /* every other page came as it is */
        if (score < 0) {
            fprintf(stderr, "run_pages: page %u could not be graded\n", i % count);
            return 1;
        }
        scores += (size_t)score;
    }
    double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    printf("%.1f %zu %.1f\n", rounds == 0 ? 0.0 : count * rounds / seconds, bytes / count,
           rounds == 0 ? 0.0 : (double)scores / (count * rounds));
    for (unsigned i = 0; i < count; i++)
        buf_free(&pages[i]);
    return 0;
}
