/*
 * The renderer of a later version, for a server that is otherwise assayd: a report's `url` is called `URL`, a message's `content`
 * `CONTENT`, and the ETags' last part is 2.
 */
#define render_records records_of_now
#define render_report report_of_now
#include "core/api/render.c"
#undef render_records
#undef render_report

void render_report(const struct store_report *r, struct buf *out, size_t *link_at, size_t *results_at);

static void rename_in(struct buf *out, size_t from, const char *name, const char *later)
{
    if (!buf_ok(out))
        return;
    char *at = memmem(out->p + from, out->n - from, name, strlen(name));
    assert(at != NULL);
    memcpy(at, later, strlen(later));
}

void render_report(const struct store_report *r, struct buf *out, size_t *link_at, size_t *results_at)
{
    size_t from = out->n;
    report_of_now(r, out, link_at, results_at);
    rename_in(out, from, "\"url\":", "\"URL\":");
}

static void later_message(const struct store_message *m, struct buf *out, size_t *result_at, size_t *result_n)
{
    size_t from = out->n;
    render_message(m, out, result_at, result_n);
    rename_in(out, from, "\"content\":", "\"CONTENT\":");
}

static bool later_message_again(enum message_role role, struct str json, struct buf *out, size_t *result_at, size_t *result_n)
{
    size_t from = out->n;
    if (!render_message_again(role, json, out, result_at, result_n))
        return false;
    rename_in(out, from, "\"content\":", "\"CONTENT\":");
    return true;
}

const struct store_renderer render_records = {
    .version = RENDER_VERSION,
    .report = render_report,
    .project = render_project,
    .widget = {.agent = render_agent,
               .conversation = render_conversation,
               .message = later_message,
               .lead = render_lead,
               .event = render_event,
               .rating = render_rating,
               .message_again = later_message_again,
               .event_again = render_event_again,
               .rating_again = render_rating_again},
};
