#include "config.h"

#include "core/audit/page_scan_internal.h"
#include "core/audit/page_tags_internal.h"
#include "core/audit/text.h"

#define CHUNK_BYTES 4096

struct scan {
    struct str left; /* not yet read */
    const struct page_sink *sink;
    char chunk[CHUNK_BYTES];
    size_t n;
    bool stopped;
    bool content_seen;  /* anything but comments, doctype and white space was seen */
    bool element_seen;  /* an element was seen */
    bool head_over;     /* and PAGE_MARK_BODY was sent */
    bool space_pending; /* white space was seen since the last text */
    size_t templates;   /* number of open ones */
};

static void flush(struct scan *s)
{
    if (s->n > 0 && !s->stopped && !s->sink->feed(s->sink->arg, s->chunk, s->n))
        s->stopped = true;
    s->n = 0;
}

static void put(struct scan *s, const char *p, size_t n)
{
    while (n > 0 && !s->stopped) {
        size_t left = CHUNK_BYTES - s->n;
        size_t some = n < left ? n : left;
        memcpy(s->chunk + s->n, p, some);
        s->n += some;
        p += some;
        n -= some;
        if (s->n == CHUNK_BYTES)
            flush(s);
    }
}

static void put_mark(struct scan *s, char mark)
{
    char comment[] = "<!--?-->";
    comment[4] = mark;
    put(s, comment, sizeof(comment) - 1);
}

static void end_head(struct scan *s)
{
    if (s->head_over || s->templates > 0)
        return;
    s->head_over = true;
    put_mark(s, PAGE_MARK_BODY);
}

/* White space alone is no run: the next run gets RUN_AFTER_SPACE. */
static void put_text(struct scan *s, struct str text, unsigned flags)
{
    size_t i = 0;
    while (i < text.n && text_is_space(text.p[i]))
        i++;
    if (i < text.n)
        put_mark(s, s->sink->text(
                        s->sink->arg,
                        (struct page_run){text, flags | (s->space_pending ? RUN_AFTER_SPACE : 0)}));
    s->space_pending = i == text.n && (s->space_pending || i > 0);
}

/* Skip ${n} bytes of the input. */
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

/* A comment ends at -->, --!> or, directly after <!--, at > or -> (WHATWG HTML, 13.2.5.43 on). */
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

/* Attributes that the parser sees even of elements that are only counted. */
static const char *const counted_attributes[] = {"style", "lang", "hidden", "aria-hidden"};
#define COUNTED_ATTRIBUTES (sizeof(counted_attributes) / sizeof(*counted_attributes))

struct tag {
    struct str name;
    const struct page_tag_info *known; /* NULL: unknown */
    size_t end;                        /* bytes of the tag, up to and including > */
    size_t whole; /* bytes from < that may be passed on: complete attributes within the limits */
    bool cut;
    bool closes_itself;
    struct str counted[COUNTED_ATTRIBUTES]; /* as written, with leading separators */
};

static bool is_kept(const struct tag *tag)
{
    return tag->known != NULL && tag->known->tag != TAG_OTHER;
}

/*
 * Length of one attribute at ${s}, with its value and leading white space. 0 at the end of the tag,
 * s.n if the document ends first.
 */
static size_t attribute_bytes(struct str s)
{
    size_t i = 0;
    while (i < s.n && (text_is_space(s.p[i]) || s.p[i] == '/'))
        i++;
    if (i == s.n || s.p[i] == '>')
        return i == s.n ? s.n : 0;
    i++; /* a name may begin with = */
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

static void note_attribute(struct tag *tag, struct str s)
{
    struct str name = s;
    while (name.n > 0 && (text_is_space(name.p[0]) || name.p[0] == '/'))
        name = text_from(name, 1);
    for (size_t i = 0; i < COUNTED_ATTRIBUTES; i++) {
        size_t n = strlen(counted_attributes[i]);
        if (tag->counted[i].n == 0 && text_starts(name, counted_attributes[i]) &&
            (name.n == n || strchr("= \t\n\f\r", name.p[n]) != NULL))
            tag->counted[i] = s;
    }
}

/*
 * Read the tag at ${s}, which begins with < or </ and a letter. False: the document ends within it,
 * so browsers drop it.
 */
static bool read_tag(struct str s, struct tag *out)
{
    size_t at = s.p[1] == '/' ? 2 : 1;
    size_t begin = at;
    while (at < s.n && !text_is_space(s.p[at]) && s.p[at] != '/' && s.p[at] != '>')
        at++;
    *out = (struct tag){.name = {s.p + begin, at - begin}, .whole = at};
    out->known = page_tag_find(out->name);
    for (unsigned attributes = 0;; attributes++) {
        size_t n = at < s.n && s.p[at] == '>' ? 0 : attribute_bytes(text_from(s, at));
        if (n == 0)
            break;
        if (n <= PAGE_TAG_BYTES && !is_kept(out))
            note_attribute(out, (struct str){s.p + at, n});
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
    out->closes_itself = gt[-1] == '/';
    return true;
}

/* Length of the raw text at ${s}: up to </name, or to the end. */
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

/*
 * Pass JSON-LD and styles to the parser with </ written as <\/, which means the same there, so that
 * nothing looks like an end tag.
 */
static void put_raw(struct scan *s, struct str text)
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

static void put_start_tag(struct scan *s, const struct tag *tag)
{
    const char *source = s->left.p;
    if (is_kept(tag) && !tag->cut) {
        put(s, source, tag->end);
        return;
    }
    if (tag->known != NULL && tag->known->content == CONTENT_REST) {
        put(s, "<pre>", 5); /* the parser would not find the end of <plaintext> */
        return;
    }
    put(s, source, is_kept(tag) ? tag->whole : (size_t)(tag->name.p - source) + tag->name.n);
    for (size_t i = 0; i < COUNTED_ATTRIBUTES; i++) {
        put(s, tag->counted[i].p, tag->counted[i].n);
        put(s, " ", tag->counted[i].n > 0);
    }
    put(s, "/", tag->closes_itself);
    put(s, ">", 1);
}

static void put_end_tag(struct scan *s, struct str name)
{
    put(s, "</", 2);
    put(s, name.p, name.n);
    put(s, ">", 1);
}

/*
 * Handle the content of the element whose start tag was just passed on, if the content is no
 * markup.
 */
static void put_content(struct scan *s, const struct tag *tag, struct str attributes)
{
    enum page_content content = tag->known->content;
    struct str inside = {s->left.p,
                         content == CONTENT_REST ? s->left.n : raw_bytes(s->left, tag->name)};
    skip(s, inside.n);
    if (content == CONTENT_DECODED)
        put_text(s, inside, RUN_DECODED);
    else if (content == CONTENT_VERBATIM || content == CONTENT_REST)
        put_text(s, inside, 0);
    else if (content == CONTENT_STYLE ||
             (content == CONTENT_SCRIPT && text_has(attributes, "ld+json")))
        put_raw(s, inside);
    /*
     * An element that the document does not close is closed here. Otherwise the parser would treat
     * the end of the document as its content.
     */
    if (s->left.n == 0)
        put_end_tag(s, content == CONTENT_REST ? STR("pre") : tag->name);
}

static void start_tag(struct scan *s, const struct tag *tag)
{
    struct str attributes = {s->left.p, tag->whole};
    if (tag->name.n > PAGE_TAG_BYTES) {
        skip(s, tag->end);
        return;
    }
    if (tag->known == NULL || (tag->known->flags & PAGE_TAG_IN_HEAD) == 0)
        end_head(s);
    put_start_tag(s, tag);
    s->element_seen = true;
    skip(s, tag->end);
    if (tag->known == NULL)
        return;
    s->templates += tag->known->tag == TAG_TEMPLATE;
    if (tag->known->content != CONTENT_MARKUP)
        put_content(s, tag, attributes);
}

static void end_tag(struct scan *s, const struct tag *tag)
{
    /*
     * Content after </body> and </html> still belongs to the body, but the parser would take these
     * tags for the end.
     */
    bool is_end =
        tag->known != NULL && (tag->known->tag == TAG_BODY || tag->known->tag == TAG_HTML);
    /* </br> means <br>; </p> without <p> means an empty paragraph, which separates words */
    if (text_eq(tag->name, "br")) {
        end_head(s);
        put(s, "<br>", 4);
        s->element_seen = true;
    } else if (s->element_seen && tag->name.n <= PAGE_TAG_BYTES && !is_end) {
        /* before the first element, the parser would take an end tag for the end of the document */
        put_end_tag(s, tag->name);
    }
    s->space_pending = s->space_pending || text_eq(tag->name, "p");
    if (tag->known != NULL && tag->known->tag == TAG_TEMPLATE && s->templates > 0)
        s->templates--;
    skip(s, tag->end);
}

static bool is_letter(struct str s, size_t at)
{
    return at < s.n && text_is_letter(s.p[at]);
}

/* Markup begins at ${s}, which begins with <. Otherwise the < is text. */
static bool is_markup(struct str s)
{
    return s.n > 1 &&
           (is_letter(s, 1) || s.p[1] == '!' || s.p[1] == '?' || (s.p[1] == '/' && s.n > 2));
}

static void markup(struct scan *s, struct str *doctype)
{
    struct str at = s->left;
    struct tag tag;
    if (text_starts(at, "<!--")) {
        skip_comment(s);
    } else if (at.p[1] == '!' || at.p[1] == '?' || (at.p[1] == '/' && !is_letter(at, 2))) {
        bool is_doctype = text_starts(at, "<!doctype") && !s->content_seen && doctype->n == 0;
        skip_past(s, ">", 2);
        if (is_doctype && at.n > s->left.n)
            *doctype = (struct str){at.p + 2,
                                    at.n - s->left.n - (at.p[at.n - s->left.n - 1] == '>' ? 3 : 2)};
    } else if (!read_tag(at, &tag)) {
        skip(s, at.n);
    } else {
        s->content_seen = true;
        if (at.p[1] == '/')
            end_tag(s, &tag);
        else
            start_tag(s, &tag);
    }
}

/* Handle text up to the next markup. */
static void text(struct scan *s)
{
    size_t n = 0;
    for (const char *lt; n < s->left.n; n++) {
        lt = memchr(s->left.p + n, '<', s->left.n - n);
        n = lt == NULL ? s->left.n : (size_t)(lt - s->left.p);
        if (lt == NULL || is_markup(text_from(s->left, n)))
            break;
    }
    struct str run = {s->left.p, n};
    if (text_trim(run).n > 0) {
        s->content_seen = true;
        end_head(s);
    }
    put_text(s, run, RUN_DECODED);
    skip(s, n);
}

bool page_scan(struct str html, struct str *doctype, const struct page_sink *sink)
{
    struct scan s = {.left = html, .sink = sink};
    *doctype = (struct str){0};
    while (s.left.n > 0 && !s.stopped) {
        text(&s);
        if (s.left.n > 0)
            markup(&s, doctype);
    }
    flush(&s);
    return !s.stopped;
}
