#include "config.h"

#include "page.h"
#include "text.h"

#define SLICE_BYTES 4096

/* What the content of an element is to a browser, when it is not markup. */
enum raw { RAW_NONE, RAW_DROP, RAW_TEXT, RAW_SCRIPT };

static const struct {
    const char *name;
    enum raw raw;
} raw_elements[] = {
    {"script", RAW_SCRIPT}, {"style", RAW_DROP},    {"noscript", RAW_DROP}, {"iframe", RAW_DROP}, {"noembed", RAW_DROP},
    {"noframes", RAW_DROP}, {"textarea", RAW_TEXT}, {"title", RAW_TEXT},    {"xmp", RAW_TEXT},
};

struct scan {
    struct str left; /* not read yet */
    page_feed_fn *feed;
    void *arg;
    char slice[SLICE_BYTES];
    size_t n;
    bool stopped;
    bool begun; /* something that is no comment, doctype or white space was seen */
};

static void flush(struct scan *s)
{
    if (s->n > 0 && !s->stopped && !s->feed(s->arg, s->slice, s->n))
        s->stopped = true;
    s->n = 0;
}

static void put(struct scan *s, const char *p, size_t n)
{
    while (n > 0 && !s->stopped) {
        size_t room = SLICE_BYTES - s->n;
        size_t some = n < room ? n : room;
        memcpy(s->slice + s->n, p, some);
        s->n += some;
        p += some;
        n -= some;
        if (s->n == SLICE_BYTES)
            flush(s);
    }
}

static void put_text(struct scan *s, struct str text)
{
    while (text.n > 0 && !s->stopped) {
        struct str before, after;
        bool more = text_split(text, '<', &before, &after);
        put(s, before.p, before.n);
        if (more)
            put(s, "&lt;", 4);
        text = after;
    }
}

/* Drop ${n} bytes of what is left. */
static void skip(struct scan *s, size_t n)
{
    s->left = text_from(s->left, n);
}

static void skip_past(struct scan *s, const char *end, size_t from)
{
    struct str rest = text_from(s->left, from);
    const char *p = memmem(rest.p, rest.n, end, strlen(end));
    skip(s, p == NULL ? s->left.n : (size_t)(p - s->left.p) + strlen(end));
}

/* <!-- …: ends at -->, --!> or, right at its start, > or -> (WHATWG HTML, 13.2.5.43 on). */
static void skip_comment(struct scan *s)
{
    struct str rest = text_from(s->left, 4);
    if (text_starts(rest, ">") || text_starts(rest, "->")) {
        skip_past(s, ">", 4);
        return;
    }
    for (;;) {
        const char *p = rest.n < 2 ? NULL : memmem(rest.p, rest.n, "--", 2);
        if (p == NULL) {
            skip(s, s->left.n);
            return;
        }
        rest = text_from(rest, (size_t)(p - rest.p) + 2);
        if (text_starts(rest, ">") || text_starts(rest, "!>")) {
            s->left = text_from(rest, rest.p[0] == '!' ? 2 : 1);
            return;
        }
        rest = (struct str){rest.p - 1, rest.n + 1}; /* "--->": the second dash may begin the end */
    }
}

struct tag {
    struct str name;
    size_t end;   /* bytes of the whole tag with its > */
    size_t whole; /* bytes from the < that may be passed on: whole attributes within the bounds */
    bool cut;
};

/* Bytes of one attribute at ${s}, value and white space before it included; 0 at the tag's end. s.n when the document ends first. */
static size_t attribute_bytes(struct str s)
{
    size_t i = 0;
    while (i < s.n && (text_is_space(s.p[i]) || s.p[i] == '/'))
        i++;
    if (i == s.n || s.p[i] == '>')
        return i == s.n ? s.n : 0;
    i++; /* even a = may begin a name */
    while (i < s.n && !text_is_space(s.p[i]) && s.p[i] != '/' && s.p[i] != '>' && s.p[i] != '=')
        i++;
    size_t name_end = i;
    while (i < s.n && text_is_space(s.p[i]))
        i++;
    if (i == s.n || s.p[i] != '=')
        return i == s.n ? s.n : name_end;
    i++;
    while (i < s.n && text_is_space(s.p[i]))
        i++;
    if (i < s.n && (s.p[i] == '"' || s.p[i] == '\'')) {
        const char *end = memchr(s.p + i + 1, s.p[i], s.n - i - 1);
        return end == NULL ? s.n : (size_t)(end - s.p) + 1;
    }
    while (i < s.n && !text_is_space(s.p[i]) && s.p[i] != '>')
        i++;
    return i;
}

/* The tag at ${s}, which begins with < or </ and a letter. False: the document ends within it, and browsers drop it. */
static bool read_tag(struct str s, struct tag *out)
{
    size_t at = s.p[1] == '/' ? 2 : 1;
    size_t begin = at;
    while (at < s.n && !text_is_space(s.p[at]) && s.p[at] != '/' && s.p[at] != '>')
        at++;
    *out = (struct tag){.name = {s.p + begin, at - begin}, .whole = at};
    for (unsigned attributes = 0;; attributes++) {
        size_t n = attribute_bytes(text_from(s, at));
        if (n == 0)
            break;
        at += n;
        if (at >= s.n)
            return false;
        if (at <= PAGE_TAG_BYTES && attributes < PAGE_TAG_ATTRIBUTES)
            out->whole = at;
        else
            out->cut = true;
    }
    const char *gt = memchr(s.p + at, '>', s.n - at);
    if (gt == NULL)
        return false;
    out->end = (size_t)(gt - s.p) + 1;
    return true;
}

static enum raw raw_of(struct str name)
{
    for (size_t i = 0; i < sizeof(raw_elements) / sizeof(*raw_elements); i++)
        if (text_eq(name, raw_elements[i].name))
            return raw_elements[i].raw;
    return RAW_NONE;
}

/* How far the raw text at ${s} goes: to </name, or to the end. */
static size_t raw_bytes(struct str s, struct str name)
{
    for (size_t at = 0; at < s.n;) {
        const char *p = memmem(s.p + at, s.n - at, "</", 2);
        if (p == NULL)
            return s.n;
        at = (size_t)(p - s.p);
        struct str after = text_from(s, at + 2);
        if (after.n > name.n && strncasecmp(after.p, name.p, name.n) == 0 &&
            (text_is_space(after.p[name.n]) || strchr("/>", after.p[name.n]) != NULL))
            return at;
        at += 2;
    }
    return s.n;
}

/* JSON-LD goes on to the parser, and nothing in it may look like an end tag: <\/ is the same JSON. */
static void put_script(struct scan *s, struct str text)
{
    while (text.n > 0 && !s->stopped) {
        const char *p = memmem(text.p, text.n, "</", 2);
        size_t n = p == NULL ? text.n : (size_t)(p - text.p) + 1;
        put(s, text.p, n);
        if (p != NULL)
            put(s, "\\", 1);
        text = text_from(text, n);
    }
}

static void start_tag(struct scan *s, const struct tag *tag)
{
    struct str source = s->left;
    if (tag->name.n > PAGE_TAG_BYTES) {
        skip(s, tag->end);
        return;
    }
    if (tag->cut) {
        put(s, source.p, tag->whole);
        put(s, ">", 1);
    } else {
        put(s, source.p, tag->end);
    }
    skip(s, tag->end);
    enum raw raw = raw_of(tag->name);
    if (raw == RAW_NONE)
        return;
    struct str inside = {s->left.p, raw_bytes(s->left, tag->name)};
    skip(s, inside.n);
    if (raw == RAW_TEXT)
        put_text(s, inside);
    else if (raw == RAW_SCRIPT && text_has((struct str){source.p, tag->whole}, "ld+json"))
        put_script(s, inside);
    /* What is not closed is closed here, lest the parser takes the end of the document for content. */
    if (s->left.n == 0) {
        put(s, "</", 2);
        put(s, tag->name.p, tag->name.n);
        put(s, ">", 1);
    }
}

static void end_tag(struct scan *s, const struct tag *tag)
{
    if (tag->name.n <= PAGE_TAG_BYTES) {
        put(s, "</", 2);
        put(s, tag->name.p, tag->name.n);
        put(s, ">", 1);
    }
    skip(s, tag->end);
}

static bool is_letter(struct str s, size_t at)
{
    return at < s.n && text_lower(s.p[at]) >= 'a' && text_lower(s.p[at]) <= 'z';
}

/* What follows a <. */
static void markup(struct scan *s, struct str *doctype)
{
    struct str at = s->left;
    struct tag tag;
    if (text_starts(at, "<!--")) {
        skip_comment(s);
    } else if (text_starts(at, "<!") || text_starts(at, "<?") || (text_starts(at, "</") && !is_letter(at, 2))) {
        bool is_doctype = text_starts(at, "<!doctype") && !s->begun && doctype->n == 0;
        skip_past(s, ">", 2);
        if (is_doctype && at.n > s->left.n)
            *doctype = (struct str){at.p + 2, at.n - s->left.n - (at.p[at.n - s->left.n - 1] == '>' ? 3 : 2)};
    } else if (!is_letter(at, at.n > 1 && at.p[1] == '/' ? 2 : 1)) {
        s->begun = true;
        put(s, "&lt;", 4);
        skip(s, 1);
    } else if (!read_tag(at, &tag)) {
        skip(s, at.n);
    } else {
        s->begun = true;
        if (at.p[1] == '/')
            end_tag(s, &tag);
        else
            start_tag(s, &tag);
    }
}

bool page_scan(struct str html, struct str *doctype, page_feed_fn *feed, void *arg)
{
    struct scan s = {.left = html, .feed = feed, .arg = arg};
    *doctype = (struct str){0};
    while (s.left.n > 0 && !s.stopped) {
        const char *lt = memchr(s.left.p, '<', s.left.n);
        struct str text = {s.left.p, lt == NULL ? s.left.n : (size_t)(lt - s.left.p)};
        if (text_trim(text).n > 0)
            s.begun = true;
        put(&s, text.p, text.n);
        skip(&s, text.n);
        if (lt != NULL)
            markup(&s, doctype);
    }
    flush(&s);
    return !s.stopped;
}
