#include "core/api/agent.h"
#include "core/api/json_value_internal.h"
#include "core/text/json_span.h"
#include "core/text/json_scan.h"
#include "core/text/nearest.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

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

/* a text of 1 to ${max} characters */
static bool is_text(struct json_object *value, size_t max)
{
    if (!json_object_is_type(value, json_type_string))
        return false;
    size_t n = characters(json_value_text(value));
    return n >= 1 && n <= max;
}

static bool is_word(struct json_object *value, size_t max, const char *also)
{
    if (!is_text(value, max))
        return false;
    struct str s = json_value_text(value);
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'z') &&
            !(s.p[i] >= '0' && s.p[i] <= '9') && (s.p[i] == '\0' || strchr(also, s.p[i]) == NULL))
            return false;
    return true;
}

/* Sets the mistake if none is set. Always false. */
static bool __attribute__((format(printf, 2, 3)))
wrong(struct agent_mistake *mistake, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(mistake->text, sizeof(mistake->text), format, args);
    va_end(args);
    return false;
}

/* ---- theme ---- */

static bool is_color(struct json_object *value)
{
    struct str s =
        json_object_is_type(value, json_type_string) ? json_value_text(value) : (struct str){0};
    if ((s.n != 4 && s.n != 7) || s.p[0] != '#')
        return false;
    for (size_t i = 1; i < s.n; i++)
        if (!((s.p[i] | 0x20) >= 'a' && (s.p[i] | 0x20) <= 'f') &&
            !(s.p[i] >= '0' && s.p[i] <= '9'))
            return false;
    return true;
}

static bool is_side(struct json_object *value)
{
    return json_object_is_type(value, json_type_string) &&
           (str_eq(json_value_text(value), STR("left")) ||
            str_eq(json_value_text(value), STR("right")));
}

static bool is_line(struct json_object *value)
{
    return is_text(value, 200);
}

/* A key of an object in the settings. */
struct key {
    const char *name;
    bool (*valid)(struct json_object *value);
    const char *wanted; /* the allowed values, in words */
};

static const struct key *key_find(const struct key *keys, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(keys[i].name, name) == 0)
            return &keys[i];
    return NULL;
}

/* The keys of a theme, which the script reads (core/widget/widget.js). */
static const struct key theme_keys[] = {
    {"color", is_color, "a color as #rgb or #rrggbb, such as \"#0b6e4f\""},
    {"position", is_side, "\"left\" or \"right\""},
    {"title", is_line, "a text of 1 to 200 characters"},
    {"greeting", is_line, "a text of 1 to 200 characters"},
};
#define THEME_KEYS (sizeof(theme_keys) / sizeof(theme_keys[0]))
#define THEME_KEY_NAMES "color, position, title and greeting"

static bool theme_unknown(const char *name, struct agent_mistake *mistake)
{
    unsigned least = UINT_MAX;
    const char *near = "";
    for (size_t i = 0; i < THEME_KEYS; i++) {
        unsigned distance = nearest_distance(str_of(name), str_of(theme_keys[i].name));
        if (distance < least) {
            least = distance;
            near = theme_keys[i].name;
        }
    }
    bool close = nearest_is_close(least, strlen(name));
    return wrong(mistake, "unknown key \"%.64s\"%s%s%s; the keys are " THEME_KEY_NAMES, name,
                 close ? ", did you mean \"" : "", close ? near : "", close ? "\"?" : "");
}

static bool theme_valid(struct json_object *theme, struct agent_mistake *mistake)
{
    if (!json_object_is_type(theme, json_type_object))
        return wrong(mistake, "must be an object with the keys " THEME_KEY_NAMES ", such as "
                              "{\"color\":\"#0b6e4f\",\"position\":\"left\"}");
    json_object_object_foreach(theme, name, value)
    {
        const struct key *key = key_find(theme_keys, THEME_KEYS, name);
        if (key == NULL)
            return theme_unknown(name, mistake);
        if (!key->valid(value))
            return wrong(mistake, "\"%s\" must be %s", name, key->wanted);
    }
    return true;
}

/* ---- other settings ---- */

static bool prompts_valid(struct json_object *prompts, struct agent_mistake *mistake)
{
    bool valid = json_object_is_type(prompts, json_type_array) &&
                 json_object_array_length(prompts) <= PROMPTS_MAX;
    for (size_t i = 0; valid && i < json_object_array_length(prompts); i++)
        valid = is_text(json_object_array_get_idx(prompts, i), PROMPT_CHARS);
    return valid || wrong(mistake, "must be at most %d texts of 1 to %d characters", PROMPTS_MAX,
                          PROMPT_CHARS);
}

static bool is_field_name(struct json_object *value)
{
    return is_word(value, 64, "_-.");
}

static bool is_field_type(struct json_object *value)
{
    static const char *const types[] = {"text", "email", "tel", "textarea"};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (json_object_is_type(value, json_type_string) &&
            str_eq(json_value_text(value), str_of(types[i])))
            return true;
    return false;
}

static bool is_boolean(struct json_object *value)
{
    return json_object_is_type(value, json_type_boolean);
}

static const struct key field_keys[] = {
    {"name", is_field_name, "1 to 64 letters, digits, _, - and ."},
    {"label", is_line, "a text of 1 to 200 characters"},
    {"type", is_field_type, "text, email, tel or textarea"},
    {"required", is_boolean, "true or false"},
};
#define FIELD_KEYS (sizeof(field_keys) / sizeof(field_keys[0]))

static bool field_valid(struct json_object *field, size_t number, struct agent_mistake *mistake)
{
    if (!json_object_is_type(field, json_type_object))
        return wrong(mistake, "field %zu of the lead form must be an object", number);
    json_object_object_foreach(field, name, value)
    {
        const struct key *key = key_find(field_keys, FIELD_KEYS, name);
        if (key == NULL)
            return wrong(mistake,
                         "field %zu of the lead form has an unknown key \"%.64s\"; the "
                         "keys are name, label, type and required",
                         number, name);
        if (!key->valid(value))
            return wrong(mistake, "field %zu of the lead form: \"%s\" must be %s", number, name,
                         key->wanted);
    }
    return json_object_object_get_ex(field, "name", NULL) ||
           wrong(mistake, "field %zu of the lead form has no name", number);
}

static bool fields_valid(struct json_object *fields, struct agent_mistake *mistake)
{
    if (!json_object_is_type(fields, json_type_array) ||
        json_object_array_length(fields) > FIELDS_MAX)
        return wrong(mistake,
                     "must be an array of at most %d fields of the lead form, such as "
                     "[{\"name\":\"company\"}]",
                     FIELDS_MAX);
    for (size_t i = 0; i < json_object_array_length(fields); i++)
        if (!field_valid(json_object_array_get_idx(fields, i), i + 1, mistake))
            return false;
    return true;
}

static bool language_valid(struct json_object *language, struct agent_mistake *mistake)
{
    return is_word(language, 35, "-") ||
           wrong(mistake, "must be a language tag such as en or pt-BR");
}

/* Columns: name, check, default. */
static const struct {
    const char *name;
    bool (*valid)(struct json_object *value, struct agent_mistake *mistake);
    const char *initial;
} settings_rows[] = {
    {"theme", theme_valid, "{}"},
    {"starter_prompts", prompts_valid, "[]"},
    {"lead_form_fields", fields_valid, "[]"},
    {"language_default", language_valid, "\"en\""},
};

static bool settings_put(struct json_object *settings, struct buf *out,
                         struct agent_mistake *mistake)
{
    for (size_t i = 0; i < sizeof(settings_rows) / sizeof(settings_rows[0]); i++) {
        struct json_object *value = NULL;
        bool sent = json_object_object_get_ex(settings, settings_rows[i].name, &value);
        mistake->setting = settings_rows[i].name;
        if (sent && !settings_rows[i].valid(value, mistake))
            return false;
        buf_printf(out, "%s\"%s\":", i == 0 ? "" : ",", settings_rows[i].name);
        buf_adds(out, sent ? json_object_to_json_string_ext(
                                 value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE)
                           : settings_rows[i].initial);
    }
    if (buf_ok(out) && out->n <= STORE_SETTINGS_MAX)
        return true;
    mistake->setting = NULL;
    return wrong(mistake, "the settings of an agent are larger than 32 KiB in all");
}

/* Replaces the member by ${text}, unless it is NULL. */
static bool change_json(struct json_object *settings, const char *name, const char *text,
                        struct agent_mistake *mistake)
{
    struct json_fault fault;
    char why[JSON_FAULT_TEXT];
    if (text == NULL)
        return true;
    struct json_object *value = json_scan_read(str_of(text), JSON_SCAN_DEPTH, &fault);
    mistake->setting = name;
    json_fault_text(&fault, why);
    if (fault.verdict != JSON_SCAN_OK)
        return wrong(mistake, "%s", why);
    return json_object_object_add(settings, name, value) == 0;
}

static void change_texts(struct json_object *settings, const struct agent_change *change)
{
    if (change->language_default != NULL)
        json_object_object_add(settings, "language_default",
                               json_object_new_string(change->language_default));
    if (change->starter_prompts == NULL)
        return;
    struct json_object *prompts = json_object_new_array();
    for (size_t i = 0; change->starter_prompts[i] != NULL; i++)
        json_object_array_add(prompts, json_object_new_string(change->starter_prompts[i]));
    json_object_object_add(settings, "starter_prompts", prompts);
}

static struct json_object *settings_read(struct str members)
{
    enum json_verdict verdict;
    struct buf text = {0};
    buf_adds(&text, "{");
    buf_str(&text, members);
    buf_adds(&text, "}");
    struct json_object *settings =
        buf_ok(&text) ? json_scan_parse(buf_view(&text), JSON_SCAN_DEPTH, &verdict) : NULL;
    buf_free(&text);
    return settings;
}

bool agent_settings(struct str present, const struct agent_change *change, struct buf *out,
                    struct agent_mistake *mistake)
{
    struct json_object *settings = settings_read(present);
    *mistake = (struct agent_mistake){.text = "the current settings cannot be read"};
    bool good = settings != NULL && change_json(settings, "theme", change->theme, mistake) &&
                change_json(settings, "lead_form_fields", change->lead_form_fields, mistake);
    if (good) {
        change_texts(settings, change);
        good = settings_put(settings, out, mistake);
    }
    json_object_put(settings);
    return good;
}

struct str agent_setting(const struct store_agent *agent, struct str name)
{
    struct str rest = agent->settings, member, value;
    while (json_span_member(&rest, &member, &value))
        if (str_eq(member, name))
            return value;
    return (struct str){NULL, 0};
}
