#include "t/kit/report_corpus.h"

#define WORD_BYTES 2048
#define FINDINGS 200
#define FINDING_CHARACTERS 200

/* ---- pages that are more than one text ---- */

/* One word of 2,048 bytes wherever a text stands. */
static char *long_word(size_t *size)
{
    char word[WORD_BYTES + 1] = CORPUS_MARK;
    memset(word + strlen(word), 'W', WORD_BYTES - strlen(word));
    word[WORD_BYTES] = '\0';
    char *page = text("<!doctype html><title>%s</title><title>%s</title><h1>%s</h1><h1>%s</h1>"
                      "<a href=\"%s\">here</a><img src=\"/%s\"><a href='javascript:%s'>%s</a>",
                      word, word, word, word, word, word, word, word);
    *size = strlen(page);
    return page;
}

/* 200 images without texts, each with an address of 200 characters. */
static char *many_findings(size_t *size)
{
    char *page = calloc(FINDINGS, FINDING_CHARACTERS + 64), *end = page;
    ck_assert_ptr_nonnull(page);
    end += sprintf(end, "<!doctype html><title>%s</title>", CORPUS_MARK);
    for (int i = 0; i < FINDINGS; i++) {
        char *from = end + strlen("<img src=\"");
        end += sprintf(end, "<img src=\"/%s-%d-<b>&quot;", CORPUS_MARK, i);
        while (end < from + FINDING_CHARACTERS)
            end += sprintf(end, "i");
        end += sprintf(end, "\">\n");
    }
    *size = (size_t)(end - page);
    return page;
}

/* Zeros, bytes that are no UTF-8, and characters cut at the end of a text. */
static char *broken_bytes(size_t *size)
{
    static const char page[] =
        "<!doctype html><meta charset=utf-8><title>" CORPUS_MARK
        "\0<b>\xff\xc3</title><title>" CORPUS_MARK "\0\xe2\x80</title><h1>" CORPUS_MARK
        "\xf0\x9f\x98</h1><h1>" CORPUS_MARK "\xed\xa0\x80\0</h1><img src=\"/" CORPUS_MARK
        "\xfe\0.png\"><a href=\"java\0script:" CORPUS_MARK "\">here</a>";
    char *copy = malloc(sizeof(page));
    ck_assert_ptr_nonnull(copy);
    *size = sizeof(page) - 1;
    return memcpy(copy, page, sizeof(page));
}

/* Links and values that run scripts where they are followed. */
static char *script_urls(size_t *size)
{
    char *page =
        text("<!doctype html><title>" CORPUS_MARK "</title>"
             "<a href=\"javascript:alert('" CORPUS_MARK "')\">here</a>"
             "<a href=\"JaVaScRiPt:alert(1)//" CORPUS_MARK "\">click here</a>"
             "<a href=\"java&#10;script:" CORPUS_MARK "\">here</a>"
             "<a href=\"data:text/html,<script>" CORPUS_MARK "</script>\">here</a>"
             "<a href=\"https://&quot;onload=&quot;" CORPUS_MARK "\" target=_blank>here</a>"
             "<img src=\"javascript:" CORPUS_MARK "\"><img src=\"x&quot; onerror=&quot;" CORPUS_MARK
             "\"><iframe src=\"javascript:" CORPUS_MARK "\"></iframe>"
             "<link rel=canonical href=\"javascript:" CORPUS_MARK "\">"
             "<script type=application/ld+json>{\"" CORPUS_MARK "\": </script>");
    *size = strlen(page);
    return page;
}

/* ---- the table ---- */

#define M CORPUS_MARK

const struct corpus_page corpus[] = {
    {.name = "script", .text = M "<script>alert(1)</script>"},
    {.name = "attribute", .text = M "\"><img src=x onerror=alert(1)>"},
    {.name = "single quotes", .text = M "' onmouseover='alert(1)"},
    {.name = "cdata", .text = M "]]><script>alert(1)</script>"},
    {.name = "end of style", .text = M "</style><script>alert(1)</script>"},
    {.name = "end of title", .text = M "</title></textarea><script>alert(1)</script>"},
    {.name = "comment", .text = M "--><script>alert(1)</script><!--"},
    {.name = "mustache", .text = M "{{url}} {{{url}}} {{#graded}}{{> head.html}}"},
    {.name = "escapes", .text = M "&lt;b&gt; &amp;lt; &#60;script&#62;"},
    {.name = "json", .text = M "\\\" \\\\\" \\u003cb\\u003e \\n \"}],\"id\":{\"\\"},
    {.name = "end of results", .text = M "\",\"details\":[\"x\"]},\"x\":{\"passed\":null},\"y"},
    {.name = "bidi", .text = M "\u202Egnp.exe\u202C \u2066a\u2067b\u2068c\u2069 \u200F\u061C"},
    {.name = "unclosed bidi", .text = M "\u202E\u2067\u202D)elpmaxe"},
    {.name = "invisible", .text = M "a\u200Bb\u2028c\u2029d\uFEFFe\u00ADf"},
    {.name = "controls",
     .text = M "a\x01"
               "b\x1B[31mc\x7F"
               "d",
     .shown = M "a b [31mc d"},
    {.name = "arabic", .text = M " \u0645\u0631\u062D\u0628\u0627 \u0628\u0643\u0645 (1)"},
    {.name = "hebrew", .text = M " \u05E9\u05DC\u05D5\u05DD \u05E2\u05D5\u05DC\u05DD (2)"},
    {.name = "chinese", .text = M "\u7F51\u9875\u8D28\u91CF\u62A5\u544A"},
    {.name = "emoji", .text = M "\U0001F468\u200D\U0001F469\u200D\U0001F467 e\u0301\u0301\u0301"},
    {.name = "query with markup", .text = M, .query = M "=<script>alert(1)</script>"},
    {.name = "query with quotes", .text = M, .query = M "=\"onload=alert(1)'"},
    {.name = "query with escapes", .text = M, .query = M "=%3Cscript%3E%00%0A%22%E2%80%AE"},
    {.name = "query with bidi", .text = M, .query = M "=\u202Egnp.exe\u2066"},
    {.name = "query with mustache", .text = M, .query = M "={{url}}&amp;=&lt;"},
    {.name = "query with a script", .text = M, .query = M "=javascript:alert(1)"},
    {.name = "long url", .text = M, .query = M "=", .long_url = true},
    {.name = "long word", .body = long_word},
    {.name = "many findings", .body = many_findings},
    {.name = "broken bytes", .body = broken_bytes},
    {.name = "script urls", .body = script_urls},
};
const size_t corpus_count = COUNT(corpus);

/* ---- serving ---- */

static char *escaped(const char *plain)
{
    char *out = malloc(strlen(plain) * 6 + 1), *to = out;
    ck_assert_ptr_nonnull(out);
    for (; *plain != '\0'; plain++)
        if (strchr("&<>\"'", *plain) != NULL)
            to += sprintf(to, "&#%d;", *plain);
        else
            *to++ = *plain;
    *to = '\0';
    return out;
}

/* The text in two titles, two headings, a link and an image: each fails a check that shows it. */
static char *page_of(const char *plain)
{
    char *t = escaped(plain);
    return text("<!doctype html><html lang=en><meta charset=utf-8><title>%s</title>"
                "<title>%s</title><h1>%s</h1><h1>%s</h1><a href=\"javascript:%s\">%s</a>"
                "<a href=\"/%s\">here</a><img src=\"/%s\" style=\"%s\"><p>%s</p>",
                t, t, t, t, t, t, t, t, t, t);
}

void corpus_serve(struct origin *o)
{
    for (size_t i = 0; i < corpus_count; i++) {
        size_t size;
        char *body = corpus[i].body != NULL ? corpus[i].body(&size) : page_of(corpus[i].text);
        if (corpus[i].body == NULL)
            size = strlen(body);
        origin_bytes(o, text("/corpus/%zu", i), "", body, size);
        free(body);
    }
}

char *corpus_url(const struct origin *o, size_t i)
{
    char *url = origin_url(o, text("/corpus/%zu", i));
    if (corpus[i].query != NULL)
        url = text("%s?%s", url, corpus[i].query);
    if (!corpus[i].long_url)
        return url;
    char *word = calloc(1, WORD_BYTES + 1);
    ck_assert_ptr_nonnull(word);
    memset(word, 'w', WORD_BYTES - strlen(url));
    return text("%s%s", url, word);
}
