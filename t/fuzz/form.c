/*
 * What a stranger may send in a query, a form or a header, through everything that reads it without
 * a request in flight. Each input stands in a block of its own size, so that a byte read too far is
 * seen. What comes out is held against what may come out: UTF-8 only, links that decode to what
 * they were made of.
 */
#include "core/http/etag.h"
#include "core/http/fields.h"
#include "core/text/form.h"
#include "core/text/json_out.h"
#include "core/http/pagination.h"
#include "core/http/prefer.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const choices[] = {"10", "25", NULL};
static const struct field fields[] = {
    {"search", FIELD_TEXT, NULL, 0, 0, NULL},
    {"pin", FIELD_TEXT, NULL, 2, 4, NULL},
    {"per_page", FIELD_CHOICE, choices, 0, 0, "10"},
    {"page", FIELD_NUMBER, NULL, 1, 1000, "1"},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
enum { FIELDS = 4 };

static void must(bool so)
{
    if (!so)
        abort();
}

static void links(struct str query)
{
    struct pagination p = {STR("http://h"), STR("/p"), query, 2, 10, 25, 10, STR("")};
    struct buf envelope = {0}, link = {0};
    pagination_render(&p, &envelope, &link);
    must(buf_ok(&envelope) && utf8_valid(buf_view(&envelope)) && utf8_valid(buf_view(&link)));
    for (size_t i = 0; i < link.n; ++i)
        must(link.p[i] > 0x1f && link.p[i] != 0x7f);
    buf_free(&envelope);
    buf_free(&link);
}

static void fields_and_links(struct str in)
{
    struct value values[FIELDS_MAX];
    struct fields_unknown unknown = {.count = 0};
    struct buf errors = {0}, names = {0};
    char *scratch = malloc(in.n + (in.n == 0));
    enum fields_status status = fields_decode(fields, in, scratch, values, &unknown, &errors);
    must(utf8_valid(buf_view(&errors)));
    if (status != FIELDS_MALFORMED) {
        fields_unknown_errors(fields, &unknown, &names);
        fields_unknown_list(&unknown, &names);
        must(buf_ok(&names) && utf8_valid(buf_view(&names)));
    }
    if (status == FIELDS_OK) {
        for (int i = 0; i < FIELDS; ++i)
            must(utf8_valid(values[i].text));
        must(values[3].number >= 1 && values[3].number <= 1000);
        links(in);
    }
    must(status == FIELDS_MALFORMED || (errors.n > 0) == (status == FIELDS_INVALID));
    buf_free(&names);
    buf_free(&errors);
    free(scratch);
}

static void headers(struct str in)
{
    uint64_t versions[4];
    size_t count = 0;
    struct prefer prefer = {0};
    char out[PREFER_APPLIED_SIZE];
    prefer_parse(in, &prefer);
    must(!prefer.wait || prefer.wait_s <= PREFER_WAIT_MAX);
    must(prefer_applied(&prefer, out).n < sizeof(out));
    etag_versions(in, versions, 4, &count);
    must(count <= 4);
    (void)etag_none_match(in, STR("\"5-1\""));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + (size == 0));
    struct buf json = {0};
    memcpy(copy, data, size);
    struct str in = {copy, size};
    fields_and_links(in);
    headers(in);
    json_string(&json, in);
    must(utf8_valid(buf_view(&json)));
    buf_free(&json);
    free(copy);
    return 0;
}
