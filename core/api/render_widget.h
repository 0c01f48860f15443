/*
 * The widget's records as JSON, rendered once when they are written: the widget's part of what core gives to store_open. Pure functions.
 * api.md §6.
 */
#ifndef ASSAY_API_RENDER_WIDGET_H
#define ASSAY_API_RENDER_WIDGET_H

#include "../../store/store.h"

/* render_agent(a, out): the agent as its visitors may see it; its allowed origins are not for them. */
void render_agent(const struct store_agent *a, struct buf *out);

/* render_conversation(c, out): what operators see of it. */
void render_conversation(const struct store_conversation *c, struct buf *out);

/*
 * render_message(m, out, result_at, result_n): as both sides see it. The part at ${result_at} is `"content":…` and, of an answer, what else
 * the reply to the question repeats.
 */
void render_message(const struct store_message *m, struct buf *out, size_t *result_at, size_t *result_n);

/* render_note(n, out): as operators see it, when it is read. */
void render_note(const struct store_note *n, struct buf *out);

/* render_message_text(result, room): the text in the part at result_at, borrowed from that or from ${room}, which it fills. */
struct str render_message_text(struct str result, struct buf *room);

void render_lead(const struct store_lead *l, struct buf *out);
void render_event(const struct store_event_row *e, struct buf *out);
void render_rating(const struct store_rating *r, struct buf *out);

/* render_message_again, …: of the JSON that an earlier renderer made; false: none did. See struct store_widget_renderer. */
bool render_message_again(enum message_role role, struct str json, struct buf *out, size_t *result_at, size_t *result_n);
bool render_event_again(struct str json, struct buf *out);
bool render_rating_again(struct str json, struct buf *out);

/* conversation_status_name(status): "open", "waiting", "claimed", "closed". */
const char *conversation_status_name(enum conversation_status status);

#endif
