#include "conf_table.h"
#include "nearest.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES (1u << 20)

/* ---- mistakes ---- */

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
        fprintf(build->mistakes, "%s: there may be more mistakes than these %d\n", place.file,
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
            abort(); /* a default that is not valid: the table's mistake, found by the first test */
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

/* How far ${path} is from ${key} or, where that is longer, from the group of it that lies as deep; the candidate goes to ${candidate}. */
static unsigned candidate_distance(const char *path, const char *key, char candidate[CONF_KEY_SIZE])
{
    snprintf(candidate, CONF_KEY_SIZE, "%s", key);
    const char *leaf = strrchr(key, '.');
    if (leaf != NULL && strchr(path, '.') == NULL && strcmp(leaf + 1, path) == 0)
        return 1; /* the right name outside its group */
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

/* ---- --set ---- */

/* "listen.0.address" as "listen.N.address" and 0. Other keys as they are. False when what stands after "listen." is not a small number. */
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

#define SET_ITEMS_MAX 256

/* "[80, 443]", "80,443" or "" as its items, in place. How many there are; of those only ${max} are in ${items}. */
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

#define LIMITERS_KEY "limits.limiters"

/* "limits.limiters.NAME=VALUE": the value as YAML, such as {dry_run: true}. False where ${set} is about something else. */
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

static void set_apply(struct conf_build *build, const char *set)
{
    struct conf_place place = {.file = "--set"};
    char key[CONF_KEY_SIZE], quoted[CONF_QUOTE_SIZE];
    size_t listener;
    const char *equals = strchr(set, '=');
    if (equals == NULL || equals == set) {
        conf_mistake(build, place, "\"%s\" has no key and value; write KEY=VALUE",
                     conf_quote(set, quoted));
        return;
    }
    if (set_limiter(build, set, (size_t)(equals - set)))
        return;
    if (!set_key(set, (size_t)(equals - set), key, &listener)) {
        conf_mistake(build, place,
                     "\"%s\" is not an option; a listener's are written listen.0.address",
                     conf_quote(set, quoted));
        return;
    }
    const struct conf_option *option = conf_find(key);
    if (option == NULL && conf_group(key)) {
        conf_mistake(build, place, "%s is a group; set its options one by one, such as %s.…=VALUE",
                     key, key);
        return;
    }
    if (option == NULL) {
        conf_unknown(build, place, key);
        return;
    }
    if (conf_option_in_listen(option) && listener >= build->conf->listen_count &&
        (listener > build->conf->listen_count || !conf_listen_append(build->conf))) {
        conf_mistake(build, place, "there are %zu listeners, at most %d; the next is listen.%zu",
                     build->conf->listen_count, CONF_LISTEN_MAX, build->conf->listen_count);
        return;
    }
    const char *text = equals + 1;
    if (!option->type->list) {
        conf_assign(build, option, listener, place, &text, 1);
        return;
    }
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

/* ---- what only several values together show ---- */

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
            conf_mistake(
                build, place,
                "listen.%zu.tls: certificate and key belong together; give both or neither", i);
        if ((listener->tls_second_certificate[0] == '\0') != (listener->tls_second_key[0] == '\0'))
            conf_mistake(build, place,
                         "listen.%zu.tls: second_certificate and second_key belong together; give "
                         "both or neither",
                         i);
        if (listener->tls_second_certificate[0] != '\0' && listener->tls_certificate[0] == '\0')
            conf_mistake(
                build, place,
                "listen.%zu.tls: a second_certificate stands beside a certificate; give that too",
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

static void check_together(struct conf_build *build)
{
    const struct conf *conf = build->conf;
    struct conf_place good = place_of(build, "reports.good", NULL),
                      decent = place_of(build, "reports.decent", "reports.good");
    if (conf->reports_decent > conf->reports_good && !good.mistaken && !decent.mistaken)
        conf_mistake(build, decent, "reports.decent: %u is over reports.good, which is %u",
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

/* once all else is right: whose processes use the files is an option, too */
static void check_files(struct conf_build *build)
{
    if (file_usable == NULL || build->mistakes_count > 0)
        return;
    check_file(build, "log.access", build->conf->log_access, FILE_APPENDED);
    check_file(build, "jwt.secrets_file", build->conf->jwt_secrets_file, FILE_OF_SECRETS);
}

/* ---- loading ---- */

/* The whole of ${path} as text. NULL, and ${error} an errno or 0 for a file that is too large, or out of memory. */
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
        conf_mistake(build, place, "is larger than %u bytes, which no configuration is",
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
        set_apply(&build, sets[i]);
    check_together(&build);
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

/* An option's value as text, to be freed; NULL when memory is short. */
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

/* 1 and a sentence when the option differs between ${a} and ${b}; ${key} is how it is called. */
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
