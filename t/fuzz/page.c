/*
 * Fuzz: bytes of a page, from charset to results, every check run. The first line, if it has one,
 * is the value of every header; its first byte decides what the rest of the site is like.
 */
#include "core/audit/checks_internal.h"
#include "core/audit/results_internal.h"
#include "core/audit/text.h"

#include <json-c/json.h>
#include <locale.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct conf conf = {
    .reports_weight_high = 10, .reports_weight_medium = 5, .reports_weight_low = 1};

static const char *const header_names[] = {
    "content-type",
    "link",
    "strict-transport-security",
    "x-robots-tag",
    "content-security-policy",
    "x-frame-options",
    "server",
    "x-content-type-options",
    "x-powered-by",
};
#define HEADERS (sizeof(header_names) / sizeof(*header_names))

static void set_response(struct fact_response *r, struct str line, bool https)
{
    *r = (struct fact_response){
        .status = 200,
        .url = https ? STR("https://example.com/a/b?c") : STR("http://example.com/a/b?c"),
        .origin = https ? STR("https://example.com") : STR("http://example.com"),
        .host = STR("example.com"),
        .target = STR("/a/b?c"),
        .https = https,
        .certificate = {.verified = line.n % 2 == 0,
                        .reason = line,
                        .issuer = line,
                        .not_before = line,
                        .not_after = line},
        .http_version = 11,
        .hops = {line, line},
        .hop_count = line.n % 3,
        .header_count = HEADERS,
    };
    for (size_t i = 0; i < HEADERS; i++)
        r->headers[i] = (struct fact_header){str_of(header_names[i]), line};
}

static void set_probes(struct facts *f, unsigned kind, struct str line, struct str body)
{
    struct fact_probe probe = {.state = PROBE_NONE + kind % 4,
                               .status = kind % 8 < 4 ? 200 : 404,
                               .url = line,
                               .final_url = line,
                               .body = body};
    f->robots = f->missing = f->favicon = f->http_form = probe;
}

/* The bounds of a grading hold for every page. */
static void hold(const struct audit_findings *findings, const struct buf *json)
{
    struct json_tokener *tokener = json_tokener_new();
    json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
    struct json_object *results = json_tokener_parse_ex(tokener, json->p, (int)json->n);
    if (results == NULL || json->n > RESULTS_MAX_BYTES || findings->score < 0 ||
        findings->score > 100)
        abort();
    json_object_object_foreach(results, id, check)
    {
        struct json_object *details;
        (void)id;
        if (!json_object_object_get_ex(check, "details", &details) ||
            json_object_array_length(details) > VERDICT_DETAILS_MAX)
            abort();
        for (size_t i = 0; i < json_object_array_length(details); i++)
            if (text_points(str_of(json_object_get_string(json_object_array_get_idx(details, i)))) >
                VERDICT_TEXT_POINTS)
                abort();
    }
    json_object_put(results);
    json_tokener_free(tokener);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct facts facts;
    struct audit_findings findings = {0};
    struct buf json = {0};
    struct str line, body;
    setlocale(LC_CTYPE, "C.UTF-8");
    text_split((struct str){(const char *)data, size}, '\n', &line, &body);
    unsigned kind = line.n == 0 ? 3 : (unsigned char)line.p[0];
    facts_init(&facts);
    set_response(&facts.response, line, kind % 5 != 0);
    set_probes(&facts, kind, line, body);
    if (facts_read(&facts, body, 5000) == PAGE_OK) {
        if (results_make(&facts, &conf, &findings, &json))
            hold(&findings, &json);
        else if (!facts.arena.full)
            abort();
    }
    buf_free(&json);
    facts_free(&facts);
    return 0;
}
