/* The types of whole numbers that may be auto: one that is found when it is read, or later. */
#include "core/conf/conf_internal.h"

#include <string.h>
#include <unistd.h>

static bool store(const struct conf_option *option, char *base, unsigned value)
{
    memcpy(base + option->offset, &value, sizeof(value));
    return true;
}

/* ${automatic}: the value of auto. */
static bool parse(const struct conf_option *option, char *base, const char *text,
                  unsigned automatic, char why[CONF_WHY_SIZE])
{
    if (strcmp(text, "auto") == 0)
        return store(option, base, automatic);
    if (conf_type_integer.parse(option, base, text, why))
        return true;
    size_t n = strlen(why);
    snprintf(why + n, CONF_WHY_SIZE - n, ", or auto");
    return false;
}

static void clear(const struct conf_option *option, char *base)
{
    (void)option;
    (void)base;
}

/* ---- workers ---- */

static bool workers_parse(const struct conf_option *option, char *base, const char *text,
                          char why[CONF_WHY_SIZE])
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t value = cores < 1 ? 1 : (uint64_t)cores;
    return parse(option, base, text, (unsigned)(value > option->max ? option->max : value), why);
}

static void workers_print(const struct conf_option *option, const char *base, FILE *out)
{
    conf_type_integer.print(option, base, out);
}

const struct conf_type conf_type_workers = {
    "auto | integer", "auto or one whole number", false, true, workers_parse, workers_print, clear};

/* ---- nodes ---- */

static bool nodes_parse(const struct conf_option *option, char *base, const char *text,
                        char why[CONF_WHY_SIZE])
{
    return parse(option, base, text, CONF_NODES_AUTO, why);
}

static void nodes_print(const struct conf_option *option, const char *base, FILE *out)
{
    unsigned value;
    memcpy(&value, base + option->offset, sizeof(value));
    if (value == CONF_NODES_AUTO)
        fputs("auto", out);
    else
        conf_type_integer.print(option, base, out);
}

const struct conf_type conf_type_nodes = {
    "auto | integer", "auto or one whole number", false, true, nodes_parse, nodes_print, clear};
