/* The renderer of a later version, for a server that is otherwise assayd: a report's `url` is called `URL`, and the ETags' last part is 2. */
#define render_records records_of_now
#define render_report report_of_now
#include "core/api/render.c"
#undef render_records
#undef render_report

void render_report(const struct store_report *r, struct buf *out, size_t *link_at, size_t *results_at);

void render_report(const struct store_report *r, struct buf *out, size_t *link_at, size_t *results_at)
{
    size_t from = out->n;
    report_of_now(r, out, link_at, results_at);
    if (!buf_ok(out))
        return;
    char *name = memmem(out->p + from, out->n - from, "\"url\":", 6);
    assert(name != NULL);
    memcpy(name, "\"URL\":", 6);
}

const struct store_renderer render_records = {
    .version = RENDER_VERSION,
    .report = render_report,
    .project = render_project,
    .widget = {.agent = render_agent,
               .conversation = render_conversation,
               .message = render_message,
               .lead = render_lead,
               .event = render_event,
               .rating = render_rating},
};
