/*
 * The records of the widget as JSON, rendered when they are read. Pure functions: same record, same
 * bytes.
 */
#ifndef ASSAY_API_RENDER_WIDGET_H
#define ASSAY_API_RENDER_WIDGET_H

#include "store/store.h"

/*
 * render_agent(a, out): the agent as its visitors may see it; its allowed origins are not for them.
 */
void render_agent(const struct store_agent *a, struct buf *out);

/*
 * render_conversation(c, out): what operators see of it. render_conversation_members: the same
 * without its braces.
 */
void render_conversation_members(const struct store_conversation *c, struct buf *out);
void render_conversation(const struct store_conversation *c, struct buf *out);

/*
 * render_message(m, out): as both sides see it. render_message_result(m, out): its members that the
 * answer to a posted message repeats: `"content":…` and, of an answer, citations and confidence.
 */
void render_message(const struct store_message *m, struct buf *out);
void render_message_result(const struct store_message *m, struct buf *out);

/* render_note(n, out): as operators see it. */
void render_note(const struct store_note *n, struct buf *out);

void render_lead(const struct store_lead *l, struct buf *out);
void render_event(const struct store_event_row *e, struct buf *out);
void render_rating(const struct store_rating *r, struct buf *out);

/* conversation_status_name(status): "open", "waiting", "claimed", "closed". */
const char *conversation_status_name(enum conversation_status status);

#endif
