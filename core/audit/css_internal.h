/*
 * The URLs that CSS names, token by token as browsers read it. Pure functions over borrowed text.
 */
#ifndef ASSAY_CSS_INTERNAL_H
#define ASSAY_CSS_INTERNAL_H

#include "store/bytes.h"

struct css_url {
    struct str url; /* trimmed, as written: its escapes are not undone */
    bool is_import; /* of an @import, which loads a stylesheet */
};

/*
 * css_url(rest, out): the next URL of ${*rest}, a stylesheet or a style attribute: url(…), or the string of an @import. What stands in
 * comments, other strings and @namespace is none. False at the end.
 */
bool css_url(struct str *rest, struct css_url *out);

#endif
