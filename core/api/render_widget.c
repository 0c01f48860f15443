#include "render_widget.h"
#include "../http/json_out.h"

static void member_id(struct buf *out, const char *name, const struct ulid *id)
{
    char text[ULID_TEXT];
    ulid_text(id, text);
    buf_adds(out, name);
    buf_adds(out, "\"");
    buf_add(out, text, sizeof(text));
    buf_adds(out, "\"");
}

static void member_bool(struct buf *out, const char *name, bool value)
{
    buf_adds(out, name);
    buf_adds(out, value ? "true" : "false");
}

void render_agent(const struct store_agent *a, struct buf *out)
{
    member_id(out, "{\"id\":", &a->id);
    buf_adds(out, ",\"name\":");
    json_string(out, a->name);
    member_bool(out, ",\"is_published\":", a->is_published);
    buf_adds(out, ",");
    buf_str(out, a->settings);
    member_bool(out, ",\"require_lead_before_chat\":", a->require_lead);
    buf_adds(out, "}");
}
