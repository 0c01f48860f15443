/* --set KEY=VALUE */
#include "core/conf/conf_internal.h"

#include <stdlib.h>
#include <string.h>

#define SET_ITEMS_MAX 256
#define LIMITERS_KEY "limits.limiters"

/*
 * "listen.0.address" becomes "listen.N.address" and 0; other keys are copied. False if "listen." is
 * not followed by a small number.
 */
static bool set_key(const char *key, size_t n, char out[CONF_KEY_SIZE], size_t *listener)
{
    *listener = 0;
    if (n >= CONF_KEY_SIZE)
        return false;
    snprintf(out, CONF_KEY_SIZE, "%.*s", (int)n, key);
    if (strncmp(out, "listen.", 7) != 0)
        return true;
    size_t digits = strspn(out + 7, "0123456789");
    if (digits == 0 || digits > 3 || out[7 + digits] != '.')
        return false;
    *listener = strtoul(out + 7, NULL, 10);
    snprintf(out, CONF_KEY_SIZE, CONF_LISTEN_PREFIX "%.*s", (int)(n - 7 - digits - 1),
             key + 7 + digits + 1);
    return true;
}

/* Split "[80, 443]", "80,443" or "" in place. Returns the number of items; stores up to ${max}. */
static size_t set_items(char *value, const char **items, size_t max)
{
    size_t n = strlen(value), count = 0;
    if (n >= 2 && value[0] == '[' && value[n - 1] == ']') {
        value[n - 1] = '\0';
        value++;
    }
    char *rest = NULL;
    for (char *item = strtok_r(value, ", \"'", &rest); item != NULL;
         item = strtok_r(NULL, ", \"'", &rest), count++)
        if (count < max)
            items[count] = item;
    return count;
}

/* "limits.limiters.NAME=VALUE": the value is YAML, such as {dry_run: true}. False: another key. */
static bool set_limiter(struct conf_build *build, const char *set, size_t key_size)
{
    char *text = NULL;
    size_t prefix = strlen(LIMITERS_KEY);
    bool one = key_size > prefix && set[prefix] == '.';
    if (strncmp(set, LIMITERS_KEY, prefix) != 0 || (key_size != prefix && !one))
        return false;
    int name = one ? (int)(key_size - prefix - 1) : 0;
    int n = one ? asprintf(&text, "limits: {limiters: {%.*s: %s}}", name, set + prefix + 1,
                           set + key_size + 1)
                : asprintf(&text, "limits: {limiters: %s}", set + key_size + 1);
    if (n < 0)
        conf_mistake(build, (struct conf_place){.file = "--set"}, "out of memory");
    else
        conf_yaml_read(build, "--set", true, text, (size_t)n);
    free(text);
    return true;
}

static void set_list(struct conf_build *build, const struct conf_option *option, size_t listener,
                     const char *text)
{
    struct conf_place place = {.file = "--set"};
    char *value = strdup(text);
    const char *items[SET_ITEMS_MAX];
    if (value == NULL) {
        conf_mistake(build, place, "%s: out of memory", option->key);
        return;
    }
    size_t count = set_items(value, items, SET_ITEMS_MAX);
    if (count > SET_ITEMS_MAX)
        conf_mistake(build, place, "%s: more than %d items", option->key, SET_ITEMS_MAX);
    else
        conf_assign(build, option, listener, place, items, count);
    free(value);
}

/* The option that ${set} names; NULL: there is none, which is reported. */
static const struct conf_option *find_set(struct conf_build *build, const char *set,
                                          size_t key_size, size_t *listener)
{
    struct conf_place place = {.file = "--set"};
    char key[CONF_KEY_SIZE], quoted[CONF_QUOTE_SIZE];
    if (!set_key(set, key_size, key, listener)) {
        conf_mistake(build, place,
                     "\"%s\" is not an option; the options of a listener are written "
                     "listen.0.address",
                     conf_quote(set, quoted));
        return NULL;
    }
    const struct conf_option *option = conf_find(key);
    if (option == NULL && conf_group(key))
        conf_mistake(build, place, "%s is a group; set its options one by one, such as %s.…=VALUE",
                     key, key);
    else if (option == NULL)
        conf_unknown(build, place, key);
    return option;
}

void conf_set(struct conf_build *build, const char *set)
{
    struct conf_place place = {.file = "--set"};
    char quoted[CONF_QUOTE_SIZE];
    size_t listener;
    const char *equals = strchr(set, '=');
    if (equals == NULL || equals == set) {
        conf_mistake(build, place, "\"%s\" is not KEY=VALUE", conf_quote(set, quoted));
        return;
    }
    size_t key_size = (size_t)(equals - set);
    const char *text = equals + 1;
    if (set_limiter(build, set, key_size))
        return;
    const struct conf_option *option = find_set(build, set, key_size, &listener);
    if (option == NULL)
        return;
    if (conf_option_in_listen(option) && listener >= build->conf->listen_count &&
        (listener > build->conf->listen_count || !conf_listen_append(build->conf))) {
        conf_mistake(build, place,
                     "the number of listeners is %zu (maximum %d); the next one is listen.%zu",
                     build->conf->listen_count, CONF_LISTEN_MAX, build->conf->listen_count);
        return;
    }
    if (option->type->list)
        set_list(build, option, listener, text);
    else
        conf_assign(build, option, listener, place, &text, 1);
}
