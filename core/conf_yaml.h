/* Walking a YAML document, for conf_yaml.c and what reads structures of its own in it (conf_limits.c). */
#ifndef ASSAY_CONF_YAML_H
#define ASSAY_CONF_YAML_H

#include "conf_table.h"

#include <yaml.h>

struct reading {
    struct conf_build *build;
    const char *file;
    bool lineless;    /* the text is not a file's: mistakes have no line */
    const char *text; /* the whole of it */
    size_t size;
    yaml_document_t document;
};

struct conf_place conf_node_place(const struct reading *reading, const yaml_node_t *node);

static inline yaml_node_t *conf_node(struct reading *reading, int index)
{
    return yaml_document_get_node(&reading->document, index);
}

/* conf_scalar(node): its text where it is a scalar whose text is what the file says (no NUL in it); else NULL. */
const char *conf_scalar(const yaml_node_t *node);

/* conf_limits_read(reading, node): the value of limits.limiters. */
void conf_limits_read(struct reading *reading, const yaml_node_t *node);

#endif
