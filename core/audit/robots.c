#include "config.h"

#include "core/audit/robots_internal.h"
#include "core/audit/text.h"

#define PATTERN_MAX_BYTES 8192 /* Longer rules are ignored: no URL is that long. */

bool robots_line(struct str *rest, struct robots_line *out)
{
    while (rest->n > 0) {
        size_t n = 0;
        while (n < rest->n && rest->p[n] != '\n' && rest->p[n] != '\r')
            n++;
        struct str line = {rest->p, n};
        if (n + 1 < rest->n && rest->p[n] == '\r' && rest->p[n + 1] == '\n')
            n++;
        *rest = text_from(*rest, n + 1);
        if (++out->number == 1 && text_starts(line, "\xEF\xBB\xBF"))
            line = text_from(line, 3);
        struct str comment;
        out->whole = text_trim(line);
        text_split(line, '#', &line, &comment);
        line = text_trim(line);
        if (line.n == 0)
            continue;
        if (text_split(line, ':', &out->name, &out->value)) {
            out->name = text_trim(out->name);
            out->value = text_trim(out->value);
        } else {
            out->name = (struct str){0};
            out->value = line;
        }
        return true;
    }
    return false;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'                           ? c - '0'
           : text_lower(c) >= 'a' && text_lower(c) <= 'f' ? text_lower(c) - 'a' + 10
                                                          : -1;
}

static bool is_unreserved(unsigned char c)
{
    return text_is_digit((char)c) || text_is_letter((char)c) ||
           (c != 0 && strchr("-._~", c) != NULL);
}

/*
 * Canonical form of percent-encodings: unreserved characters bare, bytes beyond ASCII encoded, hex
 * digits in upper case. ${out} has space for three times ${s}.
 */
static size_t canonical(struct str s, char *out)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool encoded = c == '%' && i + 2 < s.n && hex(s.p[i + 1]) >= 0 && hex(s.p[i + 2]) >= 0;
        if (encoded) {
            c = (unsigned char)(hex(s.p[i + 1]) * 16 + hex(s.p[i + 2]));
            i += 2;
        }
        if (encoded ? is_unreserved(c) : c < 0x80) {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = digits[c >> 4];
            out[n++] = digits[c & 15];
        }
    }
    return n;
}

/*
 * In a pattern, * matches any bytes and a final $ the end. Each piece between stars may match at
 * its leftmost position, except the last one before $.
 */
static bool matches(struct str pattern, struct str target)
{
    bool anchored = pattern.n > 0 && pattern.p[pattern.n - 1] == '$';
    if (anchored)
        pattern.n--;
    bool first = true;
    for (;;) {
        struct str piece, rest;
        bool star = text_split(pattern, '*', &piece, &rest);
        if (!star && anchored) {
            if (piece.n > target.n || (first && piece.n != target.n))
                return false;
            return piece.n == 0 || memcmp(target.p + target.n - piece.n, piece.p, piece.n) == 0;
        }
        if (first) {
            if (piece.n > target.n || (piece.n > 0 && memcmp(piece.p, target.p, piece.n) != 0))
                return false;
            target = text_from(target, piece.n);
        } else if (piece.n > 0) {
            const char *at = memmem(target.p, target.n, piece.p, piece.n);
            if (at == NULL)
                return false;
            target = text_from(target, (size_t)(at - target.p) + piece.n);
        }
        if (!star)
            return true;
        pattern = rest;
        first = false;
    }
}

/*
 * The length of ${pattern} if it matches ${target}, else -1. Percent-encodings are compared by
 * meaning (RFC 9309, 2.2.2).
 */
static long robots_match(struct str pattern, struct str target)
{
    char p[3 * PATTERN_MAX_BYTES], t[3 * PATTERN_MAX_BYTES];
    if (pattern.n > PATTERN_MAX_BYTES || target.n > PATTERN_MAX_BYTES)
        return -1;
    size_t pn = canonical(pattern, p), tn = canonical(target, t);
    return matches((struct str){p, pn}, (struct str){t, tn}) ? (long)pn : -1;
}

/*
 * A user-agent line's ${value} names ${agent}: the product token of letters, - and _, ignoring case
 * (2.2.1).
 */
static bool names(struct str value, const char *agent)
{
    size_t n = 0;
    while (n < value.n &&
           (text_lower(value.p[n]) == '-' || value.p[n] == '_' || text_is_letter(value.p[n])))
        n++;
    return n > 0 && text_eq((struct str){value.p, n}, agent);
}

enum { GROUP_NONE = 0, GROUP_STAR = 1, GROUP_AGENT = 2 };

/* Judge by the groups of ${kind}; false if there is none. */
static bool judge_group(struct str text, const char *agent, struct str target, int kind,
                        struct robots_verdict *out)
{
    struct robots_line line = {0};
    int group = GROUP_NONE;
    bool in_agents = false, found = false;
    long longest = -1;
    while (robots_line(&text, &line)) {
        if (text_eq(line.name, "user-agent") || text_eq(line.name, "useragent")) {
            if (!in_agents)
                group = GROUP_NONE;
            in_agents = true;
            group |= names(line.value, agent)   ? GROUP_AGENT
                     : text_eq(line.value, "*") ? GROUP_STAR
                                                : GROUP_NONE;
            found = found || (group & kind) != 0;
            continue;
        }
        bool allow = text_eq(line.name, "allow");
        if (!allow && !text_eq(line.name, "disallow"))
            continue; /* other records, such as sitemap, do not end a group (2.2.4) */
        in_agents = false;
        if ((group & kind) == 0 || line.value.n == 0)
            continue;
        long length = robots_match(line.value, target);
        if (length < 0 || length < longest || (length == longest && !allow))
            continue;
        longest = length;
        *out = (struct robots_verdict){.allowed = allow, .rule = line.whole, .line = line.number};
    }
    return found;
}

void robots_judge(struct str text, const char *agent, struct str target, struct robots_verdict *out)
{
    *out = (struct robots_verdict){.allowed = true};
    if (text_eq(target, "/robots.txt") || judge_group(text, agent, target, GROUP_AGENT, out))
        return;
    *out = (struct robots_verdict){.allowed = true};
    judge_group(text, agent, target, GROUP_STAR, out);
}
