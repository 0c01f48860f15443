/* Nodes of a YAML document: where they are, what a scalar says. */
#include "core/conf/yaml_internal.h"

#include <string.h>

struct conf_place conf_line_place(const struct yaml_reader *reading, size_t line)
{
    return (struct conf_place){.file = reading->file, .line = reading->lineless ? 0 : line + 1};
}

struct conf_place conf_node_place(const struct yaml_reader *reading, const yaml_node_t *node)
{
    return conf_line_place(reading, node->start_mark.line);
}

const char *conf_scalar(const yaml_node_t *node)
{
    if (node->type != YAML_SCALAR_NODE)
        return NULL;
    /* libyaml accepts NUL as an escape, but a C string would end there. */
    const char *text = (const char *)node->data.scalar.value;
    return strlen(text) == node->data.scalar.length ? text : NULL;
}
