#include "core/text/json_scan.h"

#include "core/text/form.h"

#include <errno.h>
#include <limits.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct scan {
    const char *p, *end;
    unsigned depth, values;
    enum json_verdict verdict;
    const char *at, *expected; /* where the fault is, and what could be there */
    struct buf names; /* uint64_t digests of the members of all open objects, innermost last */
    struct str wanted, found; /* a member of the outermost object, and its value */
    unsigned outermost;       /* value of ${depth} within it */
};

/* Names with the same digest count as equal; the chance for different names is 1 in 2^64. */
#define DIGEST_START UINT64_C(0xcbf29ce484222325)
#define DIGEST_FACTOR UINT64_C(0x9fb21c651e98df25)

/* Cold: inlined, it slows down the scan of valid texts by 7 %. */
static bool __attribute__((cold, noinline))
refuse_at(struct scan *s, enum json_verdict verdict, const char *at, const char *expected)
{
    if (s->verdict == JSON_SCAN_OK) {
        s->verdict = verdict;
        s->at = at;
        s->expected = expected;
    }
    return false;
}

static bool refuse(struct scan *s, enum json_verdict verdict)
{
    return refuse_at(s, verdict, s->p, NULL);
}

static bool malformed(struct scan *s, const char *expected)
{
    return refuse_at(s, JSON_SCAN_MALFORMED, s->p, expected);
}

static void skip_space(struct scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

static bool take(struct scan *s, char c)
{
    if (s->p == s->end || *s->p != c)
        return false;
    s->p++;
    return true;
}

static void digest(uint64_t *hash, uint32_t code_point)
{
    *hash = (*hash ^ code_point) * DIGEST_FACTOR;
    *hash ^= *hash >> 32;
}

/* ---- strings ---- */

static bool four_digits(struct scan *s, uint32_t *out)
{
    *out = 0;
    if (s->end - s->p < 4)
        return false;
    for (int i = 0; i < 4; i++, s->p++) {
        char c = *s->p, low = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            *out = *out << 4 | (uint32_t)(c - '0');
        else if (low >= 'a' && low <= 'f')
            *out = *out << 4 | (uint32_t)(low - 'a' + 10);
        else
            return false;
    }
    return true;
}

/* After "\u": a code point, of one unit or of a surrogate pair. */
static bool scan_unicode(struct scan *s, uint32_t *out)
{
    const char *from = s->p - 2;
    uint32_t low;
    if (!four_digits(s, out))
        return malformed(s, "four hexadecimal digits after \\u");
    if (*out >= 0xd800 && *out <= 0xdbff) {
        if (!take(s, '\\') || !take(s, 'u') || !four_digits(s, &low) || low < 0xdc00 ||
            low > 0xdfff)
            return refuse_at(s, JSON_SCAN_ENCODING, from, NULL);
        *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
        return true;
    }
    return (*out >= 0xdc00 && *out <= 0xdfff) || *out == 0
               ? refuse_at(s, JSON_SCAN_ENCODING, from, NULL)
               : true;
}

#define UNTERMINATED "the closing \" of the string"

static bool scan_escape(struct scan *s, uint32_t *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (s->p == s->end)
        return malformed(s, UNTERMINATED);
    char c = *s->p++;
    if (c == 'u')
        return scan_unicode(s, out);
    const char *at = c == '\0' ? NULL : strchr(from, c);
    if (at == NULL)
        return refuse_at(s, JSON_SCAN_MALFORMED, s->p - 1,
                         "one of \" \\ / b f n r t u after the backslash");
    *out = (unsigned char)to[at - from];
    return true;
}

/* of the valid UTF-8 at s->p */
static uint32_t code_point(struct scan *s)
{
    unsigned char lead = (unsigned char)*s->p++;
    unsigned more = lead < 0x80 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    uint32_t c = more == 0 ? lead : lead & (0x3fu >> more);
    for (; more > 0; more--)
        c = c << 6 | ((unsigned char)*s->p++ & 0x3f);
    return c;
}

#define EACH(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Is any of eight bytes below 0x20, a quote or a backslash? */
static bool any_special(uint64_t v)
{
    uint64_t quote = v ^ EACH('"'), slash = v ^ EACH('\\');
    return ((((v - EACH(0x20)) & ~v) | ((quote - EACH(1)) & ~quote) |
             ((slash - EACH(1)) & ~slash)) &
            EACH(0x80)) != 0;
}

/* Skip to the next quote, escape or control character. */
static void skip_plain(struct scan *s)
{
    for (uint64_t v; s->end - s->p >= (ptrdiff_t)sizeof(v); s->p += sizeof(v)) {
        memcpy(&v, s->p, sizeof(v));
        if (any_special(v))
            break;
    }
    while (s->p < s->end && *s->p != '"' && *s->p != '\\' && (unsigned char)*s->p >= 0x20)
        s->p++;
}

/* The rest of a string after its opening quote. ${hash}: digest of its characters, or NULL. */
static bool scan_string(struct scan *s, uint64_t *hash)
{
    while (s->p < s->end) {
        uint32_t c;
        if (hash == NULL)
            skip_plain(s);
        if (take(s, '"'))
            return true;
        if (s->p == s->end)
            break;
        if ((unsigned char)*s->p < 0x20)
            return malformed(s, "an escape such as \\n or \\t instead of a control character");
        if (*s->p != '\\')
            c = code_point(s);
        else if (s->p++, !scan_escape(s, &c))
            return false;
        if (hash != NULL)
            digest(hash, c);
    }
    return malformed(s, UNTERMINATED);
}

/* ---- numbers ---- */

static size_t scan_digits(struct scan *s)
{
    const char *from = s->p;
    while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
        s->p++;
    return (size_t)(s->p - from);
}

/* Few digits and a small exponent: no need to convert it, which is slow. */
static bool surely_fits(struct str number)
{
    size_t mantissa = 0;
    while (mantissa < number.n && (number.p[mantissa] | 0x20) != 'e')
        mantissa++;
    bool small = number.n - mantissa <= strlen("e99") || number.p[mantissa + 1] == '-';
    return mantissa <= 100 && small;
}

static bool number_fits(struct str number, bool whole)
{
    char text[400], *end;
    if (!whole && surely_fits(number))
        return true;
    if (number.n >= sizeof(text)) /* no sensible number is that long */
        return false;
    memcpy(text, number.p, number.n);
    text[number.n] = '\0';
    errno = 0;
    if (whole)
        return strtoll(text, &end, 10), errno == 0;
    return isfinite(strtod(text, &end));
}

#define DIGIT "a digit"

static bool scan_number(struct scan *s)
{
    const char *from = s->p;
    bool whole = true;
    take(s, '-');
    const char *first = s->p;
    size_t digits = scan_digits(s);
    if (digits == 0)
        return malformed(s, DIGIT);
    if (digits > 1 && *first == '0')
        return refuse_at(s, JSON_SCAN_MALFORMED, first, "a number without leading zeros");
    if (take(s, '.')) {
        whole = false;
        if (scan_digits(s) == 0)
            return malformed(s, DIGIT);
    }
    if (take(s, 'e') || take(s, 'E')) {
        whole = false;
        if (!take(s, '+'))
            take(s, '-');
        if (scan_digits(s) == 0)
            return malformed(s, DIGIT);
    }
    return number_fits((struct str){from, (size_t)(s->p - from)}, whole)
               ? true
               : refuse_at(s, JSON_SCAN_RANGE, from, NULL);
}

/* ---- values ---- */

#define VALUE                                                                                      \
    "a value: an object, an array, a string in double quotes, a number, true, false or null"

static bool scan_word(struct scan *s)
{
    static const struct str words[] = {STR("true"), STR("false"), STR("null")};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if ((size_t)(s->end - s->p) >= words[i].n && memcmp(s->p, words[i].p, words[i].n) == 0) {
            s->p += words[i].n;
            return true;
        }
    return malformed(s, VALUE);
}

static bool scan_value(struct scan *s);

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

#define FEW_NAMES 24 /* comparing each with each is faster than sorting up to here */

static bool all_differ(const uint64_t *names, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t before = 0; before < i; before++)
            if (names[i] == names[before])
                return false;
    return true;
}

static bool duplicate_name(struct scan *s)
{
    return refuse_at(s, JSON_SCAN_DUPLICATE, s->p - 1, NULL); /* the closing brace */
}

/* The digests from ${from} on must differ; they are removed. */
static bool names_differ(struct scan *s, size_t from)
{
    uint64_t *names = (uint64_t *)(void *)(s->names.p + from);
    size_t count = (s->names.n - from) / sizeof(*names);
    s->names.n = from;
    if (count <= FEW_NAMES)
        return all_differ(names, count) ? true : duplicate_name(s);
    qsort(names, count, sizeof(*names), by_value);
    for (size_t i = 1; i < count; i++)
        if (names[i] == names[i - 1])
            return duplicate_name(s);
    return true;
}

/* The value of the member ${name}. */
static bool scan_member_value(struct scan *s, struct str name)
{
    if (s->depth != s->outermost || !str_eq(name, s->wanted))
        return scan_value(s);
    skip_space(s);
    const char *from = s->p;
    bool good = scan_value(s);
    s->found = (struct str){from, (size_t)(s->p - from)};
    return good;
}

static bool scan_member(struct scan *s)
{
    uint64_t hash = DIGEST_START;
    skip_space(s);
    if (!take(s, '"'))
        return malformed(s, "the name of a member in double quotes");
    const char *from = s->p;
    if (!scan_string(s, &hash))
        return false;
    const struct str name = {from, (size_t)(s->p - 1 - from)};
    buf_add(&s->names, &hash, sizeof(hash));
    if (!buf_ok(&s->names))
        return refuse(s, JSON_SCAN_MEMORY);
    skip_space(s);
    return take(s, ':') ? scan_member_value(s, name)
                        : malformed(s, "a colon after the name of a member");
}

static bool scan_object(struct scan *s)
{
    size_t from = s->names.n;
    skip_space(s);
    if (take(s, '}'))
        return true;
    do {
        if (!scan_member(s))
            return false;
        skip_space(s);
    } while (take(s, ','));
    return take(s, '}') ? names_differ(s, from)
                        : malformed(s, "a comma or the closing } of the object");
}

static bool scan_array(struct scan *s)
{
    skip_space(s);
    if (take(s, ']'))
        return true;
    do {
        if (!scan_value(s))
            return false;
        skip_space(s);
    } while (take(s, ','));
    return take(s, ']') ? true : malformed(s, "a comma or the closing ] of the array");
}

static bool scan_nested(struct scan *s, bool (*inner)(struct scan *s))
{
    if (s->depth == 0)
        return refuse(s, JSON_SCAN_DEEP);
    s->p++;
    s->depth--;
    bool good = inner(s);
    s->depth++;
    return good;
}

static bool scan_value(struct scan *s)
{
    skip_space(s);
    if (s->p == s->end)
        return malformed(s, VALUE);
    if (++s->values > JSON_SCAN_VALUES)
        return refuse(s, JSON_SCAN_MANY);
    switch (*s->p) {
    case '{':
        return scan_nested(s, scan_object);
    case '[':
        return scan_nested(s, scan_array);
    case '"':
        s->p++;
        return scan_string(s, NULL);
    default:
        return *s->p == '-' || (*s->p >= '0' && *s->p <= '9') ? scan_number(s) : scan_word(s);
    }
}

enum json_verdict json_scan(struct str text, unsigned depth)
{
    struct str ignored;
    return json_scan_member(text, depth, (struct str){NULL, 0}, &ignored, NULL);
}

/* Lines end with LF; a column is a code point. */
static void set_place(struct str text, const char *at, struct json_fault *fault)
{
    fault->line = fault->column = 1;
    for (const char *p = text.p; p < at; p++) {
        if (*p == '\n') {
            fault->line++;
            fault->column = 1;
        } else {
            fault->column += ((unsigned char)*p & 0xc0) != 0x80;
        }
    }
}

enum json_verdict json_scan_member(struct str text, unsigned depth, struct str name,
                                   struct str *value, struct json_fault *fault)
{
    struct scan s = {.p = text.p,
                     .end = text.p + text.n,
                     .depth = depth,
                     .wanted = name,
                     .outermost = name.p == NULL ? UINT_MAX : depth - 1};
    *value = (struct str){NULL, 0};
    size_t good = utf8_length(text);
    if (good < text.n) {
        refuse_at(&s, JSON_SCAN_ENCODING, text.p + good, NULL);
    } else if (scan_value(&s)) {
        skip_space(&s);
        if (s.p != s.end)
            malformed(&s, "the end of the text");
    }
    buf_free(&s.names);
    *value = s.found;
    if (fault != NULL) {
        *fault = (struct json_fault){.verdict = s.verdict, .expected = s.expected};
        if (s.verdict != JSON_SCAN_OK)
            set_place(text, s.at, fault);
    }
    return s.verdict;
}

void json_fault_text(const struct json_fault *fault, char out[JSON_FAULT_TEXT])
{
    /* Columns: what is wrong; what to do. The place is between them. */
    static const struct {
        const char *what, *advice;
    } texts[] = {
        [JSON_SCAN_OK] = {"The JSON is well-formed", ""},
        [JSON_SCAN_MALFORMED] = {"The JSON is malformed", ""},
        [JSON_SCAN_ENCODING] = {"The JSON has invalid UTF-8, NUL or an incomplete surrogate pair",
                                ""},
        [JSON_SCAN_DEEP] = {"The JSON is nested too deeply",
                            ". Use fewer levels of arrays and objects"},
        [JSON_SCAN_MANY] = {"The JSON has more than 100,000 values", ". Send fewer at once"},
        [JSON_SCAN_DUPLICATE] =
            {"The JSON has two members with the same name in the object that ends", ". Remove one"},
        [JSON_SCAN_RANGE] = {"The JSON has a number that is too large",
                             ". Whole numbers have 64 bits"},
        [JSON_SCAN_MEMORY] = {"The server has no memory for the JSON", ". Send it again later"},
    };
    char place[64] = "";
    if (fault->line > 0)
        snprintf(place, sizeof(place), " at line %u, column %u", fault->line, fault->column);
    snprintf(out, JSON_FAULT_TEXT, "%s%s%s%s%s.", texts[fault->verdict].what, place,
             fault->expected == NULL ? "" : ": expected ",
             fault->expected == NULL ? "" : fault->expected, texts[fault->verdict].advice);
}

struct json_object *json_scan_read(struct str text, unsigned depth, struct json_fault *fault)
{
    struct str ignored;
    if (json_scan_member(text, depth, (struct str){NULL, 0}, &ignored, fault) != JSON_SCAN_OK)
        return NULL;
    struct json_tokener *tokener = json_tokener_new_ex((int)depth + 1);
    if (tokener == NULL) {
        fault->verdict = JSON_SCAN_MEMORY;
        return NULL;
    }
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *tree = json_tokener_parse_ex(tokener, text.p, (int)text.n);
    /* json-c needs to see the end of a number */
    if (json_tokener_get_error(tokener) == json_tokener_continue)
        tree = json_tokener_parse_ex(tokener, "", -1);
    if (json_tokener_get_error(tokener) != json_tokener_success)
        fault->verdict = JSON_SCAN_MALFORMED;
    json_tokener_free(tokener);
    return tree;
}

struct json_object *json_scan_parse(struct str text, unsigned depth, enum json_verdict *verdict)
{
    struct json_fault fault;
    struct json_object *tree = json_scan_read(text, depth, &fault);
    *verdict = fault.verdict;
    return tree;
}
