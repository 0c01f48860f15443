#include "core/text/redact.h"

#include <ctype.h>
#include <strings.h>

/* in a parameter's name; ${whole}: as a word of its own, since "sig" is in "design" and "signup" */
static const struct {
    struct str text;
    bool whole;
} names[] = {
    {STR("pass"), false},       {STR("token"), false},   {STR("secret"), false},
    {STR("signature"), false},  {STR("jwt"), false},     {STR("authoriz"), false},
    {STR("credential"), false}, {STR("session"), false}, {STR("key"), false},
    {STR("sig"), true},
};

/* A value's beginning, wherever it stands, and how many characters of a credential follow it at least. */
static const struct {
    struct str text;
    size_t follow;
} starts[] = {{STR("asy_key_"), 0}, {STR("asy_wp_"), 0}, {STR("eyJ"), 0}, {STR("anon_"), 16}};
#define MASK STR("***")

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : isxdigit((unsigned char)c) ? (c | 0x20) - 'a' + 10 : -1;
}

/* The character at ${at}, decoded where it is percent-encoded, and how many bytes it takes. */
static char character(struct str text, size_t at, size_t *bytes)
{
    bool encoded = text.p[at] == '%' && text.n - at > 2 && hex_digit(text.p[at + 1]) >= 0 &&
                   hex_digit(text.p[at + 2]) >= 0;
    *bytes = encoded ? 3 : 1;
    return encoded ? (char)(hex_digit(text.p[at + 1]) << 4 | hex_digit(text.p[at + 2]))
                   : text.p[at];
}

static bool is_end(char c)
{
    return c == '&' || c == '/' || c == '?' || c == '#' || c == ';' || c == ' ' || c == '"' ||
           c == ',';
}

/* of the value of a parameter: a password may have any other byte in it */
static bool is_value_end(char c)
{
    return c == '&' || c == ';' || c == '#' || c == ' ';
}

/* How many bytes ${what} takes at ${at}, in any case of letters if ${any_case}; 0: something else is there. */
static size_t length_of(struct str text, size_t at, struct str what, bool any_case)
{
    size_t from = at, bytes = 0;
    for (size_t i = 0; i < what.n; i++, at += bytes) {
        if (at >= text.n)
            return 0;
        char c = character(text, at, &bytes);
        if (c != what.p[i] && !(any_case && tolower((unsigned char)c) == what.p[i]))
            return 0;
    }
    return at - from;
}

static bool is_letter(struct str text, size_t at)
{
    size_t bytes;
    return at < text.n && isalpha((unsigned char)character(text, at, &bytes)) != 0;
}

/* ${after_letter}: what is before ${at} is a letter */
static bool tells(struct str name, size_t at, bool after_letter)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t n = length_of(name, at, names[i].text, true);
        if (n > 0 && !(names[i].whole && (after_letter || is_letter(name, at + n))))
            return true;
    }
    return false;
}

static bool is_telling(struct str name)
{
    bool after_letter = false;
    for (size_t at = 0, bytes = 0; at < name.n; at += bytes) {
        if (tells(name, at, after_letter))
            return true;
        after_letter = isalpha((unsigned char)character(name, at, &bytes)) != 0;
    }
    return false;
}

static bool is_of_credential(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '-' || c == '_';
}

static bool begins_credential(struct str text, size_t at)
{
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        size_t n = length_of(text, at, starts[i].text, false), follow = 0, bytes = 0;
        for (size_t p = at + n; n > 0 && p < text.n && follow < starts[i].follow &&
                                is_of_credential(character(text, p, &bytes));
             p += bytes)
            follow++;
        if (n > 0 && follow == starts[i].follow)
            return true;
    }
    return false;
}

struct output {
    char *room;
    size_t n, most;
};

/* A mask is longer than what it stands for in a short value only: then what is left over is left out. */
static void add(struct output *out, struct str s)
{
    size_t n = s.n < out->most - out->n ? s.n : out->most - out->n;
    memcpy(out->room + out->n, s.p, n);
    out->n += n;
}

struct str redact(struct str text, char *room)
{
    struct output out = {room, 0, text.n + REDACT_MORE};
    bool found = false;
    size_t name = 0;    /* where the parameter's name begins that may be under way */
    bool value = false; /* of a parameter whose name tells, at ${at} */
    for (size_t at = 0, bytes = 0; at < text.n; at += bytes) {
        if (value || begins_credential(text, at)) {
            found = true;
            add(&out, MASK);
            while (at < text.n && !(value ? is_value_end : is_end)(text.p[at]))
                at++;
            name = at; /* the end of a secret begins none */
            if (at == text.n)
                break;
        }
        char c = character(text, at, &bytes);
        value = c == '=' && at > name && at + bytes < text.n &&
                is_telling((struct str){text.p + name, at - name});
        if (c == '=' || is_end(c))
            name = at + bytes;
        add(&out, (struct str){text.p + at, bytes});
    }
    return found ? (struct str){room, out.n} : text;
}
