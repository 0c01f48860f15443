#include "config.h"

#include "core/audit/checks_internal.h"
#include "core/audit/language_internal.h"
#include "core/audit/robots_internal.h"
#include "core/audit/text.h"

#include <curl/curl.h>
#include <stdlib.h>
#include <time.h>

#define TITLE_MAX_POINTS 60
#define DESCRIPTION_ADVISED_MIN 120
#define DESCRIPTION_ADVISED_MAX 160

void check_title(struct facts *f, struct verdict *v)
{
    const struct page_element *first = facts_title_element(f);
    struct str title = text_trim_unicode(facts_title(f));
    size_t cut = first == NULL ? 0 : first->points - text_points(first->text);
    size_t count = 0, at = 0, points = text_points(title) + cut;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_TITLE, &at)) != NULL;) {
        if ((e->flags & ELEMENT_IN_SVG) != 0)
            continue;
        if (++count > 1)
            verdict_detail(v, "Another title: %.*s", STR_ARG(e->text));
    }
    if (count > 0)
        verdict_text(v, title);
    if (points > 0)
        verdict_detail(v, "%zu %s", points, verdict_plural(points, "character", "characters"));
    if (count == 0)
        verdict_fail(v,
                     "The page has no title. Add one <title> of at most %d characters to its head.",
                     TITLE_MAX_POINTS);
    else if (count > 1)
        verdict_fail(v, "The page has %zu titles. Keep one <title>.", count);
    else if (points == 0)
        verdict_fail(v, "The title is empty. Say in at most %d characters what the page is about.",
                     TITLE_MAX_POINTS);
    else if (points > TITLE_MAX_POINTS)
        verdict_fail(
            v, "The title has %zu characters. Shorten it to at most %d, or search engines cut it.",
            points, TITLE_MAX_POINTS);
    else
        verdict_pass(v);
}

/*
 * The first meta tag of that name in the head. Search engines and Lighthouse ignore those in the
 * body.
 */
static const struct page_element *find_meta(const struct page *page, const char *name)
{
    size_t at = 0;
    for (const struct page_element *e; (e = page_next(page, TAG_META, &at)) != NULL;)
        if ((e->flags & ELEMENT_IN_HEAD) != 0 && text_eq(page_value(e, "name"), name))
            return e;
    return NULL;
}

void check_meta_description(struct facts *f, struct verdict *v)
{
    const struct page_element *meta = find_meta(&f->page, "description");
    struct str content = meta == NULL ? STR("") : text_trim_unicode(page_value(meta, "content"));
    size_t points = text_points(content);
    if (meta != NULL)
        verdict_text(v, content);
    if (points == 0) {
        verdict_fail(v,
                     meta == NULL ? "The page has no description. Add <meta name=\"description\"> "
                                    "that says what the page is about. Search results "
                                    "show %d to %d characters best."
                                  : "The description is empty. Say what the page is about. Search "
                                    "results show %d to %d characters best.",
                     DESCRIPTION_ADVISED_MIN, DESCRIPTION_ADVISED_MAX);
        return;
    }
    verdict_detail(v, "%zu %s", points, verdict_plural(points, "character", "characters"));
    verdict_pass(v);
    if (points < DESCRIPTION_ADVISED_MIN || points > DESCRIPTION_ADVISED_MAX)
        verdict_advise(v,
                       "The description has %zu %s. Any text passes; search results show %d to %d "
                       "characters best.",
                       points, verdict_plural(points, "character", "characters"),
                       DESCRIPTION_ADVISED_MIN, DESCRIPTION_ADVISED_MAX);
}

void check_headings(struct facts *f, struct verdict *v)
{
    struct str h1 = {0};
    size_t h1_count = 0, count = 0;
    for (size_t i = 0; i < f->page.count; i++) {
        const struct page_element *e = f->page.elements[i];
        if (e->tag < TAG_H1 || e->tag > TAG_H6)
            continue;
        count++;
        verdict_detail(v, "%s: %.*s", e->name, STR_ARG(e->text));
        if (e->tag == TAG_H1 && ++h1_count == 1)
            h1 = e->text;
    }
    verdict_number(v, (double)count);
    if (h1_count == 0)
        verdict_fail(v, "The page has no h1. Give it one main heading.");
    else if (h1_count > 1)
        verdict_fail(v,
                     "The page has %zu h1 headings. Keep one, and change the others to h2 to h6.",
                     h1_count);
    else if (h1.n > 0 && str_eq(h1, facts_title(f)))
        verdict_fail(v, "The h1 is identical to the title. Use different words.");
    else
        verdict_pass(v);
}

/*
 * The image's role marks it as decoration, and nothing contradicts: it is not focusable and has no
 * ARIA properties (WAI-ARIA 1.2, 7.4).
 */
static bool only_decorates(const struct page_element *img)
{
    struct str role = page_value(img, "role");
    bool stands = text_eq(role, "none") || text_eq(role, "presentation");
    for (size_t i = 0; stands && i < img->attribute_count; i++)
        stands = !text_starts(img->attributes[i].name, "aria-") &&
                 !text_eq(img->attributes[i].name, "tabindex");
    return stands;
}

static bool has_name(const struct page_element *img)
{
    struct str alt;
    if (page_attribute(img, "alt", &alt))
        return alt.n == 0 || text_trim_unicode(alt).n > 0; /* axe: alt-space-value */
    return page_value(img, "aria-label").n > 0 || page_value(img, "aria-labelledby").n > 0 ||
           page_value(img, "title").n > 0 || only_decorates(img);
}

void check_image_alt(struct facts *f, struct verdict *v)
{
    size_t count = 0, missing = 0, at = 0;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_IMG, &at)) != NULL;) {
        if ((e->flags & (ELEMENT_HIDDEN | ELEMENT_UNREAD)) != 0)
            continue; /* hidden from screen readers: needs no name (axe) */
        count++;
        if (has_name(e))
            continue;
        missing++;
        verdict_element(v, e);
    }
    if (count == 0)
        return;
    verdict_number(v, (double)missing);
    if (missing > 0)
        verdict_fail(v,
                     "%zu of %zu %s no alternative text. Add an alt attribute to each, empty if "
                     "the image is decoration.",
                     missing, count,
                     verdict_plural(count, "image has",
                                    verdict_plural(missing, "images has", "images have")));
    else
        verdict_pass(v);
}

void check_robots(struct facts *f, struct verdict *v)
{
    if (f->robots.state != PROBE_DONE)
        return;
    if (f->robots.status >= 500) {
        verdict_number(v, (double)f->robots.status);
        verdict_fail(v,
                     "robots.txt answers with status %ld, so crawlers avoid the whole site. Let it "
                     "answer 200, or 404 if there is none.",
                     f->robots.status);
        return;
    }
    struct robots_verdict robots = {.allowed = true};
    if (f->robots.status >= 200 && f->robots.status < 300)
        robots_judge(f->robots.body, "Googlebot", f->response.target, &robots);
    if (robots.line > 0) {
        verdict_text(v, robots.rule);
        verdict_detail(v, "Line %u: %.*s", robots.line, STR_ARG(robots.rule));
    }
    if (robots.allowed)
        verdict_pass(v);
    else
        verdict_fail(v,
                     "robots.txt forbids search engines to fetch this page. Remove or narrow the "
                     "rule in line %u.",
                     robots.line);
}

/*
 * ---- noindex: a bot obeys the meta tag of its name, else robots, and headers for it or for all
 * ----
 */

/* The page fails only if all of these bots are blocked; "" stands for any other bot. */
static const char *const noindex_bots[] = {"", "googlebot", "bingbot", "duckduckbot",
                                           "archive.org_bot"};

static bool parse_date(struct str text, int64_t *out_s)
{
    char copy[64];
    struct tm tm = {0};
    if (text.n == 0 || text.n >= sizeof(copy))
        return false;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    const char *rest = strptime(copy, "%Y-%m-%d", &tm);
    if (rest != NULL) {
        if (*rest == 'T' || *rest == 't' || *rest == ' ')
            rest = strptime(rest + 1, "%H:%M:%S", &tm);
        if (rest != NULL && *rest == '.')
            rest += 1 + strspn(rest + 1, "0123456789");
        if (rest != NULL)
            strptime(rest, "%z", &tm);
        int64_t offset = tm.tm_gmtoff;
        *out_s = timegm(&tm) - offset;
        return true;
    }
    *out_s = curl_getdate(copy, NULL);
    return *out_s != -1;
}

static bool is_blocking(struct str directive, int64_t now_ms)
{
    struct str name, value;
    int64_t at;
    directive = text_trim(directive);
    if (text_eq(directive, "noindex") || text_eq(directive, "none"))
        return true;
    return text_split(directive, ':', &name, &value) &&
           text_eq(text_trim(name), "unavailable_after") && parse_date(text_trim(value), &at) &&
           at * 1000 < now_ms;
}

/*
 * The first blocking directive of the comma-separated ${directives}. A date may contain commas
 * itself.
 */
static bool find_blocking(struct str directives, int64_t now_ms, struct str *out)
{
    while (directives.n > 0) {
        struct str rest;
        directives = text_trim(directives);
        if (text_starts(directives, "unavailable_after") && is_blocking(directives, now_ms)) {
            *out = directives;
            return true;
        }
        text_split(directives, ',', out, &rest);
        if (is_blocking(*out, now_ms))
            return true;
        directives = rest;
    }
    return false;
}

static const struct page_element *robots_meta(const struct page *page, const char *bot)
{
    const struct page_element *own = bot[0] == '\0' ? NULL : find_meta(page, bot);
    return own != NULL ? own : find_meta(page, "robots");
}

/* A header's value may begin with the bot it is for: "googlebot: noindex". */
static struct str header_bot(struct str value, struct str *directives)
{
    struct str name, rest;
    *directives = value;
    if (!text_split(value, ':', &name, &rest) || memchr(name.p, ',', name.n) != NULL ||
        text_eq(text_trim(name), "unavailable_after"))
        return STR("");
    *directives = rest;
    return text_trim(name);
}

/* Iterates over the directives that block a bot: the meta tag first, then the headers. */
struct block_iterator {
    struct facts *facts;
    const char *bot;
    bool meta_read;
    size_t header;
};

/* The next one, with its source, in ${words}. ${own}: it is for this bot alone. */
static bool next_block(struct block_iterator *all, struct str *words, bool *own)
{
    struct facts *f = all->facts;
    struct str directive, directives;
    const struct page_element *meta = all->meta_read ? NULL : robots_meta(&f->page, all->bot);
    all->meta_read = true;
    if (meta != NULL && find_blocking(page_value(meta, "content"), f->now_ms, &directive)) {
        struct str name = page_value(meta, "name");
        *own = !text_eq(name, "robots");
        *words = arena_printf(&f->arena, "%.*s in <meta name=\"%.*s\">",
                              STR_ARG(text_trim(directive)), STR_ARG(name));
        return true;
    }
    for (struct str value; (value = facts_header(f, "x-robots-tag", &all->header)).p != NULL;) {
        struct str for_bot = header_bot(value, &directives);
        if ((for_bot.n > 0 && !text_eq(for_bot, all->bot)) ||
            !find_blocking(directives, f->now_ms, &directive))
            continue;
        *own = for_bot.n > 0;
        *words = arena_printf(&f->arena, "%.*s in X-Robots-Tag: %.*s",
                              STR_ARG(text_trim(directive)), STR_ARG(value));
        return true;
    }
    return false;
}

/* ${bot} is blocked. A directive for all bots is listed once, with the bot "". */
static bool is_blocked(struct facts *f, struct verdict *v, const char *bot)
{
    struct block_iterator all = {.facts = f, .bot = bot};
    struct str words;
    bool blocked = false;
    for (bool own; next_block(&all, &words, &own);) {
        blocked = true;
        if (v->value_kind == VALUE_NULL)
            verdict_text(v, words);
        if (own || bot[0] == '\0')
            verdict_detail(v, "%s: %.*s", bot[0] == '\0' ? "any bot" : bot, STR_ARG(words));
    }
    return blocked;
}

void check_noindex(struct facts *f, struct verdict *v)
{
    size_t blocked = 0;
    size_t bots = sizeof(noindex_bots) / sizeof(*noindex_bots);
    for (size_t i = 0; i < bots; i++)
        blocked += is_blocked(f, v, noindex_bots[i]);
    if (blocked == bots) {
        verdict_fail(v, "The page tells search engines not to index it. Remove the noindex "
                        "directive if the page should be found.");
        return;
    }
    verdict_pass(v);
    if (blocked > 0)
        verdict_advise(v, "The page tells some search engines not to index it. Remove the "
                          "directives in the details if all should find it.");
}

void check_language(struct facts *f, struct verdict *v)
{
    size_t at = 0;
    const struct page_element *html = page_next(&f->page, TAG_HTML, &at);
    struct str lang = html == NULL ? STR("") : page_value(html, "lang");
    if (lang.n > 0)
        verdict_text(v, lang);
    if (lang.n == 0)
        verdict_fail(v, "The page does not declare its language. Add a lang attribute to <html>, "
                        "such as lang=\"en\".");
    else if (!language_is_known(lang))
        verdict_fail(v, "The lang attribute of <html> is not a known language. Use a code such as "
                        "en, de or pt-BR.");
    else
        verdict_pass(v);
}
