/*
 * limits.limiters: a map of limiters by name. Each entry changes a built-in limiter or adds one.
 *
 *   NAME:
 *     windows: [ { limit: N, seconds: S, key: ip } ]     replaces all windows
 *     routes: [ "GET /api/v1/reports" ]                  replaces the built-in limiter of the route
 *     dry_run: true
 *     fallback: refuse                                   when Redis does not answer
 *     lease: 20                                          taken ahead from Redis
 *     overrides: [ { key: "203.0.113.7", limit: N, seconds: S } ]
 */
#include "core/conf/yaml_internal.h"
#include "core/conf/values.h"
#include "ratelimit/ratelimit.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>

_Static_assert(LIMITER_WINDOWS_MAX <= RATELIMIT_WINDOWS_MAX && LIMITER_KEY_MAX <= RATELIMIT_KEY_MAX,
               "the limiter table can hold every window and key");

/* The place in the document: "limits.limiters.api.windows.0". */
struct at {
    struct yaml_reader *reading;
    struct limiters *limits;
    unsigned limiter;
    char path[CONF_KEY_SIZE];
};

static void mistake(const struct at *at, const yaml_node_t *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void mistake(const struct at *at, const yaml_node_t *node, const char *format, ...)
{
    char text[CONF_WHY_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    conf_mistake(at->reading->build, conf_node_place(at->reading, node), "%s: %s", at->path, text);
}

static struct at below(const struct at *at, const char *name)
{
    struct at deeper = *at;
    size_t n = strlen(at->path);
    char quoted[CONF_QUOTE_SIZE];
    snprintf(deeper.path + n, sizeof(deeper.path) - n, ".%s", conf_quote(name, quoted));
    return deeper;
}

static struct at item_of(const struct at *at, size_t i)
{
    char number[24];
    snprintf(number, sizeof(number), "%zu", i);
    return below(at, number);
}

/* ---- maps and lists ---- */

/* A key of a map; ${read} reports its errors. */
struct member {
    const char *name;
    void (*read)(struct at *at, const yaml_node_t *node, void *to);
    bool needed;
};

/* Read the map at ${node}, whose keys are ${members}. */
static bool read_map(struct at *at, const yaml_node_t *node, const struct member *members, void *to)
{
    uint32_t seen = 0;
    int before = at->reading->build->mistakes_count;
    if (node->type != YAML_MAPPING_NODE) {
        mistake(at, node, "wrong type; give a map such as {%s: …}", members[0].name);
        return false;
    }
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = conf_node(at->reading, pair->key);
        const char *name = conf_scalar(key);
        size_t i = 0;
        while (name != NULL && members[i].name != NULL && strcmp(members[i].name, name) != 0)
            i++;
        struct at deeper = below(at, name == NULL ? "?" : name);
        if (name == NULL || members[i].name == NULL)
            mistake(&deeper, key, "unknown key");
        else if ((seen & 1u << i) != 0)
            mistake(&deeper, key, "is set twice");
        else
            members[i].read(&deeper, conf_node(at->reading, pair->value), to);
        if (name != NULL && members[i].name != NULL)
            seen |= 1u << i;
    }
    for (size_t i = 0; members[i].name != NULL; i++)
        if (members[i].needed && (seen & 1u << i) == 0)
            mistake(at, node, "%s is missing", members[i].name);
    return at->reading->build->mistakes_count == before;
}

/* The items of the list at ${node}; NULL and an error if it is not one of ${least} to ${max}. */
static const yaml_node_item_t *read_items(struct at *at, const yaml_node_t *node, size_t least,
                                          size_t max, size_t *count)
{
    if (node->type != YAML_SEQUENCE_NODE) {
        mistake(at, node, "wrong type; give a list");
        return NULL;
    }
    *count = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
    if (*count >= least && *count <= max)
        return node->data.sequence.items.start;
    mistake(at, node, "give %zu to %zu items", least, max);
    return NULL;
}

static bool read_number(struct at *at, const yaml_node_t *node, uint64_t least, uint64_t most,
                        uint32_t *out)
{
    char quoted[CONF_QUOTE_SIZE];
    const char *text = conf_scalar(node);
    uint64_t value;
    if (text != NULL && value_number(text, &value) && value >= least && value <= most) {
        *out = (uint32_t)value;
        return true;
    }
    mistake(at, node, "\"%s\" is not a whole number from %" PRIu64 " to %" PRIu64,
            conf_quote(text == NULL ? "…" : text, quoted), least, most);
    return false;
}

/* ---- windows ---- */

static void read_limit(struct at *at, const yaml_node_t *node, void *to)
{
    read_number(at, node, 0, RATELIMIT_COUNT_MAX, &((struct limiter_window *)to)->limit);
}

static void read_seconds(struct at *at, const yaml_node_t *node, void *to)
{
    read_number(at, node, 1, RATELIMIT_SECONDS_MAX, &((struct limiter_window *)to)->seconds);
}

static void read_by(struct at *at, const yaml_node_t *node, void *to)
{
    const char *text = conf_scalar(node);
    char quoted[CONF_QUOTE_SIZE];
    enum limiter_by by = text == NULL ? LIMITER_BYS : limiter_by_find(text);
    if (by == LIMITER_BYS)
        mistake(at, node, "\"%s\" is not one of ip, ip+agent, jwt, token, api_key, report",
                conf_quote(text == NULL ? "…" : text, quoted));
    else
        ((struct limiter_window *)to)->by = by;
}

static const struct member window_members[] = {
    {"limit", read_limit, true}, {"seconds", read_seconds, true}, {"key", read_by, true}, {0}};

static void read_windows(struct at *at, const yaml_node_t *node, void *to)
{
    struct limiter_row *row = to;
    size_t count;
    const yaml_node_item_t *items = read_items(at, node, 1, LIMITER_WINDOWS_MAX, &count);
    if (items == NULL)
        return;
    struct limiter_window windows[LIMITER_WINDOWS_MAX] = {0};
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        struct at item = item_of(at, i);
        const yaml_node_t *child = conf_node(at->reading, items[i]);
        if (!read_map(&item, child, window_members, &windows[i]))
            good = false;
        for (size_t k = 0; good && k < i; k++)
            if (windows[k].by == windows[i].by && windows[k].seconds == windows[i].seconds)
                mistake(&item, child,
                        "has the same key and seconds as another window; give one of them");
    }
    if (!good)
        return;
    row->windows_count = (uint32_t)count;
    memcpy(row->windows, windows, sizeof(windows));
}

/* ---- routes ---- */

static conf_route_fn *route_known;

void conf_know_routes(conf_route_fn *known)
{
    route_known = known;
}

static bool route_named(const struct limiters *limits, unsigned limiter, const char *route,
                        const char **by)
{
    for (unsigned i = 1; i < limits->count; i++)
        for (uint32_t k = 0; i != limiter && k < limits->rows[i].routes_count; k++)
            if (strcmp(limits->rows[i].routes[k], route) == 0) {
                *by = limits->rows[i].name;
                return true;
            }
    return false;
}

static bool read_route(struct at *at, const yaml_node_t *node, char out[LIMITER_ROUTE_SIZE])
{
    const char *text = conf_scalar(node), *other;
    char quoted[CONF_QUOTE_SIZE];
    struct str method, path;
    conf_quote(text == NULL ? "…" : text, quoted);
    if (text == NULL || strlen(text) >= LIMITER_ROUTE_SIZE ||
        !limiters_route_parts(text, &method, &path))
        mistake(at, node,
                "\"%s\" is not a route; write one such as \"GET /api/v1/reports/{id}\" or \"* "
                "/v1/wp/*\"",
                quoted);
    else if (route_known != NULL && !route_known(method, path))
        mistake(at, node, "there is no route \"%s\"; openapi.json lists the routes", quoted);
    else if (route_named(at->limits, at->limiter, text, &other))
        mistake(at, node, "\"%s\" is already a route of %s", quoted, other);
    else {
        strcpy(out, text);
        return true;
    }
    return false;
}

static void read_routes(struct at *at, const yaml_node_t *node, void *to)
{
    struct limiter_row *row = to;
    size_t count;
    const yaml_node_item_t *items = read_items(at, node, 0, LIMITER_ROUTES_MAX, &count);
    row->routes_count = 0;
    for (size_t i = 0; items != NULL && i < count; i++) {
        struct at item = item_of(at, i);
        row->routes_count +=
            read_route(&item, conf_node(at->reading, items[i]), row->routes[row->routes_count]);
    }
}

/* ---- overrides ---- */

static void read_override_key(struct at *at, const yaml_node_t *node, void *to)
{
    struct conf_override *o = to;
    const char *text = conf_scalar(node);
    if (text == NULL || strlen(text) >= sizeof(o->key))
        mistake(at, node, "give one key, a text of at most %zu bytes", sizeof(o->key) - 1);
    else
        strcpy(o->key, text);
}

static void read_override_limit(struct at *at, const yaml_node_t *node, void *to)
{
    read_number(at, node, 0, RATELIMIT_COUNT_MAX, &((struct conf_override *)to)->limit);
}

static void read_override_seconds(struct at *at, const yaml_node_t *node, void *to)
{
    read_number(at, node, 1, RATELIMIT_SECONDS_MAX, &((struct conf_override *)to)->seconds);
}

static const struct member override_members[] = {{"key", read_override_key, true},
                                                 {"limit", read_override_limit, true},
                                                 {"seconds", read_override_seconds, false},
                                                 {0}};

static void drop_overrides(struct conf_build *build, unsigned limiter)
{
    size_t kept = 0;
    for (size_t i = 0; i < build->overrides_count; i++)
        if (build->overrides[i].limiter != limiter)
            build->overrides[kept++] = build->overrides[i];
    build->overrides_count = kept;
}

static void read_overrides(struct at *at, const yaml_node_t *node, void *to)
{
    struct conf_build *build = at->reading->build;
    size_t count;
    const yaml_node_item_t *items = read_items(at, node, 0, LIMITERS_OVERRIDES_MAX, &count);
    (void)to;
    if (items == NULL)
        return;
    drop_overrides(build, at->limiter);
    struct conf_override *overrides =
        realloc(build->overrides, (build->overrides_count + count + 1) * sizeof(*overrides));
    if (overrides == NULL) {
        mistake(at, node, "out of memory");
        return;
    }
    build->overrides = overrides;
    for (size_t i = 0; i < count; i++) {
        struct at item = item_of(at, i);
        const yaml_node_t *child = conf_node(at->reading, items[i]);
        struct conf_override o = {.limiter = at->limiter,
                                  .place = conf_node_place(at->reading, child)};
        if (read_map(&item, child, override_members, &o))
            overrides[build->overrides_count++] = o;
    }
}

/* ---- limiters ---- */

static void read_dry_run(struct at *at, const yaml_node_t *node, void *to)
{
    const char *text = conf_scalar(node);
    bool yes = text != NULL && strcmp(text, "true") == 0;
    if (!yes && (text == NULL || strcmp(text, "false") != 0))
        mistake(at, node, "give true or false");
    ((struct limiter_row *)to)->dry_run = yes;
}

static void read_fallback(struct at *at, const yaml_node_t *node, void *to)
{
    const char *text = conf_scalar(node), *name;
    char quoted[CONF_QUOTE_SIZE];
    uint32_t i = 0;
    while ((name = limiter_fallback_name((enum limiter_fallback)i)) != NULL &&
           (text == NULL || strcmp(text, name) != 0))
        i++;
    if (name == NULL)
        mistake(at, node, "\"%s\" is not one of local, refuse, admit",
                conf_quote(text == NULL ? "…" : text, quoted));
    else
        ((struct limiter_row *)to)->fallback = i;
}

static void read_lease(struct at *at, const yaml_node_t *node, void *to)
{
    read_number(at, node, 0, LIMITER_LEASE_MAX, &((struct limiter_row *)to)->lease);
}

static const struct member limiter_members[] = {{"windows", read_windows, false},
                                                {"routes", read_routes, false},
                                                {"dry_run", read_dry_run, false},
                                                {"fallback", read_fallback, false},
                                                {"lease", read_lease, false},
                                                {"overrides", read_overrides, false},
                                                {0}};

static bool name_good(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= LIMITER_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n && name[0] != '-' &&
           name[0] != '_';
}

/* The row with this name, a new one if necessary; LIMITER_NONE and an error if not possible. */
static unsigned row_of(struct at *at, const yaml_node_t *key, const char *name)
{
    unsigned i = limiters_find(at->limits, name);
    if (i != LIMITER_NONE)
        return i;
    if (!name_good(name)) {
        mistake(at, key,
                "the name of a limiter has 1 to %d lowercase letters, digits, - and _, and begins "
                "with a letter "
                "or digit",
                LIMITER_NAME_MAX);
        return LIMITER_NONE;
    }
    if (at->limits->count == LIMITERS_MAX) {
        mistake(at, key, "more than %d limiters", LIMITERS_MAX - 1);
        return LIMITER_NONE;
    }
    i = at->limits->count++;
    strcpy(at->limits->rows[i].name, name);
    return i;
}

static void read_limiter(struct at *at, const yaml_node_t *key, const yaml_node_t *node)
{
    const char *name = conf_scalar(key);
    struct at deeper = below(at, name == NULL ? "?" : name);
    if (name == NULL || (deeper.limiter = row_of(&deeper, key, name)) == LIMITER_NONE)
        return;
    struct limiter_row *row = &at->limits->rows[deeper.limiter];
    if (!read_map(&deeper, node, limiter_members, row))
        return;
    if (row->windows_count == 0)
        mistake(&deeper, key, "a limiter that is not built in needs windows");
    else if (deeper.limiter >= LIMITERS_BUILT_IN && row->routes_count == 0)
        mistake(&deeper, key,
                "a limiter that is not built in needs routes; without routes it limits nothing");
    else if (row->lease > 1 && !limiter_one_key(row))
        mistake(&deeper, key,
                "lease needs windows that count the same key; leave lease out, or give all windows "
                "the same key");
}

void conf_limits_read(struct yaml_reader *reading, const yaml_node_t *node)
{
    struct at at = {
        .reading = reading, .limits = reading->build->conf->limits, .path = "limits.limiters"};
    const yaml_node_t *seen[LIMITERS_MAX];
    size_t seen_count = 0;
    if (node->type != YAML_MAPPING_NODE) {
        mistake(&at, node,
                "wrong type; give a map of limiters by name, such as {api: {windows: […]}}");
        return;
    }
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = conf_node(reading, pair->key);
        const char *name = conf_scalar(key);
        size_t i = 0;
        while (name != NULL && i < seen_count && strcmp(conf_scalar(seen[i]), name) != 0)
            i++;
        if (i < seen_count)
            mistake(&at, key, "%s is set twice, first on line %zu", name,
                    seen[i]->start_mark.line + 1);
        else
            read_limiter(&at, key, conf_node(reading, pair->value));
        if (name != NULL && i == seen_count && seen_count < LIMITERS_MAX)
            seen[seen_count++] = key;
    }
}

/* ---- after all values are read ---- */

static bool add_override(struct limiters *limits, const struct conf_override *o, unsigned window,
                         const struct limiter_key *key)
{
    if (limits->overrides_count == LIMITERS_OVERRIDES_MAX)
        return false;
    limits->overrides[limits->overrides_count++] = (struct limiter_override){
        .limiter = o->limiter, .window = window, .limit = o->limit, .key = *key};
    return true;
}

static void finish_override(struct conf_build *build, struct limiters *limits,
                            const struct conf_override *o)
{
    const struct limiter_row *row = &limits->rows[o->limiter];
    char quoted[CONF_QUOTE_SIZE];
    unsigned meant = 0;
    for (unsigned w = 0; w < row->windows_count; w++) {
        struct limiter_key key;
        if ((o->seconds != 0 && row->windows[w].seconds != o->seconds) ||
            !limiter_key_parse((enum limiter_by)row->windows[w].by, limits->ipv6_prefix, o->key,
                               &key))
            continue;
        meant++;
        for (uint32_t i = 0; i < limits->overrides_count; i++)
            if (limits->overrides[i].limiter == o->limiter && limits->overrides[i].window == w &&
                memcmp(&limits->overrides[i].key, &key, sizeof(key)) == 0)
                conf_mistake(build, o->place,
                             "limits.limiters.%s: there are two overrides of \"%s\"", row->name,
                             conf_quote(o->key, quoted));
        if (!add_override(limits, o, w, &key))
            conf_mistake(build, o->place, "limits.limiters: more than %d overrides in all",
                         LIMITERS_OVERRIDES_MAX);
    }
    if (meant == 0)
        conf_mistake(build, o->place,
                     "limits.limiters.%s: \"%s\" is not a key of its windows; see KEYS in assay(1)",
                     row->name, conf_quote(o->key, quoted));
}

void conf_limits_finish(struct conf_build *build)
{
    const struct conf *conf = build->conf;
    struct limiters *limits = conf->limits;
    limits->ipv6_prefix = conf->limits_ipv6_prefix;
    limits->exempt_count =
        (uint32_t)(conf->limits_exempt.count < LIMITERS_EXEMPT_MAX ? conf->limits_exempt.count
                                                                   : LIMITERS_EXEMPT_MAX);
    for (uint32_t i = 0; i < limits->exempt_count; i++)
        limits->exempt[i] = conf->limits_exempt.items[i];
    limiters_sort(limits); /* overrides refer to windows by position */
    for (size_t i = 0; i < build->overrides_count && build->mistakes_count < CONF_MISTAKES_MAX; i++)
        finish_override(build, limits, &build->overrides[i]);
    limiters_sort(limits);
}
