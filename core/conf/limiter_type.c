/* The value type of limits.limiters. Its YAML is read in limiter_section.c. */
#include "core/conf/conf_internal.h"

#include <stdlib.h>
#include <string.h>

#define INDENT 8 /* of a limiter in the dump */

static struct limiters **limits_member(const struct conf_option *option, char *base)
{
    return (struct limiters **)(void *)(base + option->offset);
}

static bool limits_parse(const struct conf_option *option, char *base, const char *text,
                         char why[CONF_WHY_SIZE])
{
    struct limiters **limits = limits_member(option, base);
    if (strcmp(text, "{}") != 0 || (*limits = malloc(sizeof(**limits))) == NULL) {
        snprintf(why, CONF_WHY_SIZE, "out of memory");
        return false;
    }
    limiters_defaults(*limits);
    return true;
}

static void limits_clear(const struct conf_option *option, char *base)
{
    free(*limits_member(option, base));
    *limits_member(option, base) = NULL;
}

/* The next member of the limiter ${name}, on a line of its own. */
static void next_member(const char *name, const char *text, FILE *out)
{
    fprintf(out, ",\n%*s%s", (int)(INDENT + strlen(name) + strlen(": { ")), "", text);
}

static void print_overrides(const struct limiters *limits, unsigned limiter, FILE *out)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < limits->overrides_count; i++) {
        const struct limiter_override *o = &limits->overrides[i];
        char key[LIMITER_TEXT_SIZE];
        if (o->limiter != limiter)
            continue;
        limiter_key_text(&o->key, limits->ipv6_prefix, key);
        next_member(limits->rows[limiter].name, count++ == 0 ? "overrides: [ " : "             ",
                    out);
        fprintf(out, "{ key: \"%s\", limit: %u, seconds: %u }", key, o->limit,
                limits->rows[limiter].windows[o->window].seconds);
    }
    fputs(count > 0 ? " ]" : "", out);
}

static void print_windows(const struct limiter_row *row, FILE *out)
{
    for (uint32_t i = 0; i < row->windows_count; i++) {
        if (i > 0)
            next_member(row->name, "          ", out);
        fprintf(out, " { limit: %u, seconds: %u, key: %s }", row->windows[i].limit,
                row->windows[i].seconds, limiter_by_name((enum limiter_by)row->windows[i].by));
    }
    fputs(" ]", out);
}

static void print_row(const struct limiters *limits, unsigned limiter, FILE *out)
{
    const struct limiter_row *row = &limits->rows[limiter];
    fprintf(out, "\n%*s%s: { windows: [", INDENT, "", row->name);
    print_windows(row, out);
    if (row->routes_count > 0)
        next_member(row->name, "routes: [ ", out);
    for (uint32_t i = 0; i < row->routes_count; i++)
        fprintf(out, "%s\"%s\"%s", i == 0 ? "" : ", ", row->routes[i],
                i + 1 == row->routes_count ? " ]" : "");
    if (row->dry_run)
        next_member(row->name, "dry_run: true", out);
    if (row->fallback != FALLBACK_LOCAL) {
        next_member(row->name, "fallback: ", out);
        fputs(limiter_fallback_name((enum limiter_fallback)row->fallback), out);
    }
    if (row->lease > 0) {
        next_member(row->name, "lease: ", out);
        fprintf(out, "%u", row->lease);
    }
    print_overrides(limits, limiter, out);
    fputs(" }", out);
}

static void limits_print(const struct conf_option *option, const char *base, FILE *out)
{
    const struct limiters *limits =
        *(struct limiters *const *)(const void *)(base + option->offset);
    fputc('{', out);
    for (unsigned i = 1; i < limits->count; i++) {
        print_row(limits, i, out);
        if (i + 1 < limits->count)
            fputc(',', out);
    }
    fprintf(out, "\n%*s}", INDENT, "");
}

const struct conf_type conf_type_limiters = {
    "limiters",  "a map of limiters by name", false, false, limits_parse, limits_print,
    limits_clear};
