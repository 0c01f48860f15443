#include "config.h"

#include "core/audit/checks_internal.h"
#include "core/audit/text.h"

#include <stdlib.h>

#define CONTENT_MIN_WORDS 500
#define TEXT_MIN_PERCENT 10
#define TITLE_WORDS_MAX 512
/* Each is searched for in the whole text. A title that passes has no more. */
#define IDEOGRAPHS_MAX 64

/* ---- words of the title ---- */

struct words {
    struct buf folded;
    struct str list[TITLE_WORDS_MAX];
    bool found[TITLE_WORDS_MAX];
    size_t count;
    /* by first byte: bit n is set if a word has n bytes; bit 31: 31 or more */
    uint32_t lengths[256];
};

static uint32_t length_bit(size_t n)
{
    return (uint32_t)1 << (n < 31 ? n : 31);
}

static int compare_words(const void *a, const void *b)
{
    const struct str *x = a, *y = b;
    int order = memcmp(x->p, y->p, x->n < y->n ? x->n : y->n);
    return order != 0 ? order : x->n < y->n ? -1 : x->n > y->n;
}

static void words_of(struct str text, struct words *out)
{
    struct str rest, word;
    text_fold(text, &out->folded);
    rest = buf_view(&out->folded);
    while (out->count < TITLE_WORDS_MAX && text_word(&rest, &word))
        out->list[out->count++] = word;
    if (out->count == 0)
        return;
    qsort(out->list, out->count, sizeof(*out->list), compare_words);
    size_t kept = 1;
    for (size_t i = 1; i < out->count; i++)
        if (!str_eq(out->list[i], out->list[kept - 1]))
            out->list[kept++] = out->list[i];
    out->count = kept;
    for (size_t i = 0; i < kept; i++)
        out->lengths[(unsigned char)out->list[i].p[0]] |= length_bit(out->list[i].n);
}

static bool is_ascii(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] >= 0x80)
            return false;
    return true;
}

/*
 * Mark ${word} of the text if it is one of ${words}. Most are not; the length tells that without
 * folding.
 */
static void find_word(struct words *words, struct str word, struct buf *scratch)
{
    bool ascii = (unsigned char)word.p[0] < 0x80 && is_ascii(word);
    if (ascii && (words->lengths[(unsigned char)text_lower(word.p[0])] & length_bit(word.n)) == 0)
        return;
    buf_reset(scratch);
    text_fold(word, scratch);
    struct str folded = buf_view(scratch);
    struct str *hit =
        bsearch(&folded, words->list, words->count, sizeof(*words->list), compare_words);
    if (hit != NULL)
        words->found[hit - words->list] = true;
}

/* Scripts without spaces between words: search the whole text. */
static void find_ideographs(struct words *words, struct str text, struct buf *scratch)
{
    bool folded = false;
    size_t searched = 0;
    for (size_t i = 0; i < words->count; i++) {
        if (words->found[i] || !text_is_ideographic(words->list[i]) || ++searched > IDEOGRAPHS_MAX)
            continue;
        if (!folded) {
            buf_reset(scratch);
            text_fold(text, scratch);
            folded = true;
        }
        words->found[i] = scratch->n > 0 && memmem(scratch->p, scratch->n, words->list[i].p,
                                                   words->list[i].n) != NULL;
    }
}

/* Mark the words that occur in ${text}; returns how many do. */
static size_t find_words(struct words *words, struct str text)
{
    struct buf scratch = {0};
    size_t found = 0;
    for (struct str rest = text, word; words->count > 0 && text_word(&rest, &word);)
        find_word(words, word, &scratch);
    find_ideographs(words, text, &scratch);
    buf_free(&scratch);
    for (size_t i = 0; i < words->count; i++)
        found += words->found[i];
    return found;
}

void check_content_keywords(struct facts *f, struct verdict *v)
{
    struct words *words = calloc(1, sizeof(*words));
    if (words == NULL)
        return;
    words_of(facts_title(f), words);
    size_t found = find_words(words, buf_view(&f->page.text));
    for (size_t i = 0; i < words->count; i++)
        if (words->found[i])
            verdict_detail(v, "%.*s", STR_ARG(words->list[i]));
    verdict_number(v, (double)found);
    if (words->count == 0)
        verdict_fail(v, "The title has no word that the text could repeat. Write a title that says "
                        "what the page is about.");
    else if (found == 0)
        verdict_fail(
            v,
            "No word of the title occurs in the page's text. Write about the topic of the title.");
    else
        verdict_pass(v);
    buf_free(&words->folded);
    free(words);
}

void check_seo_friendly_url(struct facts *f, struct verdict *v)
{
    struct str url = f->response.url;
    struct words *words = calloc(1, sizeof(*words));
    bool has_bad_character = false;
    if (words == NULL)
        return;
    for (size_t i = 0; i < url.n; i++)
        has_bad_character = has_bad_character || strchr("?=_%, ", url.p[i]) != NULL;
    words_of(facts_title(f), words);
    verdict_text(v, url);
    if (has_bad_character)
        verdict_fail(v, "The URL contains one of the characters ? = _ %% , or a space. Use short "
                        "words separated by hyphens.");
    else if (!str_eq(f->response.target, STR("/")) && find_words(words, f->response.target) == 0)
        verdict_fail(
            v,
            "The URL contains no word of the title. Use a URL that names the topic of the page.");
    else
        verdict_pass(v);
    buf_free(&words->folded);
    free(words);
}

/* ---- how much text ---- */

/* Number of words; in scripts without spaces, each character counts as one. */
static size_t words_in(struct str word)
{
    size_t count = 0;
    bool in_word = false;
    if (is_ascii(word))
        return 1;
    while (word.n > 0) {
        size_t n = 1;
        while (n < word.n && ((unsigned char)word.p[n] & 0xC0) == 0x80)
            n++;
        bool ideograph = text_is_ideographic(word);
        count += ideograph || !in_word;
        in_word = !ideograph;
        word = text_from(word, n);
    }
    return count;
}

void check_content_length(struct facts *f, struct verdict *v)
{
    size_t count = 0;
    for (struct str rest = buf_view(&f->page.text), word; text_word(&rest, &word);)
        count += words_in(word);
    verdict_number(v, (double)count);
    if (count < CONTENT_MIN_WORDS)
        verdict_fail(
            v,
            "The page has %zu %s. Write at least %d: longer pages rank better in search results.",
            count, verdict_plural(count, "word", "words"), CONTENT_MIN_WORDS);
    else
        verdict_pass(v);
}

void check_text_html_ratio(struct facts *f, struct verdict *v)
{
    struct str text = text_trim(buf_view(&f->page.text));
    size_t bytes = 0;
    for (size_t i = 0; i < text.n; i++)
        bytes += !text_is_space(text.p[i]) || !text_is_space(text.p[i - 1]);
    double percent =
        f->page.html_bytes == 0 ? 0 : 100.0 * (double)bytes / (double)f->page.html_bytes;
    verdict_number(v, (double)(long)(percent * 10 + 0.5) / 10);
    verdict_detail(v, "%zu bytes of text in %zu bytes of HTML", bytes, f->page.html_bytes);
    if (percent < TEXT_MIN_PERCENT)
        verdict_fail(v,
                     "Only %.1f %% of the HTML is text. Add text, or move scripts and styles to "
                     "files, to reach %d %%.",
                     percent, TEXT_MIN_PERCENT);
    else
        verdict_pass(v);
}

/* ---- addresses ---- */

static bool is_local_char(char c)
{
    return text_is_digit(c) || text_is_letter(c) || (c != '\0' && strchr("._%+-", c) != NULL);
}

static bool is_domain_char(char c)
{
    return text_is_digit(c) || text_is_letter(c) || c == '.' || c == '-';
}

/* The e-mail address around the @ at ${at}; empty if there is none. */
static struct str address_at(struct str s, size_t at)
{
    size_t from = at, to = at + 1;
    while (from > 0 && is_local_char(s.p[from - 1]))
        from--;
    while (from < at && s.p[from] == '.')
        from++;
    while (to < s.n && is_domain_char(s.p[to]))
        to++;
    while (to > at + 1 && (s.p[to - 1] == '.' || s.p[to - 1] == '-'))
        to--;
    size_t top = to;
    while (top > at + 1 && s.p[top - 1] != '.')
        top--;
    bool dotted = top > at + 2 && to - top >= 2;
    for (size_t i = top; dotted && i < to; i++)
        dotted = text_is_letter(s.p[i]);
    return dotted && from < at && s.p[at + 1] != '.' && s.p[at + 1] != '-'
               ? (struct str){s.p + from, to - from}
               : STR("");
}

static size_t add_addresses(struct verdict *v, struct str s)
{
    size_t count = 0;
    for (size_t i = 0; i < s.n; i++) {
        const char *p = memchr(s.p + i, '@', s.n - i);
        if (p == NULL)
            break;
        i = (size_t)(p - s.p);
        struct str address = address_at(s, i);
        bool known = address.n == 0;
        for (size_t j = 0; !known && j < v->detail_count; j++)
            known = str_eq(v->details[j], address);
        if (known)
            continue;
        count++;
        verdict_detail(v, "%.*s", STR_ARG(address));
    }
    return count;
}

void check_plaintext_email(struct facts *f, struct verdict *v)
{
    size_t count = add_addresses(v, buf_view(&f->page.text)), at = 0;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_A, &at)) != NULL;) {
        struct str href = page_value(e, "href");
        if (text_starts(href, "mailto:"))
            count += add_addresses(v, text_from(href, 7));
    }
    verdict_number(v, (double)count);
    if (count > 0)
        verdict_fail(v,
                     "The page contains %zu e-mail %s that spammers can collect. Use a contact "
                     "form instead.",
                     count, verdict_plural(count, "address", "addresses"));
    else
        verdict_pass(v);
}

/* ---- social networks: hosts of profiles, and paths there that share instead ---- */

static const char *const social_hosts[] = {
    "facebook.com",    "instagram.com", "x.com",         "twitter.com", "linkedin.com",
    "youtube.com",     "tiktok.com",    "pinterest.com", "threads.net", "threads.com",
    "bsky.app",        "reddit.com",    "tumblr.com",    "vk.com",      "snapchat.com",
    "mastodon.social", "xing.com",      "t.me",          "twitch.tv",   "vimeo.com",
    "weibo.com",
};
static const char *const sharing_paths[] = {"/share",      "/sharer", "/intent", "/sharearticle",
                                            "/pin/create", "/dialog", "/submit", "/plugins"};

static bool is_profile(struct str url)
{
    struct str rest, host, path;
    if (!text_starts(url, "http://") && !text_starts(url, "https://"))
        return false;
    rest = text_from(url, text_starts(url, "https://") ? 8 : 7);
    text_split(rest, '/', &host, &path);
    path = text_from(rest, host.n);
    if (path.n < 2)
        return false;
    for (size_t i = 0; i < sizeof(sharing_paths) / sizeof(*sharing_paths); i++)
        if (text_starts(path, sharing_paths[i]))
            return false;
    for (size_t i = 0; i < sizeof(social_hosts) / sizeof(*social_hosts); i++) {
        size_t n = strlen(social_hosts[i]);
        if (text_ends(host, social_hosts[i]) && (host.n == n || host.p[host.n - n - 1] == '.'))
            return true;
    }
    return false;
}

void check_social(struct facts *f, struct verdict *v)
{
    size_t count = 0, at = 0;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_A, &at)) != NULL;) {
        struct str href = page_value(e, "href");
        if (text_starts(href, "//"))
            href = arena_printf(&f->arena, "https:%.*s", STR_ARG(href));
        if (!is_profile(href))
            continue;
        count++;
        verdict_detail(v, "%.*s", STR_ARG(href));
    }
    verdict_number(v, (double)count);
    if (count == 0)
        verdict_fail(v, "The page links to no social media profile. Add links to your profiles, if "
                        "you have any.");
    else
        verdict_pass(v);
}
