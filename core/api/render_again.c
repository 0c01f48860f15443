/*
 * What is kept as JSON alone, rendered again: its members as every renderer so far has called them, read back and given to today's. A
 * renderer that calls one otherwise adds a line here.
 */
#include "render_widget.h"

#include "../http/json_scan.h"
#include "../http/json_span.h"
#include "../http/time_in.h"

#include <json-c/json.h>

/* A record's JSON: decoded, and as it stands. */
struct record {
    struct json_object *tree;
    struct str json;
};

static bool record_open(struct record *r, struct str json)
{
    enum json_verdict verdict;
    *r = (struct record){.tree = json_scan_parse(json, JSON_SCAN_DEPTH + 1, &verdict), .json = json};
    return json_object_is_type(r->tree, json_type_object);
}

/* The text of a member; n 0: it is null, missing or no text. */
static struct str text_of(const struct record *r, const char *name)
{
    struct json_object *value = NULL;
    if (!json_object_object_get_ex(r->tree, name, &value) || !json_object_is_type(value, json_type_string))
        return (struct str){"", 0};
    return (struct str){json_object_get_string(value), (size_t)json_object_get_string_len(value)};
}

/* What a visitor sent as JSON, to the byte; n 0: null or missing. */
static struct str json_of(const struct record *r, struct str name)
{
    struct str rest = json_span_inside(r->json), member, value;
    while (json_span_member(&rest, &member, &value))
        if (str_eq(member, name))
            return str_eq(value, STR("null")) ? (struct str){"", 0} : value;
    return (struct str){"", 0};
}

static int64_t number_of(const struct record *r, const char *name)
{
    struct json_object *value = NULL;
    return json_object_object_get_ex(r->tree, name, &value) ? json_object_get_int64(value) : 0;
}

static bool yes_of(const struct record *r, const char *name)
{
    struct json_object *value = NULL;
    return json_object_object_get_ex(r->tree, name, &value) && json_object_get_boolean(value);
}

static int64_t time_of(const struct record *r, const char *name)
{
    return time_read(text_of(r, name));
}

static bool id_of(const struct record *r, const char *name, struct ulid *out)
{
    return ulid_parse(text_of(r, name), out);
}

bool render_message_again(enum message_role role, struct str json, struct buf *out, size_t *result_at, size_t *result_n)
{
    struct record r;
    struct store_message m = {.role = role};
    bool good = record_open(&r, json) && id_of(&r, "id", &m.id) && text_of(&r, "content").n > 0;
    if (good) {
        m.created_at = time_of(&r, "created_at");
        m.low_confidence = yes_of(&r, "low_confidence");
        m.text = text_of(&r, "content");
        m.citations = json_of(&r, STR("citations"));
        m.client_id = text_of(&r, "client_message_id");
        m.page_url = text_of(&r, "page_url");
        m.page_context = json_of(&r, STR("page_context"));
        render_message(&m, out, result_at, result_n);
    }
    json_object_put(r.tree);
    return good;
}

bool render_event_again(struct str json, struct buf *out)
{
    struct record r;
    struct store_event_row e = {.at = 0};
    bool good = record_open(&r, json) && id_of(&r, "id", &e.id) && id_of(&r, "agent_id", &e.agent) && id_of(&r, "visitor_id", &e.visitor) &&
                id_of(&r, "conversation_id", &e.conversation) && text_of(&r, "kind").n > 0;
    if (good) {
        e.created_at = time_of(&r, "created_at");
        e.at = time_of(&r, "at");
        e.kind = text_of(&r, "kind");
        e.payload = json_of(&r, STR("payload"));
        render_event(&e, out);
    }
    json_object_put(r.tree);
    return good;
}

bool render_rating_again(struct str json, struct buf *out)
{
    struct record r;
    struct store_rating rating = {.rating = 0};
    bool good = record_open(&r, json) && id_of(&r, "id", &rating.id) && id_of(&r, "agent_id", &rating.agent) &&
                id_of(&r, "visitor_id", &rating.visitor) && id_of(&r, "conversation_id", &rating.conversation) &&
                number_of(&r, "rating") > 0;
    if (good) {
        rating.rating = (unsigned)number_of(&r, "rating");
        rating.comment = text_of(&r, "comment");
        rating.created_at = time_of(&r, "created_at");
        rating.updated_at = time_of(&r, "updated_at");
        render_rating(&rating, out);
    }
    json_object_put(r.tree);
    return good;
}
