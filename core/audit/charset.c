#include "config.h"

#include "core/audit/charset_internal.h"
#include "core/audit/text.h"

#include <errno.h>
#include <iconv.h>
#include <stdio.h>

#define PRESCAN_BYTES 1024
static const char replacement[] = "\xEF\xBF\xBD";

static bool set_name(struct charset *out, struct str name)
{
    name = text_trim(name);
    if (name.n >= 2 && (name.p[0] == '"' || name.p[0] == '\'') && name.p[name.n - 1] == name.p[0])
        name = text_trim((struct str){name.p + 1, name.n - 2});
    if (name.n == 0 || name.n >= sizeof(out->name))
        return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = text_lower(name.p[i]);
        /* rejects iconv's suffixes such as //IGNORE, and anything else that no label contains */
        if (!((c >= 'a' && c <= 'z') || text_is_digit(c) || strchr("-_.:+()", c) != NULL))
            return false;
        out->name[i] = c;
    }
    out->name[name.n] = '\0';
    return true;
}

/*
 * The value after "charset" in a header or a meta's content (WHATWG HTML, "extracting a character
 * encoding from a meta element").
 */
static bool from_content(struct str s, struct charset *out)
{
    while (s.n >= 7) {
        if (!text_starts(s, "charset")) {
            s = text_from(s, 1);
            continue;
        }
        s = text_trim(text_from(s, 7));
        if (s.n == 0 || s.p[0] != '=')
            continue;
        s = text_trim(text_from(s, 1));
        if (s.n > 0 && (s.p[0] == '"' || s.p[0] == '\'')) {
            struct str value, rest;
            if (!text_split(text_from(s, 1), s.p[0], &value, &rest))
                return false;
            return set_name(out, value);
        }
        struct str value;
        return text_token(&s, "; \t\n\f\r", &value) && set_name(out, value);
    }
    return false;
}

/* Read one attribute of the tag at ${s}; false at the end of the tag. */
static bool next_attribute(struct str *s, struct str *name, struct str *value)
{
    while (s->n > 0 && (text_is_space(s->p[0]) || s->p[0] == '/'))
        *s = text_from(*s, 1);
    if (s->n == 0 || s->p[0] == '>')
        return false;
    size_t n = 0;
    while (n < s->n && !text_is_space(s->p[n]) && strchr("=>/", s->p[n]) == NULL)
        n++;
    *name = (struct str){s->p, n};
    *value = (struct str){s->p, 0};
    *s = text_from(*s, n == 0 ? 1 : n);
    struct str after = *s;
    while (after.n > 0 && text_is_space(after.p[0]))
        after = text_from(after, 1);
    if (after.n == 0 || after.p[0] != '=')
        return true;
    after = text_from(after, 1);
    while (after.n > 0 && text_is_space(after.p[0]))
        after = text_from(after, 1);
    if (after.n > 0 && (after.p[0] == '"' || after.p[0] == '\'')) {
        text_split(text_from(after, 1), after.p[0], value, s);
        return true;
    }
    n = 0;
    while (n < after.n && !text_is_space(after.p[n]) && after.p[n] != '>')
        n++;
    *value = (struct str){after.p, n};
    *s = text_from(after, n);
    return true;
}

static bool from_meta(struct str tag, struct charset *out)
{
    struct str name, value, content = {0};
    bool is_type = false;
    while (next_attribute(&tag, &name, &value)) {
        if (text_eq(name, "charset") && set_name(out, value))
            return true;
        if (text_eq(name, "http-equiv"))
            is_type = text_eq(text_trim(value), "content-type");
        if (text_eq(name, "content"))
            content = value;
    }
    return is_type && from_content(content, out);
}

static bool prescan(struct str body, struct charset *out)
{
    struct str s = {body.p, body.n < PRESCAN_BYTES ? body.n : PRESCAN_BYTES};
    while (s.n > 0) {
        const char *lt = memchr(s.p, '<', s.n);
        if (lt == NULL)
            return false;
        s = text_from(s, (size_t)(lt - s.p));
        if (text_starts(s, "<!--")) {
            const char *end = memmem(s.p + 2, s.n - 2, "-->", 3);
            if (end == NULL)
                return false;
            s = text_from(s, (size_t)(end - s.p) + 3);
            continue;
        }
        if (text_starts(s, "<meta") && s.n > 5 && (text_is_space(s.p[5]) || s.p[5] == '/') &&
            from_meta(text_from(s, 5), out))
            return true;
        s = text_from(s, 1);
    }
    return false;
}

static void find_declared(struct str body, struct str content_type, struct charset *out)
{
    static const struct {
        const char *mark, *name;
        size_t n;
    } marks[] = {
        {"\xEF\xBB\xBF", "utf-8", 3}, {"\xFE\xFF", "utf-16be", 2}, {"\xFF\xFE", "utf-16le", 2}};
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
        if (body.n >= marks[i].n && memcmp(body.p, marks[i].mark, marks[i].n) == 0) {
            out->source = CHARSET_BOM;
            out->skip = marks[i].n;
            snprintf(out->name, sizeof(out->name), "%s", marks[i].name);
            return;
        }
    }
    if (from_content(content_type, out)) {
        out->source = CHARSET_HEADER;
        if (charset_iconv_name(out->name) != NULL)
            return;
    }
    struct charset meta = {.known = true};
    if (!prescan(body, &meta) ||
        (out->source == CHARSET_HEADER && charset_iconv_name(meta.name) == NULL))
        return;
    *out = meta;
    out->source = CHARSET_META;
    /* A meta tag that was readable as ASCII is not UTF-16, whatever it declares. */
    if (strncmp(out->name, "utf-16", 6) == 0)
        snprintf(out->name, sizeof(out->name), "utf-8");
}

void charset_find(struct str body, struct str content_type, struct charset *out)
{
    *out = (struct charset){.known = true};
    find_declared(body, content_type, out);
    if (out->source == CHARSET_DEFAULT)
        snprintf(out->name, sizeof(out->name), "windows-1252");
    else
        out->known = charset_iconv_name(out->name) != NULL;
}

/* Length of the valid UTF-8 sequence at ${p}; 0: invalid (RFC 3629). */
static size_t utf8_valid(const unsigned char *p, size_t n)
{
    if (p[0] < 0x80)
        return p[0] == 0 ? 0 : 1;
    size_t need = p[0] >= 0xC2 && p[0] <= 0xDF   ? 2
                  : (p[0] & 0xF0) == 0xE0        ? 3
                  : p[0] >= 0xF0 && p[0] <= 0xF4 ? 4
                                                 : 0;
    if (need == 0 || n < need)
        return 0;
    for (size_t i = 1; i < need; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
        (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return need;
}

static void add_clean(struct str s, struct buf *out)
{
    const unsigned char *p = (const unsigned char *)s.p;
    size_t clean = 0;
    if (s.n == 0)
        return;
    for (size_t i = 0; i < s.n;) {
        size_t n = utf8_valid(p + i, s.n - i);
        if (n > 0) {
            i += n;
            continue;
        }
        buf_add(out, s.p + clean, i - clean);
        buf_add(out, replacement, sizeof(replacement) - 1);
        clean = ++i;
    }
    buf_add(out, s.p + clean, s.n - clean);
}

static void add_converted(iconv_t cd, struct str s, struct buf *out)
{
    char *in = (char *)(uintptr_t)s.p;
    size_t left = s.n;
    while (left > 0 && buf_ok(out)) {
        char piece[4096];
        char *to = piece;
        size_t unused = sizeof(piece);
        size_t got = iconv(cd, &in, &left, &to, &unused);
        int code = errno;
        add_clean((struct str){piece, sizeof(piece) - unused}, out);
        if (got == (size_t)-1 && code != E2BIG && left > 0) {
            buf_add(out, replacement, sizeof(replacement) - 1);
            in++;
            left--;
        }
    }
}

bool charset_clean_utf8(struct str s, struct buf *out)
{
    add_clean(s, out);
    return buf_ok(out);
}

bool charset_to_utf8(const struct charset *charset, struct str body, struct buf *out)
{
    struct str s = text_from(body, charset->skip);
    const char *name = charset->known ? charset_iconv_name(charset->name) : "windows-1252";
    if (strcmp(name, "utf-8") == 0)
        return charset_clean_utf8(s, out);
    iconv_t cd = iconv_open("UTF-8", name);
    if (cd == (iconv_t)-1)
        return charset_clean_utf8(s, out);
    add_converted(cd, s, out);
    iconv_close(cd);
    return buf_ok(out);
}

struct str charset_copy_utf8(struct arena *arena, struct str s)
{
    struct buf clean = {0};
    struct str out = STR("");
    if (charset_clean_utf8(s, &clean))
        out = arena_copy(arena, buf_view(&clean));
    buf_free(&clean);
    return out;
}
