#include "core/text/redact.h"

#include "core/text/chars.h"

#include <ctype.h>
#include <strings.h>

/* In the name of a parameter; ${whole}: as a whole word: "sig" is also in "design". */
static const struct {
    struct str text;
    bool whole;
} names[] = {
    {STR("pass"), false},       {STR("token"), false},   {STR("secret"), false},
    {STR("signature"), false},  {STR("jwt"), false},     {STR("authoriz"), false},
    {STR("credential"), false}, {STR("session"), false}, {STR("key"), false},
    {STR("sig"), true},
};

/* Starts of credentials, and the least number of credential characters that follow. */
static const struct {
    struct str text;
    size_t follow;
} starts[] = {{STR("asy_key_"), 0}, {STR("asy_wp_"), 0}, {STR("eyJ"), 0}, {STR("anon_"), 16}};
#define MASK STR("***")

/* The character at ${at}, percent-decoded, and its size in bytes. */
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

/* Of a value; a password may contain any other byte. */
static bool is_value_end(char c)
{
    return c == '&' || c == ';' || c == '#' || c == ' ';
}

/* The size of ${what} at ${at}, ignoring case if ${any_case}; 0: other text. */
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

/* ${after_letter}: a letter is before ${at}. */
static bool names_secret_at(struct str name, size_t at, bool after_letter)
{
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t n = length_of(name, at, names[i].text, true);
        if (n > 0 && !(names[i].whole && (after_letter || is_letter(name, at + n))))
            return true;
    }
    return false;
}

static bool names_secret(struct str name)
{
    bool after_letter = false;
    for (size_t at = 0, bytes = 0; at < name.n; at += bytes) {
        if (names_secret_at(name, at, after_letter))
            return true;
        after_letter = isalpha((unsigned char)character(name, at, &bytes)) != 0;
    }
    return false;
}

static bool is_credential_char(char c)
{
    return isalnum((unsigned char)c) != 0 || c == '-' || c == '_';
}

static bool starts_credential(struct str text, size_t at)
{
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        size_t n = length_of(text, at, starts[i].text, false), follow = 0, bytes = 0;
        for (size_t p = at + n; n > 0 && p < text.n && follow < starts[i].follow &&
                                is_credential_char(character(text, p, &bytes));
             p += bytes)
            follow++;
        if (n > 0 && follow == starts[i].follow)
            return true;
    }
    return false;
}

struct output {
    char *bytes;
    size_t n, most;
};

/* Many masks of short values can exceed the space; the rest of the text is then cut. */
static void add(struct output *out, struct str s)
{
    size_t n = s.n < out->most - out->n ? s.n : out->most - out->n;
    memcpy(out->bytes + out->n, s.p, n);
    out->n += n;
}

struct str redact(struct str text, char *scratch)
{
    struct output out = {scratch, 0, text.n + REDACT_MORE};
    bool found = false;
    size_t name = 0;    /* start of a name, if one is being read */
    bool value = false; /* a secret value starts at ${at} */
    for (size_t at = 0, bytes = 0; at < text.n; at += bytes) {
        if (value || starts_credential(text, at)) {
            found = true;
            add(&out, MASK);
            while (at < text.n && !(value ? is_value_end : is_end)(text.p[at]))
                at++;
            name = at; /* no name starts within a secret */
            if (at == text.n)
                break;
        }
        char c = character(text, at, &bytes);
        value = c == '=' && at > name && at + bytes < text.n &&
                names_secret((struct str){text.p + name, at - name});
        if (c == '=' || is_end(c))
            name = at + bytes;
        add(&out, (struct str){text.p + at, bytes});
    }
    return found ? (struct str){scratch, out.n} : text;
}
