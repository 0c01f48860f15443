/*
 * Pure functions of bulk sync: money, dates in time zones, signatures, compression, plain text,
 * JSON as text, items as documents.
 */
#include "core/api/money_internal.h"
#include "core/api/wp_internal.h"
#include "core/api/zone_internal.h"
#include "core/audit/plain_text.h"
#include "core/http/inflate.h"
#include "core/text/json_scan.h"
#include "core/text/json_span.h"
#include "core/auth/request_signature.h"
#include "t/kit/suite.h"

#include <check.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <time.h>
#include <zlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Columns: text, value; -1: refused. */
static const struct {
    const char *text;
    int64_t value;
} moneys[] = {
    {"0", 0},
    {"12", 120000},
    {"12.5", 125000},
    {"12.50", 125000},
    {"0.0001", 1},
    {"0.00005", 1},
    {"0.00004999", 0},
    {"0.99995", 10000},
    {"999999999999.9999", 9999999999999999},
    {"", -1},
    {".5", -1},
    {"5.", -1},
    {"-1", -1},
    {"+1", -1},
    {"1e3", -1},
    {"1,5", -1},
    {" 1", -1},
    {"1 ", -1},
    {"1.2.3", -1},
    {"1000000000000", -1},
    {"0x1", -1},
    {"0.1234567890123", -1},
};

START_TEST(money_is_parsed_exactly_or_refused)
{
    int64_t value = -1;
    bool read = money_read(str_of(moneys[_i].text), &value);
    ck_assert_msg(read == (moneys[_i].value >= 0) && (!read || value == moneys[_i].value),
                  "%s: %d %lld", moneys[_i].text, read, (long long)value);
}
END_TEST

START_TEST(currencies_have_the_decimals_of_iso_4217)
{
    ck_assert_uint_eq(currency_exponent(STR("EUR")), 2);
    ck_assert_uint_eq(currency_exponent(STR("JPY")), 0);
    ck_assert_uint_eq(currency_exponent(STR("KWD")), 3);
    ck_assert(currency_known(STR("USD")) && !currency_known(STR("usd")) &&
              !currency_known(STR("US")) && !currency_known(STR("USDT")));
}
END_TEST

/* Columns: date, zone, milliseconds; 0: refused. */
static const struct {
    const char *text, *zone;
    int64_t ms;
} dates[] = {
    {"2026-05-07T13:00:00Z", "Europe/Berlin", 1778158800000},
    {"2026-05-07T13:00:00+02:00", "", 1778151600000},
    {"2026-05-07T13:00:00", "", 1778158800000},
    {"2026-05-07 13:00:00", "UTC", 1778158800000},
    {"2026-05-07T13:00:00", "Europe/Berlin", 1778151600000},
    {"2026-01-07T13:00:00", "Europe/Berlin", 1767787200000},
    {"2026-05-07", "America/New_York", 1778126400000},
    {"2026-05-07", "Asia/Tokyo", 1778079600000},
    {"2026-05-07", "", 1778112000000},
    {"2026-05-07", "Mars/Base", 0},
    {"2026-05-07", "/etc/passwd", 0},
    {"2026-05-07", "../UTC", 0},
    {"2026-02-30", "", 0},
    {"2026-05-07T25:00:00", "", 0},
    {"07.05.2026", "", 0},
    {"2026-05-07T13:00", "", 0},
    {"2026-05-07T13:00:00 and more", "", 0},
    {"", "", 0},
};

START_TEST(dates_are_parsed_in_their_zone)
{
    int64_t ms = 0;
    bool read = zone_date(str_of(dates[_i].text), str_of(dates[_i].zone), &ms);
    ck_assert_msg(read == (dates[_i].ms != 0) && (!read || ms == dates[_i].ms), "%s %s: %d %lld",
                  dates[_i].text, dates[_i].zone, read, (long long)ms);
}
END_TEST

static const struct {
    const char *header;
    int64_t now;
    enum signature_verdict verdict;
} signatures[] = {
    {"", 1760000000, SIGNATURE_MALFORMED},
    {"t=1760000000", 1760000000, SIGNATURE_MALFORMED},
    {"v1=00,t=1760000000", 1760000000, SIGNATURE_MALFORMED},
    {"t=,v1=0000000000000000000000000000000000000000000000000000000000000000", 1760000000,
     SIGNATURE_MALFORMED},
    {"t=17600000x0,v1=0000000000000000000000000000000000000000000000000000000000000000", 1760000000,
     SIGNATURE_MALFORMED},
    {"t=9999999999999,v1=0000000000000000000000000000000000000000000000000000000000000000",
     1760000000, SIGNATURE_MALFORMED},
    {"t=1760000000,v1=g000000000000000000000000000000000000000000000000000000000000000", 1760000000,
     SIGNATURE_MALFORMED},
    {"t=1760000000,v1=0000000000000000000000000000000000000000000000000000000000000000", 1760000000,
     SIGNATURE_WRONG},
    {"t=1760000000,v1=0000000000000000000000000000000000000000000000000000000000000000", 1760000300,
     SIGNATURE_WRONG},
    {"t=1760000000,v1=0000000000000000000000000000000000000000000000000000000000000000", 1760000301,
     SIGNATURE_OLD},
    {"t=1760000000,v1=0000000000000000000000000000000000000000000000000000000000000000", 1759999699,
     SIGNATURE_OLD},
};

START_TEST(a_bad_signature_names_its_reason)
{
    ck_assert_int_eq(signature_check(str_of(signatures[_i].header), STR("asy_wp_test"),
                                     STR("{\"a\":1}"), signatures[_i].now),
                     signatures[_i].verdict);
}
END_TEST

START_TEST(a_created_signature_is_valid)
{
    char header[SIGNATURE_SIZE];
    ck_assert(signature_make(STR("asy_wp_test"), STR("{}"), 1760000000, header));
    ck_assert_int_eq(strncmp(header, "t=1760000000,v1=", 16), 0);
    ck_assert_int_eq(signature_check(str_of(header), STR("asy_wp_test"), STR("{}"), 1760000000),
                     SIGNATURE_GOOD);
    ck_assert_int_eq(signature_check(str_of(header), STR("asy_wp_test"), STR("{ }"), 1760000000),
                     SIGNATURE_WRONG);
}
END_TEST

/* Columns: HTML, text. */
static const char *const htmls[][2] = {
    {"plain", "plain"},
    {"  two\t words ", "two words"},
    {"Tom &amp; Jerry&nbsp;&#8211; &lt;b&gt;", "Tom & Jerry \xe2\x80\x93 <b>"},
    {"Hello &amp; <b>World</b>", "Hello & World"},
    {"<p>One <i>two</i></p><p>three</p>", "One two\nthree"},
    {"a<br>b", "a\nb"},
    {"<script>alert(1)</script>x<style>p{}</style>y", "x\ny"},
    {"<!-- wp:paragraph --><p>a</p><!-- /wp:paragraph -->", "a"},
    {"<p onclick=\"evil()\">a</p><img src=x onerror=alert(1)>", "a"},
    {"&#x3c;script&#x3e;alert(1)&#x3c;/script&#x3e;", "<script>alert(1)</script>"},
    {"<b><i><u>deep", "deep"},
    {"</div></body></html>after", "after"},
    {"<template>no</template><title>no</title>yes", "yes"},
    {"<script>never closed", ""},
    {"\x01\x02 a \x7f", "a"},
    {"", ""},
};

START_TEST(html_is_reduced_to_visible_text)
{
    struct buf out = {0};
    ck_assert_int_eq(plain_text(str_of(htmls[_i][0]), 1000, &(uint64_t){PLAIN_BUDGET_US}, &out),
                     PLAIN_OK);
    ck_assert_msg(str_eq(buf_view(&out), str_of(htmls[_i][1])), "%s became %.*s", htmls[_i][0],
                  (int)out.n, out.p);
    buf_free(&out);
}
END_TEST

START_TEST(text_is_cut_between_code_points)
{
    struct buf out = {0};
    ck_assert_int_eq(plain_text(STR("a\xc3\xa4\xc3\xa4"), 4, &(uint64_t){PLAIN_BUDGET_US}, &out),
                     PLAIN_OK);
    ck_assert_msg(str_eq(buf_view(&out), STR("a\xc3\xa4")), "%.*s", (int)out.n, out.p);
    buf_free(&out);
}
END_TEST

START_TEST(hostile_nesting_is_bounded)
{
    struct buf html = {0}, out = {0};
    for (int i = 0; i < 100000; i++)
        buf_adds(&html, _i == 0 ? "<div>" : _i == 1 ? "<b>" : "<table><tr><td>");
    buf_adds(&html, "x");
    enum plain_status status =
        plain_text(buf_view(&html), 1000, &(uint64_t){PLAIN_BUDGET_US}, &out);
    ck_assert(status == PLAIN_TOO_COMPLEX || (status == PLAIN_OK && out.n <= 1000));
    buf_free(&html);
    buf_free(&out);
}
END_TEST

/* each one is fast enough alone */
START_TEST(the_texts_of_an_item_share_their_time)
{
    struct buf html = {0}, item = {0}, texts = {0};
    struct store_synced out;
    struct wp_mistake mistake = {0};
    for (int i = 0; i < 5000; i++)
        buf_adds(&html, "<b>");
    for (int i = 0; i < 5000; i++)
        buf_adds(&html, "</i>");
    buf_adds(&item, "{\"wp_id\":1,\"title\":\"a\",\"content_html\":\"a\",\"permalink\":\"https://"
                    "a.example/\",\"post_type\":\"post\",\"taxonomy_terms\":[");
    for (int i = 0; i < 90; i++)
        buf_printf(&item, "%s\"%.*s\"", i == 0 ? "" : ",", (int)html.n, html.p);
    buf_adds(&item, "]}");
    enum json_verdict verdict;
    struct json_object *tree = json_scan_parse(buf_view(&item), JSON_SCAN_DEPTH, &verdict);
    ck_assert_ptr_nonnull(tree);
    clock_t began = clock();
    ck_assert(!wp_document(SYNCED_POST, tree, &texts, &out, &mistake));
    ck_assert_str_eq(mistake.code, "too_complex");
    ck_assert_uint_eq(mistake.errors.n, 0);
    ck_assert_int_lt((clock() - began) * 1000 / CLOCKS_PER_SEC, 2000);
    wp_mistake_reset(&mistake);
    json_object_put(tree);
    buf_free(&html);
    buf_free(&item);
    buf_free(&texts);
}
END_TEST

START_TEST(a_decompression_bomb_is_stopped_at_the_limit)
{
    struct buf out = {0};
    static char zeros[1 << 20], packed[1 << 14];
    z_stream z = {.next_in = (Bytef *)zeros,
                  .avail_in = sizeof(zeros),
                  .next_out = (Bytef *)packed,
                  .avail_out = sizeof(packed)};
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    struct str body = {packed, sizeof(packed) - z.avail_out};
    deflateEnd(&z);
    ck_assert_int_eq(inflate_gzip(body, sizeof(zeros), &out), INFLATE_OK);
    ck_assert_uint_eq(out.n, sizeof(zeros));
    buf_free(&out);
    ck_assert_int_eq(inflate_gzip(body, sizeof(zeros) - 1, &out), INFLATE_TOO_LARGE);
    ck_assert_uint_le(out.n, sizeof(zeros));
    buf_free(&out);
    body.n--;
    ck_assert_int_eq(inflate_gzip(body, sizeof(zeros), &out), INFLATE_MALFORMED);
    buf_free(&out);
    ck_assert_int_eq(inflate_gzip(STR(""), 10, &out), INFLATE_MALFORMED);
    buf_free(&out);
}
END_TEST

/*
 * Well-formed JSON of all shapes: walking its text gives the members and items that json-c finds.
 */
static const char *const jsons[] = {
    "{}",
    "[]",
    " { } ",
    "{\"a\":1}",
    "{\"a\" : [1, 2,{\"b\":\"]\"}] , \"c\":\"x\\\"y\\\\\"}",
    "[1,-2.5e3,true,false,null,\"\",\"\\\\\",[],{}]",
    "[[[[1]]],{\"a\":{\"b\":{}}}]",
    "{\"\":0,\"\\u0061b\":\"\\ud83d\\ude00\"}",
    "[\"a\\\\\\\"b\",\"c\"]",
    "[ 1\n,\t2 ,3\r]",
};

static void same_value(struct str text, struct json_object *value);

static void same_members(struct str text, struct json_object *value)
{
    struct str rest = json_span_inside(text), name, member;
    size_t count = 0;
    while (rest.n > 0 && json_span_member(&rest, &name, &member)) {
        char quoted[64];
        snprintf(quoted, sizeof(quoted), "\"%.*s\"", (int)name.n, name.p);
        struct json_object *decoded = json_tokener_parse(quoted), *inner = NULL;
        ck_assert(json_object_object_get_ex(value, json_object_get_string(decoded), &inner));
        same_value(member, inner);
        json_object_put(decoded);
        count++;
    }
    ck_assert_uint_eq(count, (size_t)json_object_object_length(value));
}

static void same_value(struct str text, struct json_object *value)
{
    struct str rest = json_span_inside(text), item;
    size_t count = 0;
    if (json_object_is_type(value, json_type_object)) {
        same_members(text, value);
    } else if (json_object_is_type(value, json_type_array)) {
        for (; json_span_item(&rest, &item); count++)
            same_value(item, json_object_array_get_idx(value, count));
        ck_assert_uint_eq(count, json_object_array_length(value));
    } else {
        enum json_verdict verdict;
        struct json_object *again = json_scan_parse(text, 16, &verdict);
        ck_assert_int_eq(verdict, JSON_SCAN_OK);
        ck_assert(json_object_equal(again, value));
        json_object_put(again);
    }
}

START_TEST(walking_json_text_equals_walking_its_tree)
{
    enum json_verdict verdict;
    struct str text = str_of(jsons[_i]);
    struct json_object *value = json_scan_parse(text, 16, &verdict);
    ck_assert_int_eq(verdict, JSON_SCAN_OK);
    while (*text.p == ' ')
        text = (struct str){text.p + 1, text.n - 1};
    while (text.p[text.n - 1] == ' ')
        text.n--;
    same_value(text, value);
    json_object_put(value);
}
END_TEST

START_TEST(an_item_with_escapes_is_the_same_item)
{
    struct wp_item plain, escaped;
    uint8_t one[16], other[16];
    wp_item_read(STR("{\"wp_id\":7,\"content_hash\":\"ab\",\"modified_at\":\"x\",\"action\":null}"),
                 &plain);
    wp_item_read(
        STR("{\"\\u0077p_id\":7,\"content_hash\":\"\\u0061b\",\"modified_at\":\"\\u0078\"}"),
        &escaped);
    ck_assert_uint_eq(plain.wp_id, 7);
    ck_assert_uint_eq(escaped.wp_id, 7);
    ck_assert(plain.json == NULL && escaped.json != NULL);
    ck_assert(str_eq(plain.modified_at, escaped.modified_at) && plain.action.n == 0);
    ck_assert(wp_item_hash(&plain, one) && wp_item_hash(&escaped, other));
    ck_assert_mem_eq(one, other, sizeof(one));
    wp_item_free(&plain);
    wp_item_free(&escaped);
}
END_TEST

static const char *const not_ids[] = {"{\"wp_id\":0}",
                                      "{\"wp_id\":01}",
                                      "{\"wp_id\":-1}",
                                      "{\"wp_id\":1.0}",
                                      "{\"wp_id\":\"1\"}",
                                      "{\"wp_id\":null}",
                                      "{}",
                                      "[]",
                                      "7",
                                      "null",
                                      "{\"wp_id\":9223372036854775808}"};

START_TEST(a_wp_id_is_a_number_from_1)
{
    struct wp_item item;
    wp_item_read(str_of(not_ids[_i]), &item);
    ck_assert_msg(item.wp_id == 0, "%s", not_ids[_i]);
    wp_item_free(&item);
}
END_TEST

START_TEST(a_product_becomes_a_document)
{
    static const char text[] =
        "{\"wp_id\":7,\"sku\":\"M-1\",\"name\":\"Mug "
        "&amp;\\n<b>Cup</b>\",\"permalink\":\"https://shop.example/"
        "mug\",\"short_description\":\"<p>Short</p>\",\"description\":\"<p>Long</p>\","
        "\"price\":\"12.5\",\"regular_price\":\"\",\"sale_price\":null,\"currency\":\"JPY\","
        "\"stock_status\":\"onbackorder\",\"on_sale\":true,\"categories\":[\"Cups\",{\"name\":\"<i>"
        "Gifts</i>\"}],"
        "\"attributes\":[{\"name\":\"Colour\",\"options\":[\"Red\",\"Blue\"]}]}";
    struct json_object *item = json_tokener_parse(text);
    struct buf texts = {0};
    struct store_synced d;
    struct wp_mistake mistake = {0};
    ck_assert_msg(wp_document(SYNCED_PRODUCT, item, &texts, &d, &mistake), "%s", mistake.message);
    ck_assert(str_eq(d.title, STR("Mug & Cup")) && str_eq(d.text, STR("Short\nLong")) &&
              str_eq(d.sku, STR("M-1")));
    ck_assert_msg(str_eq(d.taxonomy, STR("Cups\nGifts\nColour: Red, Blue")), "%.*s",
                  (int)d.taxonomy.n, d.taxonomy.p);
    ck_assert(d.price == 125000 && d.regular_price == MONEY_NONE && d.sale_price == MONEY_NONE &&
              d.exponent == 0);
    ck_assert(!strcmp(d.currency, "JPY") && d.on_sale && d.stock == STOCK_BACKORDER);
    buf_free(&texts);
    json_object_put(item);
}
END_TEST

START_TEST(both_forms_of_a_coupon_become_one)
{
    static const char woo[] =
        "{\"code\":\" Save "
        "\",\"label\":\"<b>Ten</"
        "b>\",\"discount_type\":\"percent\",\"amount\":\"10.00\",\"minimum_amount\":\"50\","
        "\"maximum_amount\":\"0.00\",\"product_ids\":[7,8],\"excluded_product_ids\":[],"
        "\"exclude_sale_items\":true,\"usage_limit\":3,\"usage_count\":1,\"date_expires_gmt\":"
        "\"2026-05-07T13:00:00\"}";
    static const char simple[] =
        "{\"code\":\"Save\",\"discount\":\"10%\",\"expires_at\":\"2026-05-07T15:00:00\"}";
    struct json_object *one = json_tokener_parse(woo), *other = json_tokener_parse(simple);
    struct buf texts = {0};
    struct store_coupon c;
    struct wp_mistake mistake = {0};
    ck_assert_msg(wp_coupon(one, STR("Europe/Berlin"), &texts, &c, &mistake), "%s",
                  mistake.message);
    ck_assert(str_eq(c.code, STR("Save")) && str_eq(c.label, STR("Ten")) &&
              c.type == COUPON_PERCENT && c.amount == 100000);
    ck_assert(c.minimum == 500000 && c.maximum == MONEY_NONE && c.exclude_sale_items &&
              c.usage_limit == 3 && c.usage_count == 1);
    ck_assert(coupon_products(c.products) == 2 && coupon_product(c.products, 1) == 8 &&
              c.excluded.n == 0);
    int64_t expires_at = c.expires_at;
    ck_assert_int_eq(expires_at, 1778158800000);
    ck_assert_msg(wp_coupon(other, STR("Europe/Berlin"), &texts, &c, &mistake), "%s",
                  mistake.message);
    ck_assert(c.type == COUPON_PERCENT && c.amount == 100000 && c.expires_at == expires_at &&
              c.usage_limit == UINT64_MAX);
    buf_free(&texts);
    json_object_put(one);
    json_object_put(other);
}
END_TEST

/*
 * The parser's one-time work in a process is not counted: under valgrind it takes longer than a
 * label may.
 */
static void warm_up(void)
{
    struct buf out = {0};
    uint64_t left_us = UINT64_MAX;
    ck_assert_int_eq(plain_text(STR("<b>Ten</b>"), 64, &left_us, &out), PLAIN_OK);
    buf_free(&out);
}

static Suite *suite(void)
{
    Suite *s = suite_create("sync_values");
    TCase *c = tcase_create("wp");
    tcase_add_unchecked_fixture(c, warm_up, NULL);
    tcase_set_timeout(c, 30);
    tcase_add_loop_test(c, money_is_parsed_exactly_or_refused, 0, COUNT(moneys));
    tcase_add_test(c, currencies_have_the_decimals_of_iso_4217);
    tcase_add_loop_test(c, dates_are_parsed_in_their_zone, 0, COUNT(dates));
    tcase_add_loop_test(c, a_bad_signature_names_its_reason, 0, COUNT(signatures));
    tcase_add_test(c, a_created_signature_is_valid);
    tcase_add_loop_test(c, html_is_reduced_to_visible_text, 0, COUNT(htmls));
    tcase_add_test(c, text_is_cut_between_code_points);
    tcase_add_loop_test(c, hostile_nesting_is_bounded, 0, 3);
    tcase_add_test(c, the_texts_of_an_item_share_their_time);
    tcase_add_test(c, a_decompression_bomb_is_stopped_at_the_limit);
    tcase_add_loop_test(c, walking_json_text_equals_walking_its_tree, 0, COUNT(jsons));
    tcase_add_test(c, an_item_with_escapes_is_the_same_item);
    tcase_add_loop_test(c, a_wp_id_is_a_number_from_1, 0, COUNT(not_ids));
    tcase_add_test(c, a_product_becomes_a_document);
    tcase_add_test(c, both_forms_of_a_coupon_become_one);
    suite_add_tcase(s, c);
    return s;
}

int main(void)
{
    return suite_run(suite());
}
