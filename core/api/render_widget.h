/*
 * The widget's records as JSON, rendered once when they are written: the widget's part of what core gives to store_open. Pure functions.
 * api.md §6.
 */
#ifndef ASSAY_API_RENDER_WIDGET_H
#define ASSAY_API_RENDER_WIDGET_H

#include "../../store/store.h"

/* render_agent(a, out): the agent as its visitors may see it; its allowed origins are not for them. */
void render_agent(const struct store_agent *a, struct buf *out);

#endif
