/* URLs in CSS, tokenized as browsers do. Pure functions over borrowed text. */
#ifndef ASSAY_CSS_INTERNAL_H
#define ASSAY_CSS_INTERNAL_H

#include "store/bytes.h"

struct css_url {
    struct str url; /* trimmed, as written: escapes are not decoded */
    bool is_import; /* from an @import, which loads a stylesheet */
};

/*
 * css_url(rest, out): the next URL of ${*rest}, a stylesheet or a style attribute: url(…), or the
 * string of an @import. Ignores comments, other strings and @namespace. False at the end.
 */
bool css_url(struct str *rest, struct css_url *out);

#endif
