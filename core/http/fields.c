#include "core/http/fields.h"

#include "core/http/err.h"
#include "core/text/form.h"
#include "core/text/json_out.h"
#include "core/text/nearest.h"

#include <assert.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#define TEXT_MAX_DEFAULT 2048

void fields_error(struct buf *errors, const char *name, const char *format, ...)
{
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    buf_adds(errors, errors->n == 0 ? "\"" : ",\"");
    buf_adds(errors, name);
    buf_adds(errors, "\":[");
    json_string(errors, str_of(message));
    buf_adds(errors, "]");
}

void fields_error_body(const struct buf *errors, struct buf *out)
{
    const struct err_row *row = err_row(ERR_VALIDATION_FAILED);
    buf_adds(out, "{\"error\":{\"code\":");
    json_string(out, str_of(row->code));
    buf_adds(out, ",\"message\":");
    json_string(out, str_of(row->message));
    buf_adds(out, ",\"errors\":{");
    buf_str(out, buf_view(errors));
    buf_adds(out, "}}}");
}

/* The index of ${text} in ${choices}, or -1. */
static int find_choice(const char *const *choices, struct str text)
{
    for (int i = 0; choices[i] != NULL; ++i)
        if (str_eq(str_of(choices[i]), text))
            return i;
    return -1;
}

static void add_choice_error(struct buf *errors, const struct field *f)
{
    char list[256] = "";
    size_t n = 0;
    for (size_t i = 0; f->choices[i] != NULL && n < sizeof(list); ++i)
        n +=
            (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", i == 0 ? "" : ", ", f->choices[i]);
    fields_error(errors, f->name, "must be %s%s", f->choices[1] == NULL ? "" : "one of ", list);
}

static void check_text(const struct field *f, struct str text, struct buf *errors)
{
    uint64_t max = f->max == 0 ? TEXT_MAX_DEFAULT : f->max;
    if (text.n == 0 && f->min > 0)
        fields_error(errors, f->name, "must not be empty");
    else if (text.n < f->min)
        fields_error(errors, f->name, "must be at least %" PRIu64 " bytes long", f->min);
    else if (text.n > max)
        fields_error(errors, f->name, "must be at most %" PRIu64 " bytes long", max);
}

static void check_chars(const struct field *f, struct str text, struct buf *errors)
{
    uint64_t count = 0;
    for (size_t i = 0; i < text.n; ++i)
        count += ((unsigned char)text.p[i] & 0xc0) != 0x80;
    if (count < f->min || count > f->max)
        fields_error(errors, f->name, "must be %" PRIu64 " to %" PRIu64 " characters long", f->min,
                     f->max);
}

static void set_value(const struct field *f, struct str text, struct value *v, struct buf *errors)
{
    v->text = text;
    switch (f->type) {
    case FIELD_TEXT:
        check_text(f, text, errors);
        break;
    case FIELD_CHARS:
        check_chars(f, text, errors);
        break;
    case FIELD_JSON:
    case FIELD_TREE:
    case FIELD_BOOL:
        fields_error(errors, f->name, "must be sent in a JSON body");
        break;
    case FIELD_CHOICE: {
        int at = find_choice(f->choices, text);
        if (at < 0)
            add_choice_error(errors, f);
        else
            v->number = (uint64_t)at;
        break;
    }
    case FIELD_NUMBER:
        if (!number_parse(text, f->max, &v->number) || v->number < f->min)
            fields_error(errors, f->name, "must be a whole number from %" PRIu64 " to %" PRIu64,
                         f->min, f->max);
        break;
    }
}

/* ---- unknown names ---- */

static void note_unknown(struct fields_unknown *unknown, struct str name)
{
    for (unsigned i = 0; i < unknown->count; i++)
        if (str_eq(unknown->name[i], name))
            return;
    if (unknown->count < FIELDS_UNKNOWN_MAX)
        unknown->name[unknown->count++] = name;
}

static const char *nearest_field(const struct field *fields, struct str name)
{
    const char *nearest = NULL;
    unsigned least = UINT_MAX;
    for (size_t i = 0; fields != NULL && fields[i].name != NULL; i++) {
        unsigned distance = nearest_distance(name, str_of(fields[i].name));
        if (distance < least && nearest_is_close(distance, name.n)) {
            least = distance;
            nearest = fields[i].name;
        }
    }
    return nearest;
}

void fields_unknown_errors(const struct field *fields, const struct fields_unknown *unknown,
                           struct buf *errors)
{
    for (unsigned i = 0; i < unknown->count; i++) {
        const char *nearest = nearest_field(fields, unknown->name[i]);
        buf_adds(errors, errors->n == 0 ? "" : ",");
        json_string(errors, unknown->name[i]);
        buf_adds(errors, ":[\"is unknown");
        if (nearest != NULL)
            buf_printf(errors, "; did you mean %s?", nearest);
        buf_adds(errors, "\"]");
    }
}

void fields_unknown_list(const struct fields_unknown *unknown, struct buf *out)
{
    buf_adds(out, "[");
    for (unsigned i = 0; i < unknown->count; i++) {
        buf_adds(out, i == 0 ? "" : ",");
        json_string(out, unknown->name[i]);
    }
    buf_adds(out, "]");
}

static int find_field(const struct field *fields, struct str name)
{
    for (int i = 0; fields != NULL && fields[i].name != NULL; ++i)
        if (str_eq(str_of(fields[i].name), name))
            return i;
    return -1;
}

/* Text without escapes is not copied. */
static struct str decode_part(struct str raw, char **scratch)
{
    if (raw.n == 0)
        return raw;
    if (memchr(raw.p, '%', raw.n) == NULL && memchr(raw.p, '+', raw.n) == NULL)
        return utf8_valid(raw) ? raw : (struct str){NULL, 0};
    assert(*scratch != NULL);
    struct str decoded = form_decode(raw, true, *scratch);
    *scratch += decoded.n;
    return decoded;
}

static void set_initial_values(const struct field *fields, struct value *values, struct buf *errors)
{
    for (size_t i = 0; fields != NULL && fields[i].name != NULL; ++i) {
        values[i] = (struct value){0};
        if (fields[i].initial != NULL)
            set_value(&fields[i], str_of(fields[i].initial), &values[i], errors);
    }
    assert(errors->n == 0); /* the table has a wrong initial value */
}

enum fields_status fields_decode(const struct field *fields, struct str encoded, char *scratch,
                                 struct value *values, struct fields_unknown *unknown,
                                 struct buf *errors)
{
    uint32_t seen = 0, reported = 0;
    struct form form = {encoded};
    struct str raw_name, raw_value;
    set_initial_values(fields, values, errors);
    while (form_next(&form, &raw_name, &raw_value)) {
        struct str name = decode_part(raw_name, &scratch);
        struct str text = decode_part(raw_value, &scratch);
        if (name.p == NULL || text.p == NULL)
            return FIELDS_MALFORMED;
        int at = find_field(fields, name);
        if (at < 0) {
            note_unknown(unknown, name);
            continue;
        }
        uint32_t bit = UINT32_C(1) << at;
        if ((seen & bit) != 0) {
            if ((reported & bit) == 0)
                fields_error(errors, fields[at].name, "must be sent only once");
            reported |= bit;
            continue;
        }
        seen |= bit;
        if (text.n == 0 && fields[at].type != FIELD_CHOICE && fields[at].type != FIELD_NUMBER &&
            fields[at].min == 0)
            continue;
        size_t before = errors->n;
        values[at].sent = true;
        set_value(&fields[at], text, &values[at], errors);
        if (errors->n != before)
            reported |= bit;
    }
    return errors->n == 0 && buf_ok(errors) ? FIELDS_OK : FIELDS_INVALID;
}

/* ---- JSON ---- */

static struct str string_of(struct json_object *value)
{
    return (struct str){json_object_get_string(value), (size_t)json_object_get_string_len(value)};
}

static const char *const type_names[] = {
    [FIELD_TEXT] = "a string", [FIELD_CHARS] = "a string", [FIELD_NUMBER] = "a whole number"};

static void set_json(const struct field *f, struct json_object *value, struct value *v,
                     struct buf *errors)
{
    const char *text = json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
                                                                 JSON_C_TO_STRING_NOSLASHESCAPE);
    v->json = value;
    v->text = str_of(text);
    if (f->max != 0 && v->text.n > f->max)
        fields_error(errors, f->name, "must be at most %" PRIu64 " bytes of JSON", f->max);
}

static void set_member(const struct field *f, struct json_object *value, struct value *v,
                       struct buf *errors)
{
    enum json_type type = json_object_get_type(value);
    bool number = type == json_type_int, string = type == json_type_string;
    v->sent = true;
    if (f->type == FIELD_JSON)
        set_json(f, value, v, errors);
    else if (f->type == FIELD_TREE)
        v->text = str_of(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
                                                                   JSON_C_TO_STRING_NOSLASHESCAPE));
    else if (f->type == FIELD_BOOL && type == json_type_boolean)
        v->number = (uint64_t)json_object_get_boolean(value);
    else if (f->type == FIELD_BOOL)
        fields_error(errors, f->name, "must be true or false");
    else if (f->type == FIELD_CHOICE && !string && !number)
        add_choice_error(errors, f);
    else if (f->type == FIELD_NUMBER ? !number : f->type != FIELD_CHOICE && !string)
        fields_error(errors, f->name, "must be %s", type_names[f->type]);
    else
        set_value(f, number ? str_of(json_object_get_string(value)) : string_of(value), v, errors);
}

static const struct json_member *member_of(const struct json_member *members, int count,
                                           const char *name)
{
    for (int i = 0; i < count; i++)
        if (str_eq(members[i].name, str_of(name)))
            return &members[i];
    return NULL;
}

enum fields_status fields_of_flat(const struct field *fields, const struct json_member *members,
                                  int count, struct value *values, struct fields_unknown *unknown,
                                  struct buf *errors)
{
    set_initial_values(fields, values, errors);
    for (int i = 0; i < count; i++)
        if (find_field(fields, members[i].name) < 0)
            note_unknown(unknown, members[i].name);
    for (size_t i = 0; fields != NULL && fields[i].name != NULL; i++) {
        const struct json_member *m = member_of(members, count, fields[i].name);
        if (m == NULL)
            continue;
        if (fields[i].type != FIELD_TEXT && fields[i].type != FIELD_CHARS &&
            fields[i].type != FIELD_CHOICE)
            return FIELDS_MALFORMED;
        values[i].sent = true;
        set_value(&fields[i], m->text, &values[i], errors);
    }
    return errors->n == 0 && buf_ok(errors) ? FIELDS_OK : FIELDS_INVALID;
}

enum fields_status fields_of_json(const struct field *fields, struct json_object *object,
                                  struct value *values, struct fields_unknown *unknown,
                                  struct buf *errors)
{
    struct json_object *value = NULL;
    set_initial_values(fields, values, errors);
    json_object_object_foreach(object, name, member)
    {
        (void)member;
        if (find_field(fields, str_of(name)) < 0)
            note_unknown(unknown, str_of(name));
    }
    for (size_t i = 0; fields != NULL && fields[i].name != NULL; ++i)
        if (json_object_object_get_ex(object, fields[i].name, &value) && value != NULL)
            set_member(&fields[i], value, &values[i], errors);
    return errors->n == 0 && buf_ok(errors) ? FIELDS_OK : FIELDS_INVALID;
}
