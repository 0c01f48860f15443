/* Walks over a YAML document, for conf_yaml.c and conf_limits.c. */
#ifndef ASSAY_CONF_YAML_H
#define ASSAY_CONF_YAML_H

#include "conf_table.h"

#include <yaml.h>

struct reading {
    struct conf_build *build;
    const char *file;
    bool lineless; /* the text is not a file: errors have no line */
    const char *text;
    size_t size;
    yaml_document_t document;
};

struct conf_place conf_node_place(const struct reading *reading, const yaml_node_t *node);

static inline yaml_node_t *conf_node(struct reading *reading, int index)
{
    return yaml_document_get_node(&reading->document, index);
}

/* conf_scalar(node): the text of a scalar without NUL bytes; NULL for other nodes. */
const char *conf_scalar(const yaml_node_t *node);

/* conf_limits_read(reading, node): read the value of limits.limiters. */
void conf_limits_read(struct reading *reading, const yaml_node_t *node);

#endif
