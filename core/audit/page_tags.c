#include "core/audit/page_tags_internal.h"
#include "core/audit/text.h"

#define LONGEST 9

/* name, tag if kept, flags, content, index of the deprecated name; sorted by name */
static const struct page_tag_info names[] = {
    {"a", TAG_A, PAGE_TAG_INLINE, 0, 0},
    {"abbr", 0, PAGE_TAG_INLINE, 0, 0},
    {"acronym", 0, PAGE_TAG_INLINE, 0, 1},
    {"applet", 0, 0, 0, 2},
    {"area", TAG_AREA, 0, 0, 0},
    {"audio", TAG_AUDIO, 0, 0, 0},
    {"b", 0, PAGE_TAG_INLINE, 0, 0},
    {"base", TAG_BASE, PAGE_TAG_IN_HEAD, 0, 0},
    {"basefont", 0, PAGE_TAG_IN_HEAD, 0, 3},
    {"bdi", 0, PAGE_TAG_INLINE, 0, 0},
    {"bdo", 0, PAGE_TAG_INLINE, 0, 0},
    {"bgsound", 0, PAGE_TAG_IN_HEAD, 0, 0},
    {"big", 0, PAGE_TAG_INLINE, 0, 4},
    {"body", TAG_BODY, 0, 0, 0},
    {"button", TAG_BUTTON, 0, 0, 0},
    {"center", 0, 0, 0, 5},
    {"cite", 0, PAGE_TAG_INLINE, 0, 0},
    {"code", 0, PAGE_TAG_INLINE, 0, 0},
    {"data", 0, PAGE_TAG_INLINE, 0, 0},
    {"del", 0, PAGE_TAG_INLINE, 0, 0},
    {"dfn", 0, PAGE_TAG_INLINE, 0, 0},
    {"dir", 0, 0, 0, 6},
    {"em", 0, PAGE_TAG_INLINE, 0, 0},
    {"embed", TAG_EMBED, 0, 0, 0},
    {"font", 0, PAGE_TAG_INLINE, 0, 7},
    {"form", TAG_FORM, 0, 0, 0},
    {"frame", TAG_FRAME, 0, 0, 8},
    {"frameset", 0, 0, 0, 9},
    {"h1", TAG_H1, 0, 0, 0},
    {"h2", TAG_H2, 0, 0, 0},
    {"h3", TAG_H3, 0, 0, 0},
    {"h4", TAG_H4, 0, 0, 0},
    {"h5", TAG_H5, 0, 0, 0},
    {"h6", TAG_H6, 0, 0, 0},
    {"head", TAG_HEAD, PAGE_TAG_IN_HEAD, 0, 0},
    {"html", TAG_HTML, PAGE_TAG_IN_HEAD, 0, 0},
    {"i", 0, PAGE_TAG_INLINE, 0, 0},
    {"iframe", TAG_IFRAME, 0, CONTENT_DROPPED, 0},
    {"image", TAG_SVG_IMAGE, 0, 0, 0},
    {"img", TAG_IMG, 0, 0, 0},
    {"input", TAG_INPUT, 0, 0, 0},
    {"ins", 0, PAGE_TAG_INLINE, 0, 0},
    {"isindex", 0, 0, 0, 10},
    {"kbd", 0, PAGE_TAG_INLINE, 0, 0},
    {"label", 0, PAGE_TAG_INLINE, 0, 0},
    {"link", TAG_LINK, PAGE_TAG_IN_HEAD, 0, 0},
    {"mark", 0, PAGE_TAG_INLINE, 0, 0},
    {"meta", TAG_META, PAGE_TAG_IN_HEAD, 0, 0},
    {"nobr", 0, PAGE_TAG_INLINE, 0, 0},
    {"noembed", 0, 0, CONTENT_DROPPED, 0},
    {"noframes", 0, PAGE_TAG_IN_HEAD, CONTENT_DROPPED, 11},
    {"noscript", 0, PAGE_TAG_IN_HEAD, CONTENT_DROPPED, 0},
    {"object", TAG_OBJECT, 0, 0, 0},
    {"picture", TAG_PICTURE, 0, 0, 0},
    {"plaintext", 0, 0, CONTENT_REST, 0},
    {"q", 0, PAGE_TAG_INLINE, 0, 0},
    {"rb", 0, PAGE_TAG_INLINE, 0, 0},
    {"rp", 0, PAGE_TAG_INLINE, 0, 0},
    {"rt", 0, PAGE_TAG_INLINE, 0, 0},
    {"ruby", 0, PAGE_TAG_INLINE, 0, 0},
    {"s", 0, PAGE_TAG_INLINE, 0, 12},
    {"samp", 0, PAGE_TAG_INLINE, 0, 0},
    {"script", TAG_SCRIPT, PAGE_TAG_IN_HEAD, CONTENT_SCRIPT, 0},
    {"small", 0, PAGE_TAG_INLINE, 0, 0},
    {"source", TAG_SOURCE, 0, 0, 0},
    {"span", 0, PAGE_TAG_INLINE, 0, 0},
    {"strike", 0, PAGE_TAG_INLINE, 0, 13},
    {"strong", 0, PAGE_TAG_INLINE, 0, 0},
    {"style", TAG_STYLE, PAGE_TAG_IN_HEAD, CONTENT_STYLE, 0},
    {"sub", 0, PAGE_TAG_INLINE, 0, 0},
    {"sup", 0, PAGE_TAG_INLINE, 0, 0},
    {"svg", TAG_SVG, 0, 0, 0},
    {"template", TAG_TEMPLATE, PAGE_TAG_IN_HEAD, 0, 0},
    {"textarea", 0, 0, CONTENT_DECODED, 0},
    {"time", 0, PAGE_TAG_INLINE, 0, 0},
    {"title", TAG_TITLE, PAGE_TAG_IN_HEAD, CONTENT_DECODED, 0},
    {"track", TAG_TRACK, 0, 0, 0},
    {"tt", 0, PAGE_TAG_INLINE, 0, 14},
    {"u", 0, PAGE_TAG_INLINE, 0, 15},
    {"use", TAG_SVG_USE, 0, 0, 0},
    {"var", 0, PAGE_TAG_INLINE, 0, 0},
    {"video", TAG_VIDEO, 0, 0, 0},
    {"wbr", 0, PAGE_TAG_INLINE, 0, 0},
    {"xmp", 0, 0, CONTENT_VERBATIM, 0},
};

const struct page_tag_info *page_tag_find(struct str name)
{
    char lower[LONGEST + 1];
    if (name.n == 0 || name.n > LONGEST)
        return NULL;
    for (size_t i = 0; i < name.n; i++)
        lower[i] = text_lower(name.p[i]);
    lower[name.n] = '\0';
    for (size_t from = 0, to = sizeof(names) / sizeof(*names); from < to;) {
        size_t middle = from + (to - from) / 2;
        int order = strcmp(lower, names[middle].name);
        if (order == 0)
            return &names[middle];
        if (order < 0)
            to = middle;
        else
            from = middle + 1;
    }
    return NULL;
}
