#include "core/http/head_checks.h"

/* Headers that may appear only once. */
enum single {
    SINGLE_HOST,
    SINGLE_CONTENT_LENGTH,
    SINGLE_TRANSFER_ENCODING,
    SINGLE_AUTHORIZATION,
    SINGLE_CONTENT_TYPE,
    SINGLE_COUNT
};

static const struct {
    struct str name;
    const char *twice;
} singles[SINGLE_COUNT] = {
    [SINGLE_HOST] = {STR("host"), "The request has two Host headers."},
    [SINGLE_CONTENT_LENGTH] = {STR("content-length"),
                               "The request has two Content-Length headers."},
    [SINGLE_TRANSFER_ENCODING] = {STR("transfer-encoding"),
                                  "The request has two Transfer-Encoding headers."},
    [SINGLE_AUTHORIZATION] = {STR("authorization"), "The request has two Authorization headers."},
    [SINGLE_CONTENT_TYPE] = {STR("content-type"), "The request has two Content-Type headers."},
};

/* Whether ${p} begins with ${name} (lower case, 4 or at least 8 bytes), ignoring case. */
static inline bool begins(const char *p, struct str name)
{
    static const uint64_t small = 0x2020202020202020u;
    uint64_t a = 0, b = 0;
    if (name.n < 8) {
        memcpy(&a, p, 4);
        memcpy(&b, name.p, 4);
        return ((a | small) & 0xffffffff) == b;
    }
    for (size_t at = 0;; at = at + 16 <= name.n ? at + 8 : name.n - 8) {
        memcpy(&a, p + at, 8);
        memcpy(&b, name.p + at, 8);
        if ((a | small) != b)
            return false;
        if (at + 8 == name.n)
            return true;
    }
}

/* SINGLE_COUNT: none of them. */
static enum single find_single(const char *line, const char *eol)
{
    static const uint8_t by_letter[26] = {['a' - 'a'] = 1 + SINGLE_AUTHORIZATION,
                                          ['c' - 'a'] = 1 + SINGLE_CONTENT_LENGTH,
                                          ['h' - 'a'] = 1 + SINGLE_HOST,
                                          ['t' - 'a'] = 1 + SINGLE_TRANSFER_ENCODING};
    unsigned letter = (unsigned)((*line | 0x20) - 'a');
    if (letter >= 26 || by_letter[letter] == 0)
        return SINGLE_COUNT;
    enum single i = by_letter[letter] - 1;
    if (i == SINGLE_CONTENT_LENGTH && eol - line > 12 && line[12] == ':')
        i = SINGLE_CONTENT_TYPE;
    size_t n = singles[i].name.n;
    return (size_t)(eol - line) > n && line[n] == ':' && begins(line, singles[i].name)
               ? i
               : SINGLE_COUNT;
}

const char *head_fault(struct str raw, bool http11, bool *chunked)
{
    unsigned seen[SINGLE_COUNT + 1] = {0};
    *chunked = false;
    const char *p = raw.p, *end = raw.p + (raw.n < HEAD_MAX_BYTES ? raw.n : HEAD_MAX_BYTES);
    if (end - p >= 2 && p[0] == '\r' && p[1] == '\n')
        p += 2; /* an empty line before the request is ignored (RFC 9112 §2.2) */
    for (bool request_line = true;; request_line = false) {
        const char *eol = memchr(p, '\n', (size_t)(end - p));
        if (eol == NULL)
            return "The request head is larger than 32 KiB.";
        if (eol == p || eol[-1] != '\r')
            return "A line of the request head ends without a carriage return.";
        if (eol - p == 1 && !request_line)
            break;
        if (!request_line) {
            if (*p == ' ' || *p == '\t')
                return "A header is folded over several lines.";
            enum single i = find_single(p, eol);
            if (seen[i]++ > 0 && i != SINGLE_COUNT)
                return singles[i].twice;
        }
        p = eol + 1;
    }
    *chunked = seen[SINGLE_TRANSFER_ENCODING] > 0;
    if (seen[SINGLE_CONTENT_LENGTH] > 0 && seen[SINGLE_TRANSFER_ENCODING] > 0)
        return "The request has both Content-Length and Transfer-Encoding.";
    if (seen[SINGLE_TRANSFER_ENCODING] > 0 && !http11)
        return "An HTTP/1.0 request cannot have Transfer-Encoding.";
    if (seen[SINGLE_HOST] == 0 && http11)
        return "The request has no Host header.";
    return NULL;
}
