#include "t/kit/audit.h"
#include "core/audit/text.h"
#include "core/audit/url.h"
#include "core/web/sentences.h"

#include <check.h>
#include <stdio.h>

#define NOW_MS 1800000000000 /* January 2027 */

static const struct conf conf = {.audit_ports = {80, 443}, .audit_ports_count = 2};

static void set_headers(struct facts *f, const char *headers)
{
    struct str rest = str_of(headers), line;
    while (text_token(&rest, "\n", &line)) {
        struct fact_header *h = &f->response.headers[f->response.header_count++];
        text_split(line, ':', &h->name, &h->value);
        h->value = text_trim(h->value);
    }
}

static void set_url(struct facts *f, const char *text)
{
    struct url url;
    const char *why;
    ck_assert_msg(url_judge(str_of(text), NULL, &conf, &url, &why), "%s: %s", text, why);
    f->response.url = arena_copy(&f->arena, str_of(url.text));
    f->response.origin = arena_copy(&f->arena, str_of(url.origin));
    f->response.host = arena_copy(&f->arena, str_of(url.host));
    f->response.target = arena_copy(&f->arena, str_of(url.target));
    f->response.https = url.https;
    url_free(&url);
}

void audit_kit_facts(struct facts *f, const char *url, const char *headers, const char *html)
{
    facts_init(f);
    f->now_ms = NOW_MS;
    f->response.status = 200;
    f->response.http_version = 20;
    f->response.certificate.verified = true;
    f->response.decoded_bytes = f->response.wire_bytes = strlen(html);
    set_url(f, url);
    set_headers(f, headers);
    ck_assert_int_eq(facts_read(f, str_of(html), 1000), PAGE_OK);
}

static const struct check *find(const char *id)
{
    for (size_t i = 0; i < checks_count; i++)
        if (strcmp(checks[i].id, id) == 0)
            return &checks[i];
    ck_abort_msg("no check %s", id);
    return NULL;
}

/* ---- translations ---- */

static void *alloc(void *arena, size_t size)
{
    return arena_get(arena, size);
}

static void expect_sentence(struct verdict *v, const char *id, struct str english)
{
    const struct view_memory memory = {alloc, v->arena};
    for (enum language l = 0; l < LANGUAGES; l++) {
        const struct sentences of = sentences_of(l, str_of(id));
        ck_assert_msg(english.n == 0 || sentence_in(&of, english, &memory).n > 0,
                      "core/web/texts/%s.txt has no sentence.%s for: %.*s", text_tables[l].code.p,
                      id, (int)english.n, english.p);
    }
}

/* Checks whose details all have words; those of others are texts of the page. */
static const char *const worded[] = {
    "charset",       "doctype",         "dom_size", "hreflang",         "http_requests",
    "in_page_links", "text_html_ratio", "robots",   "robots_txt_valid", "text_compression",
};

/* Pages can show what ${v} says in every language. */
static void expect_sentences(struct verdict *v, const char *id)
{
    if (v->outcome == OUTCOME_FAIL)
        expect_sentence(v, id, v->message);
    for (size_t i = 0; i < sizeof(worded) / sizeof(worded[0]); i++)
        for (size_t k = 0; strcmp(worded[i], id) == 0 && k < v->detail_count; k++)
            expect_sentence(v, id, v->details[k]);
}

void audit_kit_expect(struct facts *f, const char *id, enum expected outcome, const char *says)
{
    struct verdict v = {.arena = &f->arena};
    find(id)->run(f, &v);
    ck_assert_msg((int)v.outcome == (int)outcome, "%s: %d, not %d: %.*s", id, v.outcome, outcome,
                  (int)v.message.n, v.message.p);
    ck_assert_msg(v.outcome != OUTCOME_FAIL || v.message.n > 20, "%s fails without a word", id);
    expect_sentences(&v, id);
    if (says == NULL)
        return;
    bool found =
        text_has(v.message, says) || (v.value_kind == VALUE_TEXT && text_has(v.text, says));
    for (size_t i = 0; i < v.detail_count; i++)
        found = found || text_has(v.details[i], says);
    char number[32];
    snprintf(number, sizeof(number), "%.10g", v.number);
    found = found || (v.value_kind == VALUE_NUMBER && strcmp(number, says) == 0);
    ck_assert_msg(found, "%s does not say %s", id, says);
}

void audit_kit_judge(const struct audit_case *c)
{
    struct facts f;
    audit_kit_facts(&f, c->url, c->headers, c->html);
    audit_kit_expect(&f, c->id, c->outcome, c->says);
    facts_free(&f);
}
