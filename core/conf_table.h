/*
 * Inside of the configuration, for conf*.c alone: the option table, the types its rows name, and the configuration under construction.
 *
 * A row's key is dotted. Keys that begin with "listen.N." describe every entry of the list `listen`, and their members lie in struct
 * conf_listen; all others lie in struct conf.
 */
#ifndef ASSAY_CONF_TABLE_H
#define ASSAY_CONF_TABLE_H

#include "conf.h"

#define CONF_WHY_SIZE 256
#define CONF_KEY_SIZE 128
#define CONF_MISTAKES_MAX 100
#define CONF_LISTEN_PREFIX "listen.N."

struct conf_option;

/*
 * A kind of value. parse: the member of ${base} becomes ${text} (of a list: one more item); false and a sentence in ${why}, which follows
 * "KEY: ". print: the member as
 * YAML on one line, which parse reads back to the same.
 */
struct conf_type {
    const char *name;   /* for people */
    const char *wanted; /* an example for the sentence about a value of the wrong shape */
    bool list;
    bool ranged; /* the row's min and max belong to the name */
    bool (*parse)(const struct conf_option *option, char *base, const char *text,
                  char why[CONF_WHY_SIZE]);
    void (*print)(const struct conf_option *option, const char *base, FILE *out);
    void (*clear)(const struct conf_option *option,
                  char *base); /* frees; the member is empty and valid after it */
};

extern const struct conf_type conf_type_text, conf_type_path, conf_type_address, conf_type_url,
    conf_type_integer, conf_type_workers, conf_type_duration, conf_type_age, conf_type_size,
    conf_type_cidrs, conf_type_ports, conf_type_choice, conf_type_bool, conf_type_limiters;

struct conf_option {
    const char *key;
    const struct conf_type *type;
    size_t offset;       /* of the member */
    size_t count_offset; /* of an array's count */
    uint64_t min,
        max; /* numbers: the range, in the member's unit; texts: max is 1 where an empty one is allowed */
    const char *const *choices; /* ends in NULL; a value is its index */
    const char *initial;        /* default, as a scalar's text; lists: items parted by blanks */
    const char *sample;         /* value in the packages' file where it differs; else NULL */
    bool reload;
    const char *help;
};

extern const struct conf_option conf_options[];
extern const size_t conf_options_count;

/* conf_option_in_listen(option): whether its member lies in struct conf_listen. */
bool conf_option_in_listen(const struct conf_option *option);

/* Where a value came from: a file's line, or line 0 for --set and what a whole file is about. */
struct conf_place {
    const char *file;
    size_t line;
    bool mistaken; /* the value was refused, so what stands there says nothing about others */
};

struct conf_build {
    struct conf *conf;
    FILE *mistakes;
    int mistakes_count;
    struct conf_place
        *places; /* per row of the table: where it was set last, file NULL when it was not */
    struct conf_place listen_places[CONF_LISTEN_MAX]; /* per listener */
    struct conf_override
        *overrides; /* as written: what their keys mean depends on the other options */
    size_t overrides_count;
};

/* Another limit for one key, as it is written. */
struct conf_override {
    unsigned limiter;
    char key[LIMITER_TEXT_SIZE];
    uint32_t limit, seconds; /* seconds 0: every window that such a key can be of */
    struct conf_place place;
};

/* conf_mistake(build, place, format, …): one line to ${mistakes}, and counted; beyond CONF_MISTAKES_MAX only counted. */
void conf_mistake(struct conf_build *build, struct conf_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* conf_quote(text, out): ${text} fit for a sentence: short, no control characters. Returns ${out}. */
#define CONF_QUOTE_SIZE 80
const char *conf_quote(const char *text, char out[CONF_QUOTE_SIZE]);

/* conf_key(option, listener, out): the key as one writes it: listen.1.address for the second listener. Returns ${out}. */
const char *conf_key(const struct conf_option *option, size_t listener, char out[CONF_KEY_SIZE]);

/*
 * conf_assign(build, option, listener, place, texts, count): set one option to ${texts}; a scalar takes exactly one. A mistake is written
 * and counted.
 */
void conf_assign(struct conf_build *build, const struct conf_option *option, size_t listener,
                 struct conf_place place, const char *const *texts, size_t count);

/* conf_assign_text(option, base, text): a default from the table, which must be valid. */
void conf_assign_text(const struct conf_option *option, char *base, const char *text);

/*
 * conf_listen_append(conf): one more listener with every option at its default; false when there are CONF_LISTEN_MAX. conf_listen_clear:
 * none is left.
 */
bool conf_listen_append(struct conf *conf);
void conf_listen_clear(struct conf *conf);

/* conf_unknown(build, place, path): the mistake about a key that no row has, with what may have been meant. */
void conf_unknown(struct conf_build *build, struct conf_place place, const char *path);

/* conf_find(key): the row; NULL. conf_group(key): whether rows lie below "key.". */
const struct conf_option *conf_find(const char *key);
bool conf_group(const char *key);

/*
 * conf_yaml_read(build, path, lineless, text, size): every value and every mistake of a YAML file's ${size} bytes. ${lineless}: it is no
 * file, so mistakes are told without a line.
 */
void conf_yaml_read(struct conf_build *build, const char *path, bool lineless, const char *text,
                    size_t size);

/* conf_limits_finish(build): once all is read: the overrides' keys, and what other options say about the limits. */
void conf_limits_finish(struct conf_build *build);

/* conf_route_taken(method, path): whether a limiter may name that route (conf_know_routes). */
bool conf_route_taken(struct str method, struct str path);

#endif
