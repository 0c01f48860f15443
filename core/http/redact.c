#include "redact.h"

#include <strings.h>

/* in a parameter's name */
static const struct str names[] = {STR("pass"),      STR("token"),      STR("secret"),  STR("signature"),
                                   STR("jwt"),       STR("authoriz"),   STR("credential"), STR("session"), STR("key")};
/* a value's beginning, wherever it stands */
static const struct str starts[] = {STR("asy_key_"), STR("asy_wp_"), STR("eyJ")};
#define MASK STR("***")

static bool is_end(char c)
{
    return c == '&' || c == '/' || c == '?' || c == '#' || c == ';' || c == ' ' || c == '"' || c == ',';
}

/* of the value of a parameter: a password may have any other byte in it */
static bool is_value_end(char c)
{
    return c == '&' || c == ';' || c == '#' || c == ' ';
}

static bool begins(struct str text, size_t at, struct str what)
{
    return text.n - at >= what.n && strncasecmp(text.p + at, what.p, what.n) == 0;
}

/* the parameter's name that ends at ${end}, where its "=" is */
static bool is_telling(struct str text, size_t end)
{
    size_t from = end;
    while (from > 0 && !is_end(text.p[from - 1]) && text.p[from - 1] != '=')
        from--;
    struct str name = {text.p, end};
    for (; from < end; from++)
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
            if (begins(name, from, names[i]))
                return true;
    return false;
}

/* what ends the secret that begins at ${at}; NULL: none does */
static bool (*end_of(struct str text, size_t at))(char)
{
    if (at > 0 && text.p[at - 1] == '=' && is_telling(text, at - 1))
        return is_value_end;
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (text.n - at >= starts[i].n && memcmp(text.p + at, starts[i].p, starts[i].n) == 0)
            return is_end;
    return NULL;
}

/* A mask is longer than what it stands for in a short value only: then what is left over is left out. */
struct str redact(struct str text, char *room)
{
    size_t n = 0, most = text.n + REDACT_MORE;
    bool found = false;
    for (size_t at = 0; at < text.n;) {
        bool (*ends)(char) = end_of(text, at);
        if (ends != NULL) {
            found = true;
            for (size_t i = 0; i < MASK.n && n < most; i++)
                room[n++] = MASK.p[i];
            while (at < text.n && !ends(text.p[at]))
                at++;
        }
        if (at < text.n && n < most)
            room[n++] = text.p[at];
        at++; /* the end of a secret begins none */
    }
    return found ? (struct str){room, n} : text;
}
