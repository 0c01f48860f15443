#include "core/conf/yaml_internal.h"

#include <stdlib.h>
#include <string.h>

#define KEYS_MAX 64   /* in one group; more than the table has */
#define ITEMS_MAX 256 /* in one list */
#define DEPTH_MAX 8   /* more than any option needs; libyaml takes quadratic time for nesting */

/* `key:` without a value. */
static bool scalar_absent(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE && node->data.scalar.length == 0 &&
           node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

/* The state of the first pass. */
struct events {
    size_t documents, depth;
    bool walkable;
};

/* Report the errors of one event. */
static void check_event(struct yaml_reader *reading, const yaml_event_t *event, struct events *seen)
{
    struct conf_build *build = reading->build;
    struct conf_place place = conf_line_place(reading, event->start_mark.line);
    const yaml_char_t *anchor = NULL, *tag = NULL;
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
        break;
    case YAML_SEQUENCE_START_EVENT:
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
        seen->depth++;
        break;
    case YAML_MAPPING_START_EVENT:
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
        seen->depth++;
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        seen->depth--;
        break;
    case YAML_ALIAS_EVENT:
        conf_mistake(build, place, "aliases (*name) are not allowed; repeat the value");
        seen->walkable = false;
        break;
    case YAML_DOCUMENT_START_EVENT:
        if (++seen->documents == 2)
            conf_mistake(build, place, "a second document; a configuration is one document");
        break;
    default:
        break;
    }
    if (anchor != NULL)
        conf_mistake(build, place, "anchors (&name) are not allowed; repeat the value");
    if (tag != NULL)
        conf_mistake(build, place, "tags (!name) are not allowed");
    if (seen->depth > DEPTH_MAX)
        conf_mistake(build, place, "nested too deeply");
}

/*
 * The column, from 1, of a tab that YAML does not allow: in the indentation of the line of ${mark},
 * or at ${mark} itself, whose column counts characters. 0: there is none.
 */
static size_t tab_column(const struct yaml_reader *reading, yaml_mark_t mark)
{
    const char *at = reading->text, *end = at + reading->size;
    for (size_t line = 0; line < mark.line && at != NULL; line++)
        at = (at = memchr(at, '\n', (size_t)(end - at))) == NULL ? NULL : at + 1;
    if (at == NULL)
        return 0;
    for (const char *p = at; p < end && (*p == ' ' || *p == '\t'); p++)
        if (*p == '\t')
            return (size_t)(p - at) + 1;
    for (size_t column = 0; at < end; at++)
        if (((unsigned char)*at & 0xc0) != 0x80 && column++ == mark.column)
            return *at == '\t' ? column : 0;
    return 0;
}

static void report_not_yaml(struct yaml_reader *reading, const yaml_parser_t *parser)
{
    bool unreadable = parser->error == YAML_READER_ERROR;
    struct conf_place place =
        conf_line_place(reading, unreadable ? parser->mark.line : parser->problem_mark.line);
    size_t tab = unreadable ? 0 : tab_column(reading, parser->problem_mark);
    if (tab > 0)
        conf_mistake(reading->build, place, "not YAML: a tab in column %zu; use spaces", tab);
    else
        conf_mistake(reading->build, place, "not YAML: %s",
                     parser->problem == NULL ? "out of memory" : parser->problem);
}

/*
 * First pass, over events, for errors that the document API does not show. Aliases are refused
 * because they could expand without bound, tags because no value needs one, a second document
 * because it would have no effect. False if the document cannot be loaded.
 */
static bool pass_events(struct yaml_reader *reading, yaml_parser_t *parser)
{
    struct events seen = {.walkable = true};
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            report_not_yaml(reading, parser);
            return false;
        }
        check_event(reading, &event, &seen);
        bool end = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (end)
            return seen.walkable;
        if (seen.depth > DEPTH_MAX || reading->build->mistakes_count >= CONF_MISTAKES_MAX)
            return false;
    }
}

static void read_scalar(struct yaml_reader *reading, const struct conf_option *option,
                        size_t listener, const yaml_node_t *node)
{
    char key[CONF_KEY_SIZE];
    const char *text = conf_scalar(node);
    if (text == NULL) {
        conf_mistake(reading->build, conf_node_place(reading, node), "%s: wrong type; give %s",
                     conf_key(option, listener, key), option->type->wanted);
        reading->build->places[option - conf_options] =
            (struct conf_place){.file = reading->file, .mistaken = true};
        return;
    }
    conf_assign(reading->build, option, listener, conf_node_place(reading, node), &text, 1);
}

static void read_list(struct yaml_reader *reading, const struct conf_option *option,
                      const yaml_node_t *node)
{
    const char *texts[ITEMS_MAX];
    size_t count = 0;
    if (node->type != YAML_SEQUENCE_NODE) {
        conf_mistake(reading->build, conf_node_place(reading, node), "%s: wrong type; give %s",
                     option->key, option->type->wanted);
        return;
    }
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *child = yaml_document_get_node(&reading->document, *item);
        const char *text = conf_scalar(child);
        if (text == NULL) {
            conf_mistake(reading->build, conf_node_place(reading, child),
                         "%s: wrong type of item; give %s", option->key, option->type->wanted);
        } else if (count == ITEMS_MAX) {
            conf_mistake(reading->build, conf_node_place(reading, child), "%s: more than %d items",
                         option->key, ITEMS_MAX);
            return;
        } else {
            texts[count++] = text;
        }
    }
    conf_assign(reading->build, option, 0, conf_node_place(reading, node), texts, count);
}

static void read_group(struct yaml_reader *reading, const char *path, size_t listener,
                       const yaml_node_t *node);

static void read_listeners(struct yaml_reader *reading, const yaml_node_t *node)
{
    struct conf_build *build = reading->build;
    if (node->type != YAML_SEQUENCE_NODE ||
        node->data.sequence.items.top == node->data.sequence.items.start) {
        conf_mistake(
            build, conf_node_place(reading, node),
            "listen: give a list of at least one listener, such as \"- address: 127.0.0.1:8080\"");
        return;
    }
    conf_listen_clear(build->conf);
    for (const yaml_node_item_t *item = node->data.sequence.items.start;
         item < node->data.sequence.items.top; item++) {
        const yaml_node_t *child = yaml_document_get_node(&reading->document, *item);
        size_t listener = build->conf->listen_count;
        if (!conf_listen_append(build->conf)) {
            conf_mistake(build, conf_node_place(reading, child), "listen: more than %d listeners",
                         CONF_LISTEN_MAX);
            return;
        }
        build->listen_places[listener] = conf_node_place(reading, child);
        size_t address = (size_t)(conf_find(CONF_LISTEN_PREFIX "address") - conf_options);
        build->places[address].file = NULL;
        if (child->type != YAML_MAPPING_NODE) {
            build->listen_places[listener].mistaken = true;
            conf_mistake(build, conf_node_place(reading, child),
                         "listen: wrong type of item; write \"- address: 127.0.0.1:8080\"");
            continue;
        }
        read_group(reading, "listen.N", listener, child);
        if (build->places[address].file != NULL)
            continue;
        build->listen_places[listener].mistaken = true;
        conf_mistake(build, conf_node_place(reading, child),
                     "listen.%zu has no address; write \"- address: 127.0.0.1:8080\"", listener);
    }
}

static void read_value(struct yaml_reader *reading, const char *path, size_t listener,
                       const yaml_node_t *key, const yaml_node_t *node)
{
    const struct conf_option *option = conf_find(path);
    if (option != NULL && option->type == &conf_type_limiters)
        conf_limits_read(reading, node);
    else if (option != NULL && option->type->list)
        read_list(reading, option, node);
    else if (option != NULL)
        read_scalar(reading, option, listener, node);
    else if (strcmp(path, "listen") == 0)
        read_listeners(reading, node);
    else if (!conf_group(path))
        conf_unknown(reading->build, conf_node_place(reading, key), path);
    else
        read_group(reading, path, listener, node);
}

/* A mapping: the options below "${path}."; all options if it is empty. */
static void read_group(struct yaml_reader *reading, const char *path, size_t listener,
                       const yaml_node_t *node)
{
    struct conf_build *build = reading->build;
    const yaml_node_t *seen[KEYS_MAX];
    size_t seen_count = 0;
    char quoted[CONF_QUOTE_SIZE], below[CONF_KEY_SIZE];
    if (scalar_absent(node))
        return;
    if (node->type != YAML_MAPPING_NODE) {
        conf_mistake(build, conf_node_place(reading, node),
                     "%s: wrong type; write its options below it, one per line",
                     path[0] == '\0' ? "the configuration" : path);
        return;
    }
    for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(&reading->document, pair->key);
        if (build->mistakes_count >= CONF_MISTAKES_MAX)
            return;
        const char *name = conf_scalar(key);
        if (name == NULL) {
            conf_mistake(build, conf_node_place(reading, key), "a key must be a name");
            continue;
        }
        if ((size_t)snprintf(below, sizeof(below), "%s%s%s", path, path[0] == '\0' ? "" : ".",
                             name) >= sizeof(below)) {
            conf_mistake(build, conf_node_place(reading, key), "unknown key %s",
                         conf_quote(name, quoted));
            continue;
        }
        size_t i = 0;
        while (i < seen_count && strcmp(conf_scalar(seen[i]), name) != 0)
            i++;
        if (i < seen_count) {
            conf_mistake(build, conf_node_place(reading, key), "%s is set twice, first on line %zu",
                         conf_quote(below, quoted), seen[i]->start_mark.line + 1);
            continue;
        }
        if (seen_count < KEYS_MAX)
            seen[seen_count++] = key;
        read_value(reading, below, listener, key,
                   yaml_document_get_node(&reading->document, pair->value));
    }
}

static bool parser_start(yaml_parser_t *parser, const char *text, size_t size)
{
    if (!yaml_parser_initialize(parser))
        return false;
    yaml_parser_set_input_string(parser, (const unsigned char *)text, size);
    yaml_parser_set_encoding(parser, YAML_UTF8_ENCODING);
    return true;
}

void conf_yaml_read(struct conf_build *build, const char *path, bool lineless, const char *text,
                    size_t size)
{
    struct yaml_reader reading = {
        .build = build, .file = path, .lineless = lineless, .text = text, .size = size};
    yaml_parser_t parser;
    bool walkable = parser_start(&parser, text, size) && pass_events(&reading, &parser);
    yaml_parser_delete(&parser);
    if (!walkable)
        return;
    if (!parser_start(&parser, text, size) || !yaml_parser_load(&parser, &reading.document)) {
        conf_mistake(build, (struct conf_place){.file = path}, "cannot be read: %s",
                     parser.problem == NULL ? "out of memory" : parser.problem);
    } else {
        const yaml_node_t *root = yaml_document_get_root_node(&reading.document);
        if (root != NULL)
            read_group(&reading, "", 0, root);
        yaml_document_delete(&reading.document);
    }
    yaml_parser_delete(&parser);
}
