/*
 * A page as a browser reads it: the tree of its HTML, by libxml2. A function that fails fails the
 * running test. Memory lives as long as the process.
 */
#ifndef ASSAY_T_KIT_PAGE_TREE_H
#define ASSAY_T_KIT_PAGE_TREE_H

#include "t/kit/harness.h"

#include <libxml/tree.h>

/* tree_of(r): the root element of the body. */
xmlNode *tree_of(const struct response *r);

/* tree_next(node, root): the next node of ${root} in the order of the document, or NULL. */
xmlNode *tree_next(xmlNode *node, const xmlNode *root);

/* tree_is(node, name): an element of this name. tree_inside(node, name): it is within one. */
bool tree_is(const xmlNode *node, const char *name);
bool tree_inside(const xmlNode *node, const char *name);

/*
 * tree_text(node): all text within. tree_attribute(node, name): NULL: it has none. tree_with(root,
 * name, value): the first element with this attribute (NULL: any value), or NULL.
 */
char *tree_text(xmlNode *node);
const char *tree_attribute(const xmlNode *node, const char *name);
xmlNode *tree_with(xmlNode *root, const char *name, const char *value);

/* tree_find(root, name): the first element of this name, or NULL. tree_count: how many. */
xmlNode *tree_find(xmlNode *root, const char *name);
size_t tree_count(xmlNode *root, const char *name);

/* tree_has_text(root, name, text): an element of this name has exactly this text. */
bool tree_has_text(xmlNode *root, const char *name, const char *text);

#endif
