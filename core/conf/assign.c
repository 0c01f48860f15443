/* The values of a struct conf: defaults first, then what the user sets. */
#include "core/conf/conf_internal.h"

#include <stdlib.h>
#include <string.h>

struct conf *conf_new(void)
{
    struct conf *conf = calloc(1, sizeof(*conf));
    if (conf == NULL)
        return NULL;
    for (size_t i = 0; i < conf_options_count; i++)
        if (!conf_option_in_listen(&conf_options[i]))
            conf_assign_text(&conf_options[i], (char *)conf, conf_options[i].initial);
    conf_listen_append(conf);
    return conf;
}

void conf_free(struct conf *conf)
{
    if (conf == NULL)
        return;
    conf_listen_clear(conf);
    for (size_t i = 0; i < conf_options_count; i++)
        if (!conf_option_in_listen(&conf_options[i]))
            conf_options[i].type->clear(&conf_options[i], (char *)conf);
    free(conf);
}

bool conf_listen_append(struct conf *conf)
{
    if (conf->listen_count == CONF_LISTEN_MAX)
        return false;
    char *base = (char *)&conf->listen[conf->listen_count++];
    for (size_t i = 0; i < conf_options_count; i++)
        if (conf_option_in_listen(&conf_options[i]))
            conf_assign_text(&conf_options[i], base, conf_options[i].initial);
    return true;
}

void conf_listen_clear(struct conf *conf)
{
    for (size_t n = 0; n < conf->listen_count; n++)
        for (size_t i = 0; i < conf_options_count; i++)
            if (conf_option_in_listen(&conf_options[i]))
                conf_options[i].type->clear(&conf_options[i], (char *)&conf->listen[n]);
    conf->listen_count = 0;
}

static char *option_base(struct conf *conf, const struct conf_option *option, size_t listener)
{
    return conf_option_in_listen(option) ? (char *)&conf->listen[listener] : (char *)conf;
}

void conf_assign(struct conf_build *build, const struct conf_option *option, size_t listener,
                 struct conf_place place, const char *const *texts, size_t count)
{
    char *base = option_base(build->conf, option, listener);
    char why[CONF_WHY_SIZE], key[CONF_KEY_SIZE];
    struct conf_place *set = &build->places[option - conf_options];
    *set = place;
    if (conf_option_in_listen(option) && !build->listen_places[listener].mistaken)
        build->listen_places[listener] = place;
    if (option->type->list)
        option->type->clear(option, base);
    for (size_t i = 0; i < count; i++) {
        if (!option->type->parse(option, base, texts[i], why)) {
            set->mistaken = true;
            if (conf_option_in_listen(option))
                build->listen_places[listener].mistaken = true;
            conf_mistake(build, place, "%s: %s", conf_key(option, listener, key), why);
        }
    }
}
