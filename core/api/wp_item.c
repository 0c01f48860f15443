/* Mistakes of an item, its members, and what is read of it before it is parsed. */
#include "core/api/wp_internal.h"

#include "core/api/json_value_internal.h"
#include "core/api/zone_internal.h"
#include "core/auth/credential.h"
#include "core/http/fields.h"
#include "core/text/form.h"
#include "core/text/json_scan.h"
#include "core/text/json_span.h"

#include <stdarg.h>
#include <stdio.h>

void wp_mistake_reset(struct wp_mistake *mistake)
{
    buf_free(&mistake->errors);
    *mistake = (struct wp_mistake){.code = NULL};
}

void wp_mistake_add(struct wp_mistake *mistake, const char *field, const char *format, ...)
{
    char text[160];
    va_list args;
    if (field != NULL && mistake->field != NULL && strcmp(field, mistake->field) == 0)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (mistake->count++ == 0)
        snprintf(mistake->message, sizeof(mistake->message), "%s%s%s", field == NULL ? "" : field,
                 field == NULL ? "" : " ", text);
    if (field != NULL)
        fields_error(&mistake->errors, field, "%s", text);
    mistake->field = field;
    mistake->code = "validation_failed";
}

bool wp_continues(const struct wp_mistake *mistake)
{
    return mistake->collects || mistake->code == NULL;
}

struct json_object *wp_member(struct json_object *item, const char *name)
{
    struct json_object *value = NULL;
    return json_object_object_get_ex(item, name, &value) ? value : NULL;
}

bool wp_text(struct json_object *item, const char *name, struct str *out)
{
    struct json_object *value = wp_member(item, name);
    bool is_text = json_object_is_type(value, json_type_string);
    *out = is_text ? json_value_text(value) : (struct str){"", 0};
    return is_text;
}

/* ---- items, before parsing ---- */

static bool read_id(struct str digits, uint64_t *out)
{
    return number_parse(digits, INT64_MAX, out) && *out > 0 && digits.p[0] != '0';
}

/* Reads the parsed item, if the text has names or values with escapes. */
static void read_tree(struct wp_item *item)
{
    struct json_object *json = wp_item_json(item),
                       *id = json == NULL ? NULL : wp_member(json, "wp_id");
    item->wp_id = json_object_is_type(id, json_type_int) && json_object_get_int64(id) > 0
                      ? (uint64_t)json_object_get_int64(id)
                      : 0;
    item->decoded = true;
    if (json == NULL)
        return;
    wp_text(json, "content_hash", &item->content_hash);
    item->modified_wrong =
        wp_member(json, "modified_at") != NULL && !wp_text(json, "modified_at", &item->modified_at);
    item->action_wrong =
        wp_member(json, "action") != NULL && !wp_text(json, "action", &item->action);
}

/* Reads a string without escapes. False: it must be decoded. */
static bool read_text(struct str value, struct str *out, bool *wrong)
{
    if (str_eq(value, STR("null")))
        return true;
    if (value.p[0] != '"') {
        *wrong = true;
        return true;
    }
    return json_span_text(value, out);
}

static bool read_member(struct wp_item *item, struct str name, struct str value)
{
    bool ignored;
    uint64_t id;
    if (memchr(name.p, '\\', name.n) != NULL)
        return false;
    if (str_eq(name, STR("wp_id")))
        item->wp_id = read_id(value, &id) ? id : 0;
    if (str_eq(name, STR("content_hash")))
        return read_text(value, &item->content_hash, &ignored);
    if (str_eq(name, STR("modified_at")))
        return read_text(value, &item->modified_at, &item->modified_wrong);
    if (str_eq(name, STR("action")))
        return read_text(value, &item->action, &item->action_wrong);
    return true;
}

void wp_item_read(struct str raw, struct wp_item *out)
{
    struct str rest = raw.n > 0 && raw.p[0] == '{' ? json_span_inside(raw) : (struct str){NULL, 0},
               name, value;
    *out = (struct wp_item){.raw = raw};
    while (rest.n > 0 && json_span_member(&rest, &name, &value))
        if (!read_member(out, name, value)) {
            *out = (struct wp_item){.raw = raw};
            read_tree(out);
            return;
        }
}

struct json_object *wp_item_json(struct wp_item *item)
{
    if (item->json != NULL || item->raw.n == 0 || item->raw.p[0] != '{')
        return item->json;
    struct json_tokener *tokener = json_tokener_new_ex(JSON_SCAN_DEPTH + 1);
    if (tokener != NULL)
        item->json = json_tokener_parse_ex(tokener, item->raw.p, (int)item->raw.n);
    json_tokener_free(tokener);
    return item->json;
}

void wp_item_free(struct wp_item *item)
{
    json_object_put(item->json);
    item->json = NULL;
}

bool wp_item_hash(const struct wp_item *item, uint8_t out[16])
{
    uint8_t digest[CREDENTIAL_HASH];
    char short_text[256];
    struct buf prefixed = {.p = short_text, .cap = sizeof(short_text)};
    struct str text = item->raw;
    if (item->content_hash.n > 0 &&
        item->content_hash.n <
            sizeof(short_text) - 8) { /* differs from a whole item, which begins with a brace */
        buf_adds(&prefixed, "hash:");
        buf_str(&prefixed, item->content_hash);
        text = buf_view(&prefixed);
    } else if (item->content_hash.n > 0) {
        text = item->content_hash;
    }
    if (!credential_hash(text, digest))
        return false;
    memcpy(out, digest, 16);
    return true;
}

bool wp_item_modified(const struct wp_item *item, int64_t *out, struct wp_mistake *mistake)
{
    *out = 0;
    if (item->modified_at.n == 0 && !item->modified_wrong)
        return true;
    if (!item->modified_wrong && zone_date(item->modified_at, (struct str){NULL, 0}, out))
        return true;
    wp_mistake_add(mistake, "modified_at",
                   "must be an RFC 3339 time, such as 2026-05-07T13:00:00Z");
    return false;
}
