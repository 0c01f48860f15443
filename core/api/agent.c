#include "agent.h"
#include "../http/json_scan.h"

#include <json-c/json.h>

#define THEME_MAX 32
#define PROMPTS_MAX 10
#define FIELDS_MAX 20
#define PROMPT_CHARS 200

static size_t characters(struct str s)
{
    size_t count = 0;
    for (size_t i = 0; i < s.n; i++)
        count += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return count;
}

static struct str text_of(struct json_object *value)
{
    return (struct str){json_object_get_string(value), (size_t)json_object_get_string_len(value)};
}

/* a text of at least one and at most ${max} characters */
static bool is_text(struct json_object *value, size_t max)
{
    if (!json_object_is_type(value, json_type_string))
        return false;
    size_t n = characters(text_of(value));
    return n >= 1 && n <= max;
}

static bool is_word(struct json_object *value, size_t max, const char *also)
{
    if (!is_text(value, max))
        return false;
    struct str s = text_of(value);
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') &&
            (s.p[i] == '\0' || strchr(also, s.p[i]) == NULL))
            return false;
    return true;
}

static bool theme_valid(struct json_object *theme)
{
    if (!json_object_is_type(theme, json_type_object) || json_object_object_length(theme) > THEME_MAX)
        return false;
    json_object_object_foreach(theme, name, value)
    {
        enum json_type type = json_object_get_type(value);
        if (name[0] == '\0' || (type == json_type_string ? !is_text(value, 200)
                                                         : type != json_type_boolean && type != json_type_int && type != json_type_double))
            return false;
    }
    return true;
}

static bool prompts_valid(struct json_object *prompts)
{
    if (!json_object_is_type(prompts, json_type_array) || json_object_array_length(prompts) > PROMPTS_MAX)
        return false;
    for (size_t i = 0; i < json_object_array_length(prompts); i++)
        if (!is_text(json_object_array_get_idx(prompts, i), PROMPT_CHARS))
            return false;
    return true;
}

static bool field_type_valid(struct json_object *value)
{
    static const char *const types[] = {"text", "email", "tel", "textarea"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (json_object_is_type(value, json_type_string) && str_eq(text_of(value), str_of(types[i])))
            return true;
    return false;
}

static bool field_valid(struct json_object *field)
{
    bool named = false;
    if (!json_object_is_type(field, json_type_object))
        return false;
    json_object_object_foreach(field, name, value)
    {
        if (strcmp(name, "name") == 0)
            named = is_word(value, 64, "_-.");
        if (strcmp(name, "name") == 0       ? !named
            : strcmp(name, "label") == 0    ? !is_text(value, PROMPT_CHARS)
            : strcmp(name, "type") == 0     ? !field_type_valid(value)
            : strcmp(name, "required") == 0 ? !json_object_is_type(value, json_type_boolean)
                                            : true)
            return false;
    }
    return named;
}

static bool fields_valid(struct json_object *fields)
{
    if (!json_object_is_type(fields, json_type_array) || json_object_array_length(fields) > FIELDS_MAX)
        return false;
    for (size_t i = 0; i < json_object_array_length(fields); i++)
        if (!field_valid(json_object_array_get_idx(fields, i)))
            return false;
    return true;
}

static bool language_valid(struct json_object *language)
{
    return is_word(language, 35, "-");
}

/* Columns: name, what may stand there, its default, the sentence about anything else. */
static const struct {
    const char *name;
    bool (*valid)(struct json_object *value);
    const char *initial, *why;
} settings_rows[] = {
    {"theme", theme_valid, "{}", "a theme is an object of at most 32 texts, numbers and booleans"},
    {"starter_prompts", prompts_valid, "[]", "starter prompts are at most 10 texts of 1 to 200 characters"},
    {"lead_form_fields", fields_valid, "[]",
     "lead form fields are an array of at most 20 objects with a name, and perhaps a label, a type (text, email, tel or textarea) and "
     "required"},
    {"language_default", language_valid, "\"en\"", "a language is a tag such as en or pt-BR"},
};

static bool settings_put(struct json_object *settings, struct buf *out, const char **why)
{
    for (size_t i = 0; i < sizeof(settings_rows) / sizeof(settings_rows[0]); i++) {
        struct json_object *value = NULL;
        bool sent = json_object_object_get_ex(settings, settings_rows[i].name, &value);
        if (sent && !settings_rows[i].valid(value)) {
            *why = settings_rows[i].why;
            return false;
        }
        buf_printf(out, "%s\"%s\":", i == 0 ? "" : ",", settings_rows[i].name);
        buf_adds(out, sent ? json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
                           : settings_rows[i].initial);
    }
    if (buf_ok(out) && out->n <= STORE_SETTINGS_MAX)
        return true;
    *why = "the settings are larger than 32 KiB in all";
    return false;
}

/* ${text} takes the place of the member, unless it is NULL. */
static bool wish_json(struct json_object *settings, const char *name, const char *text, const char **why)
{
    enum json_verdict verdict;
    if (text == NULL)
        return true;
    struct json_object *value = json_scan_parse(str_of(text), JSON_SCAN_DEPTH, &verdict);
    *why = verdict == JSON_SCAN_MALFORMED ? "that is not JSON (RFC 8259)" : json_scan_text(verdict);
    return verdict == JSON_SCAN_OK && json_object_object_add(settings, name, value) == 0;
}

static void wish_texts(struct json_object *settings, const struct agent_wishes *wishes)
{
    if (wishes->language_default != NULL)
        json_object_object_add(settings, "language_default", json_object_new_string(wishes->language_default));
    if (wishes->starter_prompts == NULL)
        return;
    struct json_object *prompts = json_object_new_array();
    for (size_t i = 0; wishes->starter_prompts[i] != NULL; i++)
        json_object_array_add(prompts, json_object_new_string(wishes->starter_prompts[i]));
    json_object_object_add(settings, "starter_prompts", prompts);
}

static struct json_object *settings_read(struct str members)
{
    enum json_verdict verdict;
    struct buf text = {0};
    buf_adds(&text, "{");
    buf_str(&text, members);
    buf_adds(&text, "}");
    struct json_object *settings = buf_ok(&text) ? json_scan_parse(buf_view(&text), JSON_SCAN_DEPTH, &verdict) : NULL;
    buf_free(&text);
    return settings;
}

bool agent_settings(struct str present, const struct agent_wishes *wishes, struct buf *out, const char **why)
{
    struct json_object *settings = settings_read(present);
    *why = "the present settings cannot be read";
    bool good = settings != NULL && wish_json(settings, "theme", wishes->theme, why) &&
                wish_json(settings, "lead_form_fields", wishes->lead_form_fields, why);
    if (good) {
        wish_texts(settings, wishes);
        good = settings_put(settings, out, why);
    }
    json_object_put(settings);
    return good;
}
