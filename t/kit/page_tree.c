#include "t/kit/page_tree.h"

#include <libxml/HTMLparser.h>

xmlNode *tree_of(const struct response *r)
{
    xmlDoc *doc = htmlReadMemory(r->body, (int)r->body_size, NULL, "UTF-8",
                                 HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING | HTML_PARSE_NONET);
    xmlNode *root = doc == NULL ? NULL : xmlDocGetRootElement(doc);
    ck_assert_msg(root != NULL, "no HTML\n%s", response_text(r));
    return root;
}

xmlNode *tree_next(xmlNode *node, const xmlNode *root)
{
    if (node->type == XML_ELEMENT_NODE && node->children != NULL)
        return node->children;
    while (node != root && node->next == NULL)
        node = node->parent;
    return node == root ? NULL : node->next;
}

bool tree_is(const xmlNode *node, const char *name)
{
    return node->type == XML_ELEMENT_NODE && strcmp((const char *)node->name, name) == 0;
}

bool tree_inside(const xmlNode *node, const char *name)
{
    while (node != NULL && !tree_is(node, name))
        node = node->parent;
    return node != NULL;
}

char *tree_text(xmlNode *node)
{
    return (char *)xmlNodeGetContent(node);
}

const char *tree_attribute(const xmlNode *node, const char *name)
{
    return (const char *)xmlGetProp(node, (const xmlChar *)name);
}

xmlNode *tree_with(xmlNode *root, const char *name, const char *value)
{
    for (xmlNode *node = root; node != NULL; node = tree_next(node, root)) {
        const char *has = node->type == XML_ELEMENT_NODE ? tree_attribute(node, name) : NULL;
        if (has != NULL && (value == NULL || strcmp(has, value) == 0))
            return node;
    }
    return NULL;
}

xmlNode *tree_find(xmlNode *root, const char *name)
{
    xmlNode *node = root;
    while (node != NULL && !tree_is(node, name))
        node = tree_next(node, root);
    return node;
}

size_t tree_count(xmlNode *root, const char *name)
{
    size_t count = 0;
    for (xmlNode *node = root; node != NULL; node = tree_next(node, root))
        count += tree_is(node, name);
    return count;
}

bool tree_has_text(xmlNode *root, const char *name, const char *text)
{
    for (xmlNode *node = root; node != NULL; node = tree_next(node, root))
        if (tree_is(node, name) && strcmp(tree_text(node), text) == 0)
            return true;
    return false;
}
