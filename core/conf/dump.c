#include "core/conf/conf_internal.h"

#include <string.h>

#define INDENT 4
#define WIDTH 100 /* of the sample */

/* A walk over the table that prints the values and, with ${comments}, the descriptions. */
struct dump {
    const struct conf *conf;
    FILE *out;
    bool comments;
    char group[64]; /* the open groups, dotted, with a dot at the end */
};

static void indent(const struct dump *dump, size_t columns)
{
    fprintf(dump->out, "%*s", (int)columns, "");
}

static size_t columns_of(const char *group)
{
    size_t columns = 0;
    for (const char *p = group; *p != '\0'; p++)
        columns += *p == '.' ? INDENT : 0;
    return columns;
}

/* Open the groups of ${key} that are not open yet, one line each. */
static void open_groups(struct dump *dump, const char *key)
{
    size_t same = 0;
    for (size_t i = 0; key[i] != '\0' && key[i] == dump->group[i]; i++)
        if (key[i] == '.')
            same = i + 1;
    const char *leaf = strrchr(key, '.');
    size_t end = leaf == NULL ? 0 : (size_t)(leaf - key) + 1;
    if (dump->comments && same == 0 && end > 0)
        fputc('\n', dump->out);
    for (size_t at = same; at < end;) {
        size_t n = strcspn(key + at, ".");
        snprintf(dump->group, sizeof(dump->group), "%.*s", (int)at, key);
        indent(dump, columns_of(dump->group));
        fprintf(dump->out, "%.*s:\n", (int)n, key + at);
        at += n + 1;
    }
    snprintf(dump->group, sizeof(dump->group), "%.*s", (int)end, key);
}

/* ${text} as comment lines of at most WIDTH columns. */
static void wrap(const struct dump *dump, size_t columns, const char *text)
{
    size_t at = 0;
    for (size_t n; *text != '\0'; text += n + strspn(text + n, " ")) {
        n = strcspn(text, " ");
        if (at == 0 || at + 1 + n > WIDTH) {
            fputs(at == 0 ? "" : "\n", dump->out);
            indent(dump, columns);
            fputc('#', dump->out);
            at = columns + 1;
        }
        fprintf(dump->out, " %.*s", (int)n, text);
        at += 1 + n;
    }
    fputc('\n', dump->out);
}

static void comment(const struct dump *dump, size_t option_index, size_t columns)
{
    struct conf_option_view view;
    if (!dump->comments || !conf_option_at(option_index, &view))
        return;
    wrap(dump, columns, view.help);
    indent(dump, columns);
    fprintf(dump->out, "# %s; default %s; %s\n", view.type, view.initial,
            view.reload ? "reload" : "restart");
}

static void value(const struct dump *dump, const struct conf_option *option, const char *base)
{
    if (dump->comments && option->sample != NULL)
        fprintf(dump->out, "%s\n", option->sample);
    else if (dump->comments && option->type == &conf_type_workers)
        fprintf(dump->out, "%s\n", option->initial);
    else {
        option->type->print(option, base, dump->out);
        fputc('\n', dump->out);
    }
}

/* The list of listeners: the options of CONF_LISTEN_PREFIX for each, the first after "- ". */
static void dump_listeners(struct dump *dump)
{
    fputs("listen:\n", dump->out);
    for (size_t n = 0; n < dump->conf->listen_count; n++) {
        const char *base = (const char *)&dump->conf->listen[n];
        bool tls = false;
        for (size_t i = 0; i < conf_options_count && conf_option_in_listen(&conf_options[i]); i++) {
            const char *key = conf_options[i].key + strlen(CONF_LISTEN_PREFIX);
            const char *leaf = strrchr(key, '.');
            size_t columns = i == 0 ? INDENT : leaf == NULL ? INDENT + 2 : 2 * INDENT + 2;
            if (leaf != NULL && !tls) {
                indent(dump, INDENT + 2);
                fprintf(dump->out, "%.*s:\n", (int)(leaf - key), key);
                tls = true;
            }
            if (n == 0)
                comment(dump, i, columns);
            indent(dump, columns);
            fprintf(dump->out, "%s%s: ", i == 0 ? "- " : "", leaf == NULL ? key : leaf + 1);
            value(dump, &conf_options[i], base);
        }
    }
}

static void dump_all(struct dump *dump)
{
    dump_listeners(dump);
    for (size_t i = 0; i < conf_options_count; i++) {
        const struct conf_option *option = &conf_options[i];
        if (conf_option_in_listen(option))
            continue;
        bool grouped = strchr(option->key, '.') != NULL;
        if (dump->comments && !grouped)
            fputc('\n', dump->out);
        open_groups(dump, option->key);
        size_t columns = columns_of(dump->group);
        comment(dump, i, columns);
        indent(dump, columns);
        fprintf(dump->out, "%s: ", option->key + strlen(dump->group));
        value(dump, option, (const char *)dump->conf);
    }
}

void conf_dump(const struct conf *conf, FILE *out)
{
    struct dump dump = {.conf = conf, .out = out};
    dump_all(&dump);
}

void conf_sample(FILE *out)
{
    struct conf *conf;
    if (conf_load(NULL, false, NULL, 0, out, &conf) != 0)
        return;
    fputs(
        "# Configuration of assayd. Each option has a description, its type and its default.\n"
        "# An option that is left out has its default. The values here are the defaults, except:\n",
        out);
    for (size_t i = 0; i < conf_options_count; i++)
        if (conf_options[i].sample != NULL)
            fprintf(out, "#     %s: %s\n", conf_options[i].key, conf_options[i].sample);
    fputs(
        "# Check the file with `assayd -t`. A reload (HUP) applies changed options marked reload.\n"
        "# If an option marked restart has changed, too, the reload is refused and applies "
        "nothing.\n"
        "\n",
        out);
    struct dump dump = {.conf = conf, .out = out, .comments = true};
    dump_all(&dump);
    conf_free(conf);
}
