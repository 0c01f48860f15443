/* Fields of queries, forms and JSON bodies: types, bounds and error messages. */
#include "core/http/fields.h"
#include "t/kit/suite.h"

#include <check.h>
#include <json-c/json.h>
#include <stdlib.h>

static struct fields_unknown unknown;

static const char *const sizes[] = {"10", "25", "50", "100", NULL};
static const char *const by[] = {"url", NULL};
static const struct field fields[] = {
    {"search", FIELD_TEXT, NULL, 0, 0, NULL},      {"project", FIELD_TEXT, NULL, 1, 8, NULL},
    {"per_page", FIELD_CHOICE, sizes, 0, 0, "25"}, {"page", FIELD_NUMBER, NULL, 1, 1000, "1"},
    {"search_by", FIELD_CHOICE, by, 0, 0, NULL},   {"pin", FIELD_TEXT, NULL, 4, 8, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
enum { SEARCH, PROJECT, PER_PAGE, PAGE, SEARCH_BY, PIN, COUNT };

static struct value values[FIELDS_MAX];
static struct buf errors;
static char *scratch;

static enum fields_status decode(struct str encoded)
{
    free(scratch);
    scratch = malloc(encoded.n + 1);
    buf_free(&errors);
    memset(values, 0xff, sizeof(values));
    return fields_decode(fields, encoded, scratch, values, &unknown, &errors);
}

static void clean(void)
{
    free(scratch);
    scratch = NULL;
    buf_free(&errors);
}

START_TEST(an_empty_query_gives_the_defaults)
{
    ck_assert_int_eq(decode((struct str){NULL, 0}), FIELDS_OK);
    ck_assert_ptr_null(values[SEARCH].text.p);
    ck_assert(str_eq(values[PER_PAGE].text, STR("25")));
    ck_assert_uint_eq(values[PER_PAGE].number, 1);
    ck_assert_uint_eq(values[PAGE].number, 1);
    for (int i = 0; i < COUNT; ++i)
        ck_assert(!values[i].sent);
}
END_TEST

START_TEST(sent_values_are_decoded_and_typed)
{
    ck_assert_int_eq(decode(STR("p%61ge=12&search=a+b%26c&per_page=100&unknown=%41&pin=1234")),
                     FIELDS_OK);
    ck_assert(values[PAGE].sent);
    ck_assert_uint_eq(values[PAGE].number, 12);
    ck_assert(str_eq(values[SEARCH].text, STR("a b&c")));
    ck_assert_uint_eq(values[PER_PAGE].number, 3);
    ck_assert(str_eq(values[PIN].text, STR("1234")));
    ck_assert(!values[PROJECT].sent);
}
END_TEST

START_TEST(an_empty_optional_text_counts_as_absent)
{
    ck_assert_int_eq(decode(STR("search=&page=2")), FIELDS_OK);
    ck_assert(!values[SEARCH].sent);
    ck_assert_ptr_null(values[SEARCH].text.p);
    ck_assert_int_eq(decode(STR("search")), FIELDS_OK);
    ck_assert(!values[SEARCH].sent);
}
END_TEST

#define BYTES(literal)                                                                             \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
static const struct {
    struct str query;
    const char *errors;
} invalid_cases[] = {
    {BYTES("per_page=11"), "\"per_page\":[\"must be one of 10, 25, 50, 100\"]"},
    {BYTES("per_page="), "\"per_page\":[\"must be one of 10, 25, 50, 100\"]"},
    {BYTES("per_page"), "\"per_page\":[\"must be one of 10, 25, 50, 100\"]"},
    {BYTES("per_page=10+"), "\"per_page\":[\"must be one of 10, 25, 50, 100\"]"},
    {BYTES("per_page=010"), "\"per_page\":[\"must be one of 10, 25, 50, 100\"]"},
    {BYTES("search_by=URL"), "\"search_by\":[\"must be url\"]"},
    {BYTES("page=0"), "\"page\":[\"must be a whole number from 1 to 1000\"]"},
    {BYTES("page=1001"), "\"page\":[\"must be a whole number from 1 to 1000\"]"},
    {BYTES("page=-1"), "\"page\":[\"must be a whole number from 1 to 1000\"]"},
    {BYTES("page=1.5"), "\"page\":[\"must be a whole number from 1 to 1000\"]"},
    {BYTES("page=99999999999999999999999999"),
     "\"page\":[\"must be a whole number from 1 to 1000\"]"},
    {BYTES("page="), "\"page\":[\"must be a whole number from 1 to 1000\"]"},
    {BYTES("project="), "\"project\":[\"must not be empty\"]"},
    {BYTES("project=123456789"), "\"project\":[\"must be at most 8 bytes long\"]"},
    {BYTES("pin=123"), "\"pin\":[\"must be at least 4 bytes long\"]"},
    {BYTES("page=1&page=1"), "\"page\":[\"must be sent only once\"]"},
    {BYTES("search=&search="), "\"search\":[\"must be sent only once\"]"},
    {BYTES("page=1&page=1&p%61ge=3&page=4"), "\"page\":[\"must be sent only once\"]"},
    {BYTES("page=x&page=1"), "\"page\":[\"must be a whole number from 1 to 1000\"]"},
    {BYTES("page=0&sort=7&per_page=9&project="),
     "\"page\":[\"must be a whole number from 1 to 1000\"],\"per_page\":[\"must be one of 10, 25, "
     "50, 100\"],\"project\":[\"must not be empty\"]"},
};

START_TEST(all_wrong_values_are_reported_together)
{
    ck_assert_int_eq(decode(invalid_cases[_i].query), FIELDS_INVALID);
    ck_assert_msg(str_eq(buf_view(&errors), str_of(invalid_cases[_i].errors)), "%.*s",
                  (int)errors.n, errors.p);
}
END_TEST

static const struct str malformed_cases[] = {
    BYTES("search=%"),
    BYTES("search=%4"),
    BYTES("search=%zz"),
    BYTES("search=%00"),
    BYTES("search=a\0b"),
    BYTES("search=\xff"),
    BYTES("search=%c3"),
    BYTES("search=%ed%a0%80"),
    BYTES("unknown=%zz"),
    BYTES("un%known=1"),
    BYTES("%00=1"),
    BYTES("\xff"),
    BYTES("page=1&x=%ff"),
    BYTES("page=0&page=%f"),
    BYTES("search=a&search=%"),
};

START_TEST(an_undecodable_value_is_malformed_in_any_position)
{
    ck_assert_int_eq(decode(malformed_cases[_i]), FIELDS_MALFORMED);
}
END_TEST

START_TEST(the_error_body_has_the_documented_shape)
{
    struct buf body = {0};
    ck_assert_int_eq(decode(STR("page=0")), FIELDS_INVALID);
    fields_error(&errors, "x", "says \"%s\"", "no");
    fields_error_body(&errors, &body);
    const char want[] =
        "{\"error\":{\"code\":\"validation_failed\",\"message\":\"Some values are invalid. Correct "
        "the fields listed in errors.\",\"errors\":{"
        "\"page\":[\"must be a whole number from 1 to 1000\"],\"x\":[\"says \\\"no\\\"\"]}}}";
    ck_assert(str_eq(buf_view(&body), str_of(want)));
    buf_free(&body);
}
END_TEST

START_TEST(ten_thousand_parameters_make_one_message_a_field)
{
    struct buf query = {0};
    for (int i = 0; i < 10000; ++i)
        buf_printf(&query, "%s%d=%%41&", i % 2 == 0 ? "page" : "x", i % 2 == 0 ? 0 : i);
    buf_adds(&query, "page=1");
    for (int i = 0; i < 10000; ++i)
        buf_adds(&query, "&page=1");
    ck_assert_int_eq(decode(buf_view(&query)), FIELDS_INVALID);
    ck_assert(str_eq(buf_view(&errors), STR("\"page\":[\"must be sent only once\"]")));
    buf_free(&query);
}
END_TEST

START_TEST(a_route_without_fields_refuses_undecodable_input)
{
    char room[16];
    ck_assert_int_eq(fields_decode(NULL, STR("a=%41&b"), room, values, &unknown, &errors),
                     FIELDS_OK);
    ck_assert_int_eq(fields_decode(NULL, STR("a=%4"), room, values, &unknown, &errors),
                     FIELDS_MALFORMED);
}
END_TEST

START_TEST(plain_text_needs_no_scratch)
{
    ck_assert_int_eq(
        fields_decode(fields, STR("search=plain&page=3"), NULL, values, &unknown, &errors),
        FIELDS_OK);
    ck_assert(str_eq(values[SEARCH].text, STR("plain")));
}
END_TEST

/* ---- members of an object ---- */

static const struct field members[] = {
    {"name", FIELD_CHARS, NULL, 1, 3, NULL},  {"size", FIELD_CHOICE, sizes, 0, 0, "10"},
    {"page", FIELD_NUMBER, NULL, 1, 9, NULL}, {"any", FIELD_JSON, NULL, 0, 12, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};

static const struct {
    const char *json;
    const char *errors; /* their prefix; NULL: none */
} json_cases[] = {
    {"{}", NULL},
    {"{\"name\":\"äöü\",\"size\":\"50\",\"page\":9,\"any\":{\"a\": [1]}}", NULL},
    {"{\"size\":50,\"name\":null,\"unknown\":[]}", NULL},
    {"{\"name\":\"\"}", "\"name\":[\"must be 1 to 3 characters long\"]"},
    {"{\"name\":\"abcd\"}", "\"name\":[\"must be 1 to 3 characters long\"]"},
    {"{\"name\":1}", "\"name\":[\"must be a string\"]"},
    {"{\"name\":{\"a\":1}}", "\"name\":[\"must be a string\"]"},
    {"{\"size\":11}", "\"size\":[\"must be one of 10, 25, 50, 100\"]"},
    {"{\"size\":true}", "\"size\":[\"must be one of 10, 25, 50, 100\"]"},
    {"{\"page\":\"5\"}", "\"page\":[\"must be a whole number\"]"},
    {"{\"page\":5.0}", "\"page\":[\"must be a whole number\"]"},
    {"{\"page\":-5}", "\"page\":[\"must be a whole number from 1 to 9\"]"},
    {"{\"any\":\"0123456789ab\"}", "\"any\":[\"must be at most 12 bytes of JSON\"]"},
};

START_TEST(members_have_their_json_types)
{
    struct json_object *tree = json_tokener_parse(json_cases[_i].json);
    buf_free(&errors);
    memset(values, 0xff, sizeof(values));
    enum fields_status status = fields_of_json(members, tree, values, &unknown, &errors);
    ck_assert_int_eq(status, json_cases[_i].errors == NULL ? FIELDS_OK : FIELDS_INVALID);
    if (json_cases[_i].errors != NULL)
        ck_assert_msg(str_eq(buf_view(&errors), str_of(json_cases[_i].errors)), "%.*s",
                      (int)errors.n, errors.p);
    json_object_put(tree);
}
END_TEST

static const struct {
    const char *json;
    enum fields_status status; /* FIELDS_MALFORMED: a tree is required */
} flat_cases[] = {
    {"{\"name\":\"äöü\"}", FIELDS_OK},
    {"{\"unknown\":\"\",\"size\":\"50\",\"name\":\"a\"}", FIELDS_OK},
    {"{\"unknown\":\"x\"}", FIELDS_OK},
    /* two messages, in table order */
    {"{\"size\":\"11\",\"name\":\"abcd\"}", FIELDS_INVALID},
    {"{\"name\":\"\"}", FIELDS_INVALID},
    {"{\"page\":\"5\"}", FIELDS_MALFORMED},
    {"{\"name\":\"abcd\",\"any\":\"x\"}", FIELDS_MALFORMED},
};

START_TEST(flat_and_tree_parsing_agree)
{
    struct json_member flat[4];
    struct value other[4];
    struct buf message = {0};
    const struct str text = str_of(flat_cases[_i].json);
    struct json_object *tree = json_tokener_parse(flat_cases[_i].json);
    int count = json_scan_flat(text, flat, 4);
    buf_free(&errors);
    memset(values, 0xff, sizeof(values));
    ck_assert_int_eq(fields_of_flat(members, flat, count, values, &unknown, &errors),
                     flat_cases[_i].status);
    enum fields_status status = fields_of_json(members, tree, other, &unknown, &message);
    if (flat_cases[_i].status != FIELDS_MALFORMED) {
        ck_assert_int_eq(status, flat_cases[_i].status);
        ck_assert_msg(str_eq(buf_view(&errors), buf_view(&message)), "%.*s\n%.*s", (int)errors.n,
                      errors.p, (int)message.n, message.p);
        for (size_t i = 0; i < 4; i++)
            ck_assert(values[i].sent == other[i].sent && values[i].number == other[i].number &&
                      str_eq(values[i].text, other[i].text));
    }
    buf_free(&message);
    json_object_put(tree);
}
END_TEST

static const char *unknown_list(void)
{
    static char list[1024];
    struct buf out = {0};
    fields_unknown_list(&unknown, &out);
    snprintf(list, sizeof(list), "%.*s", (int)out.n, out.p);
    buf_free(&out);
    return list;
}

START_TEST(unknown_names_are_reported_once_from_any_source)
{
    static const char json[] = "{\"search\":\"x\",\"s\\u00e9\\\"\":1,\"srch\":[],\"b\":\"c\"}";
    struct json_object *tree = json_tokener_parse(json);
    struct json_member flat[4];
    unknown.count = 0;
    ck_assert_int_eq(decode(STR("serch=a&page=2&serch=b&r%C3%A9sultat=c&%22=")), FIELDS_OK);
    ck_assert_str_eq(unknown_list(), "[\"serch\",\"r\303\251sultat\",\"\\\"\"]");
    unknown.count = 0;
    ck_assert_int_eq(fields_of_json(fields, tree, values, &unknown, &errors), FIELDS_OK);
    ck_assert_str_eq(unknown_list(), "[\"s\303\251\\\"\",\"srch\",\"b\"]");
    unknown.count = 0;
    int count = json_scan_flat(STR("{\"search\":\"x\",\"pag\":\"1\"}"), flat, 4);
    ck_assert_int_eq(fields_of_flat(fields, flat, count, values, &unknown, &errors), FIELDS_OK);
    ck_assert_str_eq(unknown_list(), "[\"pag\"]");
    json_object_put(tree);
}
END_TEST

START_TEST(an_unknown_name_error_suggests_the_nearest_name)
{
    unknown.count = 0;
    ck_assert_int_eq(decode(STR("serch=a&elsewhere=b&pagge=1")), FIELDS_OK);
    fields_unknown_errors(fields, &unknown, &errors);
    ck_assert_msg(str_eq(buf_view(&errors), STR("\"serch\":[\"is unknown; did you mean search?\"],"
                                                "\"elsewhere\":[\"is unknown\"],"
                                                "\"pagge\":[\"is unknown; did you mean page?\"]")),
                  "%.*s", (int)errors.n, errors.p);
}
END_TEST

START_TEST(the_number_of_reported_unknown_names_is_bounded)
{
    struct buf query = {0};
    for (unsigned i = 0; i < 3 * FIELDS_UNKNOWN_MAX; i++)
        buf_printf(&query, "&a%u=1", i);
    unknown.count = 0;
    ck_assert_int_eq(decode(buf_view(&query)), FIELDS_OK);
    ck_assert_uint_eq(unknown.count, FIELDS_UNKNOWN_MAX);
    buf_free(&query);
}
END_TEST

START_TEST(a_nested_value_is_stored_without_whitespace)
{
    struct json_object *tree = json_tokener_parse(json_cases[1].json);
    ck_assert_int_eq(fields_of_json(members, tree, values, &unknown, &errors), FIELDS_OK);
    ck_assert(str_eq(values[3].text, STR("{\"a\":[1]}")) && values[3].json != NULL &&
              values[3].sent);
    ck_assert(values[1].number == 2 && values[2].number == 9 && values[0].text.n == 6);
    json_object_put(tree);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fields");
    TCase *tc = tcase_create("fields");
    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, NULL, clean);
    tcase_add_test(tc, an_empty_query_gives_the_defaults);
    tcase_add_test(tc, sent_values_are_decoded_and_typed);
    tcase_add_test(tc, an_empty_optional_text_counts_as_absent);
    tcase_add_loop_test(tc, all_wrong_values_are_reported_together, 0,
                        sizeof(invalid_cases) / sizeof(invalid_cases[0]));
    tcase_add_loop_test(tc, an_undecodable_value_is_malformed_in_any_position, 0,
                        sizeof(malformed_cases) / sizeof(malformed_cases[0]));
    tcase_add_test(tc, the_error_body_has_the_documented_shape);
    tcase_add_test(tc, ten_thousand_parameters_make_one_message_a_field);
    tcase_add_test(tc, a_route_without_fields_refuses_undecodable_input);
    tcase_add_test(tc, plain_text_needs_no_scratch);
    tcase_add_loop_test(tc, members_have_their_json_types, 0,
                        sizeof(json_cases) / sizeof(json_cases[0]));
    tcase_add_loop_test(tc, flat_and_tree_parsing_agree, 0,
                        sizeof(flat_cases) / sizeof(flat_cases[0]));
    tcase_add_test(tc, a_nested_value_is_stored_without_whitespace);
    tcase_add_test(tc, unknown_names_are_reported_once_from_any_source);
    tcase_add_test(tc, an_unknown_name_error_suggests_the_nearest_name);
    tcase_add_test(tc, the_number_of_reported_unknown_names_is_bounded);
    return suite_run(suite);
}
