#include "core/conf/conf_internal.h"

#include "config.h"
#include "core/base/cidr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES (1u << 20)

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

#define CONF_NODE_NAME_CHARACTERS                                                                  \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

/* Can other nodes use "host:port"? Its host is numeric, and not 0.0.0.0 or [::]. */
static bool is_address_of_node(const char *address)
{
    static const char any[sizeof(uint32_t)];
    char host[INET6_ADDRSTRLEN + 2];
    struct ip ip;
    const char *colon = strrchr(address, ':');
    const size_t n = colon == NULL ? 0 : (size_t)(colon - address),
                 brackets = address[0] == '[' ? 1 : 0;
    if (n <= 2 * brackets || n >= sizeof(host))
        return false;
    snprintf(host, sizeof(host), "%.*s", (int)(n - 2 * brackets), address + brackets);
    return ip_parse(host, &ip) && memcmp(ip.b + sizeof(ip.b) - sizeof(any), any, sizeof(any)) != 0;
}

static void check_cluster(struct conf_build *build)
{
    const struct conf *conf = build->conf;
#ifndef HAVE_POSTGRESQL
    if (conf->cluster_log[0] != '\0')
        conf_mistake(build, place_of(build, "cluster.log", NULL),
                     "cluster.log: this build has no clusters; install the package assay-cluster");
#endif
    if (conf->cluster_log[0] != '\0' && conf->cluster_address[0] == '\0')
        conf_mistake(build, place_of(build, "cluster.address", "cluster.log"),
                     "cluster.address: a cluster needs it; set where other nodes reach this one");
    else if (conf->cluster_log[0] != '\0' && !is_address_of_node(conf->cluster_address))
        conf_mistake(
            build, place_of(build, "cluster.address", NULL),
            "cluster.address: other nodes cannot use %s; write the numeric address of this "
            "host as 192.0.2.1:7443 or [2001:db8::1]:7443",
            conf->cluster_address);
    if (conf->cluster_log[0] != '\0' && conf->cluster_key_file[0] == '\0')
        conf_mistake(
            build, place_of(build, "cluster.key_file", "cluster.log"),
            "cluster.key_file: a cluster needs it; make the file by `openssl rand -hex 32`");
    const size_t n = strlen(conf->cluster_name);
    if (n > CONF_NODE_NAME_MAX || strspn(conf->cluster_name, CONF_NODE_NAME_CHARACTERS) != n)
        conf_mistake(build, place_of(build, "cluster.name", NULL),
                     "cluster.name: it has more than %d characters, or others than letters, digits "
                     "and . _ -",
                     CONF_NODE_NAME_MAX);
}

#ifdef HAVE_REDIS
#define REDIS_BUILT_IN true
#else
#define REDIS_BUILT_IN false
#endif

static void check_redis(struct conf_build *build)
{
    const struct conf *conf = build->conf;
    size_t n = strlen(conf->redis_prefix);
    if (n > CONF_REDIS_PREFIX_MAX ||
        strspn(conf->redis_prefix,
               "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != n)
        conf_mistake(build, place_of(build, "limits.redis.prefix", NULL),
                     "limits.redis.prefix: use at most %d letters, digits, . _ and -",
                     CONF_REDIS_PREFIX_MAX);
    if (conf->limits_engine != LIMITS_REDIS)
        return;
    if (!REDIS_BUILT_IN)
        conf_mistake(build, place_of(build, "limits.engine", NULL),
                     "limits.engine: this program is built without Redis; install the package "
                     "assay-cluster, or set limits.engine to local");
    else if (conf->redis_key_file[0] == '\0' && conf->cluster_log[0] == '\0')
        conf_mistake(build, place_of(build, "limits.redis.key_file", "limits.engine"),
                     "limits.redis.key_file: the engine redis needs a key file; write one with "
                     "`openssl rand -hex 32`, mode 0600, and copy it to every node");
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
    check_cluster(build);
    check_redis(build);
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
    check_file(build, "cluster.key_file", build->conf->cluster_key_file, FILE_OF_KEY);
    if (build->conf->limits_engine != LIMITS_REDIS)
        return;
    check_file(build, "limits.redis.key_file", build->conf->redis_key_file, FILE_OF_KEY);
    check_file(build, "limits.redis.password_file", build->conf->redis_password_file,
               FILE_OF_PASSWORD);
    check_file(build, "limits.redis.sentinel_password_file",
               build->conf->redis_sentinel_password_file, FILE_OF_PASSWORD);
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
