/* Reading a YAML document: its nodes (yaml_node.c), and the value of limits.limiters. */
#ifndef ASSAY_CONF_YAML_INTERNAL_H
#define ASSAY_CONF_YAML_INTERNAL_H

#include "core/conf/conf_internal.h"

#include <yaml.h>

struct yaml_reader {
    struct conf_build *build;
    const char *file;
    bool lineless; /* the text is not a file: errors have no line */
    const char *text;
    size_t size;
    yaml_document_t document;
};

/* Where an error is: the line, from 0; the line of ${node}. */
struct conf_place conf_line_place(const struct yaml_reader *reading, size_t line);
struct conf_place conf_node_place(const struct yaml_reader *reading, const yaml_node_t *node);

static inline yaml_node_t *conf_node(struct yaml_reader *reading, int index)
{
    return yaml_document_get_node(&reading->document, index);
}

/* conf_scalar(node): the text of a scalar without NUL bytes; NULL for other nodes. */
const char *conf_scalar(const yaml_node_t *node);

/* conf_limits_read(reading, node): read the value of limits.limiters. */
void conf_limits_read(struct yaml_reader *reading, const yaml_node_t *node);

#endif
