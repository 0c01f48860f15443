/* The options by key, and how they are shown. */
#include "core/conf/conf_internal.h"
#include "core/conf/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool conf_option_in_listen(const struct conf_option *option)
{
    return strncmp(option->key, CONF_LISTEN_PREFIX, strlen(CONF_LISTEN_PREFIX)) == 0;
}

const struct conf_option *conf_find(const char *key)
{
    for (size_t i = 0; i < conf_options_count; i++)
        if (strcmp(conf_options[i].key, key) == 0)
            return &conf_options[i];
    return NULL;
}

bool conf_group(const char *key)
{
    size_t n = strlen(key);
    for (size_t i = 0; i < conf_options_count; i++)
        if (strncmp(conf_options[i].key, key, n) == 0 && conf_options[i].key[n] == '.')
            return true;
    return false;
}

const char *conf_key(const struct conf_option *option, size_t listener, char out[CONF_KEY_SIZE])
{
    if (conf_option_in_listen(option))
        snprintf(out, CONF_KEY_SIZE, "listen.%zu.%s", listener,
                 option->key + strlen(CONF_LISTEN_PREFIX));
    else
        snprintf(out, CONF_KEY_SIZE, "%s", option->key);
    return out;
}

void conf_assign_text(const struct conf_option *option, char *base, const char *text)
{
    char why[CONF_WHY_SIZE];
    if (!option->type->list) {
        if (!option->type->parse(option, base, text, why))
            abort(); /* a wrong default in the table; any test finds it */
        return;
    }
    char items[128], *rest = NULL;
    snprintf(items, sizeof(items), "%s", text);
    for (char *item = strtok_r(items, " ", &rest); item != NULL; item = strtok_r(NULL, " ", &rest))
        if (!option->type->parse(option, base, item, why))
            abort();
}

/* A bound of the range, in the option's unit. */
static void bound_text(const struct conf_option *option, uint64_t value, char out[VALUE_TEXT_SIZE])
{
    if (option->type == &conf_type_duration || option->type == &conf_type_age)
        value_duration_text(value, out);
    else if (option->type == &conf_type_size)
        value_size_text(value, out);
    else
        snprintf(out, VALUE_TEXT_SIZE, "%" PRIu64, value);
}

static void type_text(const struct conf_option *option, char *out, size_t size)
{
    if (option->choices != NULL) {
        size_t n = 0;
        for (size_t i = 0; option->choices[i] != NULL && n < size; i++)
            n += (size_t)snprintf(out + n, size - n, "%s%s", i == 0 ? "" : " | ",
                                  option->choices[i]);
    } else if (option->type->ranged) {
        char low[VALUE_TEXT_SIZE], high[VALUE_TEXT_SIZE];
        bound_text(option, option->min, low);
        bound_text(option, option->max, high);
        snprintf(out, size, "%s %s–%s", option->type->name, low, high);
    } else {
        snprintf(out, size, "%s", option->type->name);
    }
}

bool conf_option_at(size_t i, struct conf_option_view *out)
{
    static char types[CONF_OPTIONS_MAX][96];
    static char initials[CONF_OPTIONS_MAX][64];
    if (i >= conf_options_count)
        return false;
    const struct conf_option *option = &conf_options[i];
    type_text(option, types[i], sizeof(types[i]));

    /* To get the default as YAML, set it in an empty configuration and print it. */
    struct conf conf = {.workers = 0};
    struct conf_listen listener = {.address = NULL};
    char *base = conf_option_in_listen(option) ? (char *)&listener : (char *)&conf;
    conf_assign_text(option, base, option->initial);
    FILE *text = fmemopen(initials[i], sizeof(initials[i]), "w");
    if (text != NULL) {
        option->type->print(option, base, text);
        fclose(text);
    }
    option->type->clear(option, base);
    if (option->type == &conf_type_workers || option->type == &conf_type_limiters)
        snprintf(initials[i], sizeof(initials[i]), "%s", option->initial);

    *out = (struct conf_option_view){.key = option->key,
                                     .type = types[i],
                                     .initial = initials[i],
                                     .help = option->help,
                                     .reload = option->reload};
    return true;
}
