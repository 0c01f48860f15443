#include "core/conf/conf_internal.h"
#include "core/text/nearest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES (1u << 20)

/* ---- errors ---- */

void conf_mistake(struct conf_build *build, struct conf_place place, const char *format, ...)
{
    build->mistakes_count++;
    if (build->mistakes_count > CONF_MISTAKES_MAX)
        return;
    if (place.line == 0)
        fprintf(build->mistakes, "%s: ", place.file);
    else
        fprintf(build->mistakes, "%s:%zu: ", place.file, place.line);
    va_list args;
    va_start(args, format);
    vfprintf(build->mistakes, format, args);
    va_end(args);
    fputc('\n', build->mistakes);
    if (build->mistakes_count == CONF_MISTAKES_MAX)
        fprintf(build->mistakes, "%s: %d errors are shown; there may be more\n", place.file,
                CONF_MISTAKES_MAX);
}

const char *conf_quote(const char *text, char out[CONF_QUOTE_SIZE])
{
    size_t n = strlen(text), shown = n < CONF_QUOTE_SIZE - 4 ? n : CONF_QUOTE_SIZE - 5;
    /* Cut between characters, not inside one. */
    while (shown < n && shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80)
        shown--;
    for (size_t i = 0; i < shown; i++)
        out[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
    snprintf(out + shown, CONF_QUOTE_SIZE - shown, "%s", shown < n ? "…" : "");
    return out;
}

/* ---- values ---- */

static char *option_base(struct conf *conf, const struct conf_option *option, size_t listener)
{
    return conf_option_in_listen(option) ? (char *)&conf->listen[listener] : (char *)conf;
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

const char *conf_key(const struct conf_option *option, size_t listener, char out[CONF_KEY_SIZE])
{
    if (conf_option_in_listen(option))
        snprintf(out, CONF_KEY_SIZE, "listen.%zu.%s", listener,
                 option->key + strlen(CONF_LISTEN_PREFIX));
    else
        snprintf(out, CONF_KEY_SIZE, "%s", option->key);
    return out;
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

static struct conf *conf_new(void)
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

/* ---- unknown keys ---- */

/*
 * The distance of ${path} from ${key}, cut to the depth of ${path} because a group is a candidate,
 * too. The cut key goes to ${candidate}.
 */
static unsigned candidate_distance(const char *path, const char *key, char candidate[CONF_KEY_SIZE])
{
    snprintf(candidate, CONF_KEY_SIZE, "%s", key);
    const char *leaf = strrchr(key, '.');
    if (leaf != NULL && strchr(path, '.') == NULL && strcmp(leaf + 1, path) == 0)
        return 1; /* the right name without its group */
    size_t dots = 0;
    for (const char *p = path; *p != '\0'; p++)
        dots += *p == '.';
    for (char *p = candidate; *p != '\0'; p++) {
        if (*p == '.' && dots-- == 0) {
            *p = '\0';
            break;
        }
    }
    return nearest_distance(str_of(path), str_of(candidate));
}

void conf_unknown(struct conf_build *build, struct conf_place place, const char *path)
{
    char quoted[CONF_QUOTE_SIZE], candidate[CONF_KEY_SIZE], best[CONF_KEY_SIZE];
    unsigned least = UINT32_MAX;
    for (size_t i = 0; i < conf_options_count; i++) {
        unsigned distance = candidate_distance(path, conf_options[i].key, candidate);
        if (distance < least) {
            least = distance;
            memcpy(best, candidate, sizeof(best));
        }
    }
    const char *leaf = strrchr(path, '.');
    size_t length = strlen(leaf == NULL ? path : leaf + 1);
    if (nearest_is_close(least, length))
        conf_mistake(build, place, "unknown key %s; did you mean %s?", conf_quote(path, quoted),
                     best);
    else
        conf_mistake(build, place, "unknown key %s", conf_quote(path, quoted));
}

/* ---- checks of several values ---- */

static struct conf_place place_of(const struct conf_build *build, const char *key,
                                  const char *other)
{
    const struct conf_place *place = &build->places[conf_find(key) - conf_options];
    if (place->file == NULL && other != NULL)
        return place_of(build, other, NULL);
    return place->file != NULL ? *place : (struct conf_place){.file = "defaults"};
}

static void check_listeners(struct conf_build *build)
{
    const struct conf *conf = build->conf;
    for (size_t i = 0; i < conf->listen_count; i++) {
        const struct conf_listen *listener = &conf->listen[i];
        struct conf_place place = build->listen_places[i];
        if ((listener->tls_certificate[0] == '\0') != (listener->tls_key[0] == '\0'))
            conf_mistake(build, place,
                         "listen.%zu.tls: set both certificate and key, or neither of them", i);
        if ((listener->tls_second_certificate[0] == '\0') != (listener->tls_second_key[0] == '\0'))
            conf_mistake(build, place,
                         "listen.%zu.tls: set both second_certificate and second_key, or neither "
                         "of them",
                         i);
        if (listener->tls_second_certificate[0] != '\0' && listener->tls_certificate[0] == '\0')
            conf_mistake(build, place,
                         "listen.%zu.tls: second_certificate needs a certificate; set certificate, "
                         "too",
                         i);
        const char *port = strrchr(listener->address, ':');
        for (size_t j = 0; j < i && strcmp(port, ":0") != 0; j++)
            if (!place.mistaken && !build->listen_places[j].mistaken &&
                strcmp(listener->address, conf->listen[j].address) == 0)
                conf_mistake(build, place,
                             "listen.%zu.address: %s is already the address of listen.%zu", i,
                             listener->address, j);
    }
}

static void check_values(struct conf_build *build)
{
    const struct conf *conf = build->conf;
    struct conf_place good = place_of(build, "reports.good", NULL),
                      decent = place_of(build, "reports.decent", "reports.good");
    if (conf->reports_decent > conf->reports_good && !good.mistaken && !decent.mistaken)
        conf_mistake(build, decent, "reports.decent: %u is greater than reports.good, which is %u",
                     conf->reports_decent, conf->reports_good);
    check_listeners(build);
}

static conf_file_fn *file_usable;

void conf_know_files(conf_file_fn *can_use)
{
    file_usable = can_use;
}

static void check_file(struct conf_build *build, const char *key, const char *path,
                       enum conf_file_use use)
{
    char why[512];
    if (path[0] != '\0' && strcmp(path, "-") != 0 &&
        !file_usable(build->conf, path, use, why, sizeof(why)))
        conf_mistake(build, place_of(build, key, NULL), "%s: %s: %s", key, path, why);
}

/* Only if all other values are valid: the user who must be able to use the files is an option. */
static void check_files(struct conf_build *build)
{
    if (file_usable == NULL || build->mistakes_count > 0)
        return;
    check_file(build, "log.access", build->conf->log_access, FILE_APPENDED);
    check_file(build, "jwt.secrets_file", build->conf->jwt_secrets_file, FILE_OF_SECRETS);
}

/* ---- loading ---- */

/* The contents of ${path}; NULL on failure. ${error}: an errno, or 0 if the file is too large. */
static char *file_read(const char *path, size_t *size, int *error)
{
    FILE *file = fopen(path, "re");
    *error = errno;
    if (file == NULL)
        return NULL;
    char *text = malloc(FILE_MAX_BYTES + 1);
    errno = 0;
    *size = text == NULL ? 0 : fread(text, 1, FILE_MAX_BYTES + 1, file);
    *error = text == NULL ? ENOMEM : errno;
    bool failed = text == NULL || ferror(file) != 0 || *size > FILE_MAX_BYTES;
    if (text != NULL && ferror(file) == 0)
        *error = 0;
    fclose(file);
    if (!failed)
        return text;
    free(text);
    return NULL;
}

static void file_apply(struct conf_build *build, const char *path, bool required)
{
    struct conf_place place = {.file = path};
    size_t size;
    int error;
    char *text = file_read(path, &size, &error);
    if (text != NULL)
        conf_yaml_read(build, path, false, text, size);
    else if (error == 0)
        conf_mistake(build, place, "is larger than %u bytes, the maximum size of a configuration",
                     FILE_MAX_BYTES);
    else if (error != ENOENT || required)
        conf_mistake(build, place, "cannot be read: %s", strerror(error));
    free(text);
}

int conf_load(const char *path, bool required, const char *const *sets, size_t set_count,
              FILE *mistakes, struct conf **out)
{
    struct conf_build build = {.conf = conf_new(),
                               .mistakes = mistakes,
                               .places = calloc(conf_options_count, sizeof(struct conf_place))};
    *out = NULL;
    if (build.conf == NULL || build.places == NULL) {
        fputs("configuration: out of memory\n", mistakes);
        conf_free(build.conf);
        free(build.places);
        return 1;
    }
    for (size_t i = 0; i < CONF_LISTEN_MAX; i++)
        build.listen_places[i].file = "defaults";
    if (path != NULL)
        file_apply(&build, path, required);
    for (size_t i = 0; i < set_count; i++)
        conf_set(&build, sets[i]);
    check_values(&build);
    conf_limits_finish(&build);
    check_files(&build);
    free(build.places);
    free(build.overrides);
    if (build.mistakes_count > 0)
        conf_free(build.conf);
    else
        *out = build.conf;
    return build.mistakes_count;
}

static conf_route_fn *route_known;

void conf_know_routes(conf_route_fn *known)
{
    route_known = known;
}

bool conf_route_taken(struct str method, struct str path)
{
    return route_known == NULL || route_known(method, path);
}

/* ---- reload ---- */

/* An option's value as text, to be freed; NULL: out of memory. */
static char *value_text(const struct conf_option *option, const char *base)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        return NULL;
    option->type->print(option, base, out);
    fclose(out);
    return text;
}

/* 1 and an error if the option differs between ${a} and ${b}. */
static int refuse_difference(const struct conf_option *option, const char *key, const char *a,
                             const char *b, FILE *mistakes)
{
    char *old_text = value_text(option, a), *new_text = value_text(option, b);
    bool differs = old_text == NULL || new_text == NULL || strcmp(old_text, new_text) != 0;
    if (differs)
        fprintf(mistakes, "%s: changing it from %s to %s needs a restart\n", key,
                old_text == NULL ? "?" : old_text, new_text == NULL ? "?" : new_text);
    free(old_text);
    free(new_text);
    return differs;
}

int conf_reload_refusals(const struct conf *old, const struct conf *new_conf, FILE *mistakes)
{
    int refusals = 0;
    size_t common =
        old->listen_count < new_conf->listen_count ? old->listen_count : new_conf->listen_count;
    if (old->listen_count != new_conf->listen_count) {
        fprintf(mistakes,
                "listen: changing the number of listeners from %zu to %zu needs a restart\n",
                old->listen_count, new_conf->listen_count);
        refusals++;
    }
    for (size_t i = 0; i < conf_options_count; i++) {
        const struct conf_option *option = &conf_options[i];
        if (option->reload)
            continue;
        if (!conf_option_in_listen(option)) {
            refusals += refuse_difference(option, option->key, (const char *)old,
                                          (const char *)new_conf, mistakes);
            continue;
        }
        for (size_t n = 0; n < common; n++) {
            char key[CONF_KEY_SIZE];
            refusals +=
                refuse_difference(option, conf_key(option, n, key), (const char *)&old->listen[n],
                                  (const char *)&new_conf->listen[n], mistakes);
        }
    }
    return refusals;
}
