/* A URL as browsers show it. A pure function. */
#ifndef ASSAY_WEB_READABLE_URL_H
#define ASSAY_WEB_READABLE_URL_H

#include "core/web/view_memory.h"
#include "store/bytes.h"

/*
 * readable_url(url, memory): percent-encoded letters, marks and digits of other scripts as
 * themselves: "/%C3%BCber" is "/über". All else stays encoded. Not for links.
 */
struct str readable_url(struct str url, const struct view_memory *memory);

#endif
