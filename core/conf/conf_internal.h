/*
 * Private to core/conf: the option table, the value types, and a configuration under construction.
 *
 * Keys are dotted. A key that begins with "listen.N." describes every entry of the list `listen`
 * and is stored in struct conf_listen; all others are stored in struct conf.
 */
#ifndef ASSAY_CONF_CONF_INTERNAL_H
#define ASSAY_CONF_CONF_INTERNAL_H

#include "core/conf/conf.h"

#define CONF_WHY_SIZE 256
#define CONF_KEY_SIZE 128
#define CONF_MISTAKES_MAX 100
#define CONF_LISTEN_PREFIX "listen.N."
#define CONF_OPTIONS_MAX 128

struct conf_option;

/*
 * A value type.
 * parse: set the option's member of ${base} to ${text}; a list gets one more item. On failure
 * returns false with a sentence in ${why}, to print after "KEY: ".
 * print: write the member as YAML that parse reads back to the same value.
 * clear: free the member; it is empty and valid afterwards.
 */
struct conf_type {
    const char *name;   /* shown in help */
    const char *wanted; /* what to write, for the error about a value of the wrong YAML type */
    bool list;
    bool ranged; /* help shows the option's min and max after the name */
    bool (*parse)(const struct conf_option *option, char *base, const char *text,
                  char why[CONF_WHY_SIZE]);
    void (*print)(const struct conf_option *option, const char *base, FILE *out);
    void (*clear)(const struct conf_option *option, char *base);
};

extern const struct conf_type conf_type_text, conf_type_path, conf_type_address, conf_type_url,
    conf_type_integer, conf_type_workers, conf_type_nodes, conf_type_duration, conf_type_age,
    conf_type_size, conf_type_cidrs, conf_type_ports, conf_type_addresses, conf_type_choice,
    conf_type_bool, conf_type_limiters;

struct conf_option {
    const char *key;
    const struct conf_type *type;
    size_t offset;              /* of the member */
    size_t count_offset;        /* arrays: of the count */
    uint64_t min, max;          /* numbers: the range; texts: max is 1 if "" is allowed */
    const char *const *choices; /* ends with NULL; the value is the index */
    const char *initial;        /* default as text; items of a list are separated by spaces */
    const char *sample;         /* value in packaging/assay.yaml if it differs; else NULL */
    bool reload;
    const char *help;
};

extern const struct conf_option conf_options[];
extern const size_t conf_options_count;

/* conf_option_in_listen(option): whether it is stored in struct conf_listen. */
bool conf_option_in_listen(const struct conf_option *option);

/* Where a value was set. Line 0: --set, or a whole file. */
struct conf_place {
    const char *file;
    size_t line;
    bool mistaken; /* the value was refused: do not compare others with it */
};

struct conf_build {
    struct conf *conf;
    FILE *mistakes;
    int mistakes_count;
    struct conf_place *places; /* per option: where it was set last; file NULL: not set */
    struct conf_place listen_places[CONF_LISTEN_MAX];
    struct conf_override *overrides; /* resolved last: their keys depend on other options */
    size_t overrides_count;
};

/* An override of a limiter, as written. */
struct conf_override {
    unsigned limiter;
    char key[LIMITER_TEXT_SIZE];
    uint32_t limit, seconds; /* seconds 0: every window that counts such keys */
    struct conf_place place;
};

/*
 * conf_mistake(build, place, format, …): report an error, one line. Beyond CONF_MISTAKES_MAX errors
 * are only counted.
 */
void conf_mistake(struct conf_build *build, struct conf_place place, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* conf_quote(text, out): ${text} shortened and without control characters. Returns ${out}. */
#define CONF_QUOTE_SIZE 80
const char *conf_quote(const char *text, char out[CONF_QUOTE_SIZE]);

/* conf_key(option, listener, out): the key as written, such as listen.1.address. Returns ${out}. */
const char *conf_key(const struct conf_option *option, size_t listener, char out[CONF_KEY_SIZE]);

/*
 * conf_assign(build, option, listener, place, texts, count): set an option to ${texts}, exactly one
 * unless the option is a list. Reports errors.
 */
void conf_assign(struct conf_build *build, const struct conf_option *option, size_t listener,
                 struct conf_place place, const char *const *texts, size_t count);

/* conf_assign_text(option, base, text): set a default of the table, which must be valid. */
void conf_assign_text(const struct conf_option *option, char *base, const char *text);

/* conf_new(): the defaults, to free with conf_free; NULL: out of memory. */
struct conf *conf_new(void);

/*
 * conf_listen_append(conf): add a listener with the defaults; false if there are CONF_LISTEN_MAX.
 * conf_listen_clear(conf): remove all listeners.
 */
bool conf_listen_append(struct conf *conf);
void conf_listen_clear(struct conf *conf);

/* conf_unknown(build, place, path): report an unknown key, with the nearest known one. */
void conf_unknown(struct conf_build *build, struct conf_place place, const char *path);

/* conf_find(key): the option, or NULL. conf_group(key): whether options begin with "key.". */
const struct conf_option *conf_find(const char *key);
bool conf_group(const char *key);

/* conf_set(build, set): apply "KEY=VALUE" of the command line. */
void conf_set(struct conf_build *build, const char *set);

/*
 * conf_yaml_read(build, path, lineless, text, size): read YAML and report its errors. ${lineless}:
 * the text is not a file, so errors are reported without a line.
 */
void conf_yaml_read(struct conf_build *build, const char *path, bool lineless, const char *text,
                    size_t size);

/* conf_limits_finish(build): after all values are read, resolve the overrides of the limiters. */
void conf_limits_finish(struct conf_build *build);

#endif
