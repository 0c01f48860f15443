#include "core/audit/checks_internal.h"
#include "core/audit/text.h"

#include <json-c/json.h>
#include <stdlib.h>

#define JSON_DEPTH_MAX 256 /* json-c's default is 32; JSON-LD has no limit */

static bool parses(struct str json)
{
    if (json.n > PAGE_RAW_BYTES - 4)
        return true; /* may have been cut at the limit; not judged */
    struct json_tokener *tokener = json_tokener_new_ex(JSON_DEPTH_MAX);
    if (tokener == NULL)
        return false;
    json = text_trim(json);
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
    struct json_object *parsed = json_tokener_parse_ex(tokener, json.p, (int)json.n);
    bool ok = json_tokener_get_error(tokener) == json_tokener_success &&
              (size_t)json_tokener_get_parse_end(tokener) == json.n &&
              (json_object_is_type(parsed, json_type_object) ||
               json_object_is_type(parsed, json_type_array));
    json_object_put(parsed);
    json_tokener_free(tokener);
    return ok;
}

static size_t count_metas(struct facts *f, struct verdict *v, const char *prefix)
{
    size_t count = 0, at = 0;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_META, &at)) != NULL;) {
        struct str name = page_value(e, "property");
        if (!text_starts(name, prefix))
            name = page_value(e, "name");
        struct str content = page_value(e, "content");
        if (!text_starts(name, prefix) || content.n == 0)
            continue;
        count++;
        verdict_detail(v, "%.*s: %.*s", STR_ARG(name), STR_ARG(content));
    }
    return count;
}

static size_t count_json_ld(struct facts *f, struct verdict *v, size_t *broken)
{
    size_t count = 0, at = 0;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_SCRIPT, &at)) != NULL;) {
        if (!text_eq(page_value(e, "type"), "application/ld+json"))
            continue;
        if (parses(e->text)) {
            count++;
        } else {
            (*broken)++;
            verdict_detail(v, "Invalid JSON-LD: %.*s", STR_ARG(text_trim(e->text)));
        }
    }
    if (count > 0)
        verdict_detail(v, "JSON-LD blocks: %zu", count);
    return count;
}

void check_structured_data(struct facts *f, struct verdict *v)
{
    size_t broken = 0;
    size_t json = count_json_ld(f, v, &broken);
    size_t graph = count_metas(f, v, "og:");
    size_t cards = count_metas(f, v, "twitter:");
    if (json + graph + cards == 0) {
        if (broken > 0)
            verdict_fail(v, "The page's JSON-LD is not valid JSON. Correct it.");
        else
            verdict_fail(v, "The page has no structured data. Add Open Graph or Twitter meta tags, "
                            "or JSON-LD.");
        return;
    }
    verdict_text(v,
                 arena_printf(&f->arena, "%s%s%s%s%s", graph > 0 ? "Open Graph" : "",
                              graph > 0 && cards + json > 0 ? ", " : "", cards > 0 ? "Twitter" : "",
                              cards > 0 && json > 0 ? ", " : "", json > 0 ? "JSON-LD" : ""));
    verdict_pass(v);
    if (broken > 0)
        verdict_advise(v, "%zu JSON-LD %s %s not valid JSON. Correct %s.", broken,
                       verdict_plural(broken, "block", "blocks"),
                       verdict_plural(broken, "is", "are"), verdict_plural(broken, "it", "them"));
}

struct viewport {
    bool has_width, has_scale;
    double scale;
};

static struct viewport parse_viewport(struct str content)
{
    struct viewport out = {0};
    /*
     * name=value pairs, separated by commas, semicolons or white space; white space around =
     * belongs to the pair
     */
    while (content.n > 0) {
        struct str name, value = {0};
        if (!text_token(&content, ",; \t\n\f\r=", &name))
            break;
        struct str after = text_trim(content);
        if (after.n > 0 && after.p[0] == '=') {
            after = text_trim(text_from(after, 1));
            if (after.n > 0 && after.p[0] != ',' && after.p[0] != ';')
                text_token(&after, ",; \t\n\f\r=", &value);
            content = after;
        }
        char number[32] = "";
        if (value.n > 0 && value.n < sizeof(number))
            memcpy(number, value.p, value.n);
        char *end;
        double n = strtod(number, &end);
        bool of_device = text_eq(value, "device-width") || text_eq(value, "device-height");
        /* CSS Device Adaptation, 9.2: 10 and 1 */
        bool is_scale = end != number || of_device || text_eq(value, "yes");
        if (text_eq(name, "width"))
            out.has_width = of_device || (end != number && n > 0);
        if (text_eq(name, "initial-scale") && is_scale) {
            out.has_scale = true;
            out.scale = end != number ? n : of_device ? 10 : 1;
        }
    }
    return out;
}

void check_meta_viewport(struct facts *f, struct verdict *v)
{
    size_t at = 0;
    const struct page_element *meta = NULL;
    for (const struct page_element *e;
         meta == NULL && (e = page_next(&f->page, TAG_META, &at)) != NULL;)
        if ((e->flags & ELEMENT_IN_HEAD) != 0 && text_eq(page_value(e, "name"), "viewport"))
            meta = e;
    if (meta == NULL) {
        verdict_fail(v, "The page has no viewport, so phones show it small. Add <meta "
                        "name=\"viewport\" content=\"width=device-width, initial-scale=1\">.");
        return;
    }
    struct str content = page_value(meta, "content");
    struct viewport viewport = parse_viewport(content);
    verdict_text(v, content);
    if (!viewport.has_width && !viewport.has_scale)
        verdict_fail(v, "The viewport sets neither width nor initial-scale. Use "
                        "width=device-width, initial-scale=1.");
    else if (viewport.has_scale && viewport.scale < 1)
        verdict_fail(
            v, "The viewport's initial-scale is below 1. Use width=device-width, initial-scale=1.");
    else
        verdict_pass(v);
}

void check_charset(struct facts *f, struct verdict *v)
{
    static const char *const sources[] = {[CHARSET_DEFAULT] = "",
                                          [CHARSET_BOM] = "byte order mark",
                                          [CHARSET_HEADER] = "Content-Type header",
                                          [CHARSET_META] = "meta tag"};
    if (f->charset.source == CHARSET_DEFAULT) {
        verdict_fail(v, "The page does not declare its character encoding. Add <meta "
                        "charset=\"utf-8\"> within the first 1024 bytes.");
        return;
    }
    verdict_text(v, str_of(f->charset.name));
    verdict_detail(v, "Declared by %s", sources[f->charset.source]);
    if (!f->charset.known)
        verdict_fail(v, "The declared character encoding is unknown. Use utf-8.");
    else
        verdict_pass(v);
}

void check_deprecated_html_tags(struct facts *f, struct verdict *v)
{
    size_t total = 0;
    for (size_t i = 0; i < PAGE_DEPRECATED_COUNT; i++) {
        total += f->page.deprecated[i];
        if (f->page.deprecated[i] > 0)
            verdict_detail(v, "<%s>: %zu", page_deprecated_names[i], f->page.deprecated[i]);
    }
    verdict_number(v, (double)total);
    if (total > 0)
        verdict_fail(v,
                     "The page uses %zu deprecated HTML %s. Replace %s with CSS or other elements.",
                     total, verdict_plural(total, "element", "elements"),
                     verdict_plural(total, "it", "them"));
    else
        verdict_pass(v);
}
