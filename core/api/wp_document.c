/* Checks a post or product and converts it into a document: plain texts, exact prices. */
#include "core/api/wp_internal.h"

#include "core/api/json_value_internal.h"
#include "core/api/money_internal.h"
#include "core/audit/plain_text.h"
#include "core/audit/text.h"

#include <strings.h>

#define TERMS_MAX 200

/* ---- texts of a document: they are appended to one buffer, so offsets are kept first ---- */

struct span {
    size_t at, n;
};
struct draft {
    struct json_object *item;
    struct buf *texts;
    struct wp_mistake *mistake;
    uint64_t left_us; /* time left for parsing HTML */
    struct span title, taxonomy, text, url, language, type, image_url, sku;
};

static bool read_string(struct draft *d, const char *name, bool required, struct str *out)
{
    struct json_object *value = wp_member(d->item, name);
    *out = (struct str){"", 0};
    if (value == NULL && required)
        wp_mistake_add(d->mistake, name, "is required");
    else if (value != NULL && !wp_text(d->item, name, out))
        wp_mistake_add(d->mistake, name, "must be a string");
    return wp_continues(d->mistake);
}

static struct span append(struct draft *d, struct str s)
{
    struct span span = {d->texts->n, s.n};
    buf_str(d->texts, s);
    return span;
}

/* A text that is stored unchanged. */
static bool read_text(struct draft *d, const char *name, bool required, size_t max,
                      struct span *out)
{
    struct str text;
    if (!read_string(d, name, required, &text))
        return false;
    if (text.n > max)
        wp_mistake_add(d->mistake, name, "must be at most %zu bytes long", max);
    else if (required && text.n == 0)
        wp_mistake_add(d->mistake, name, "must not be empty");
    *out = append(d, text);
    return wp_continues(d->mistake);
}

static bool link_valid(struct str url)
{
    size_t scheme = url.n > 8 && strncasecmp(url.p, "https://", 8) == 0  ? 8
                    : url.n > 7 && strncasecmp(url.p, "http://", 7) == 0 ? 7
                                                                         : 0;
    if (scheme == 0 || memchr("/?#:@", url.p[scheme], 5) != NULL)
        return false;
    for (size_t i = 0; i < url.n; i++)
        if ((unsigned char)url.p[i] <= ' ' || url.p[i] == 0x7f ||
            memchr("\"<>\\^`{|}", url.p[i], 9) != NULL)
            return false;
    return true;
}

/* A link. Only http and https are accepted. */
static bool read_link(struct draft *d, const char *name, bool required, struct span *out)
{
    if (!read_text(d, name, required, STORE_SYNCED_SHORT_MAX, out))
        return false;
    if (out->n == 0 ||
        (buf_ok(d->texts) && link_valid((struct str){d->texts->p + out->at, out->n})))
        return true;
    wp_mistake_add(d->mistake, name, "must be an http or https address");
    return wp_continues(d->mistake);
}

/* If all mistakes are collected, the item is refused anyway and HTML is not parsed. */
static bool append_plain(struct draft *d, struct str html, size_t max)
{
    if (d->mistake->collects)
        return true;
    enum plain_status status = plain_text(html, max, &d->left_us, d->texts);
    if (status == PLAIN_TOO_COMPLEX) {
        wp_mistake_add(d->mistake, NULL, WP_TOO_COMPLEX);
        d->mistake->code = "too_complex";
    }
    return wp_continues(d->mistake);
}

/* Joins lines with spaces. */
static void join_lines(struct draft *d, size_t from)
{
    for (size_t i = from; buf_ok(d->texts) && i < d->texts->n; i++)
        if (d->texts->p[i] == '\n')
            d->texts->p[i] = ' ';
}

#define NAME_HTML_MAX ((size_t)2048) /* a name is always parsed: one of tags alone is empty */

static bool read_plain(struct draft *d, const char *name, bool required, size_t max,
                       struct span *out)
{
    struct str html;
    size_t at = d->texts->n;
    if (!read_string(d, name, required, &html) || !append_plain(d, html, max))
        return false;
    if (d->mistake->collects && required && html.n <= NAME_HTML_MAX &&
        plain_text(html, max, &d->left_us, d->texts) != PLAIN_OK)
        return true;
    *out = (struct span){at, d->texts->n - at};
    if (required && out->n == 0 && (html.n <= NAME_HTML_MAX || !d->mistake->collects))
        wp_mistake_add(d->mistake, name, "must not be empty");
    return wp_continues(d->mistake);
}

/* The short text on one line, then the long one. */
static bool read_body(struct draft *d, const char *summary, const char *content, bool required)
{
    struct span first, second;
    struct str html;
    if (!read_plain(d, summary, false, STORE_SYNCED_TEXT_MAX / 2, &first))
        return false;
    if (first.n > 0)
        buf_adds(d->texts, "\n");
    size_t before = d->texts->n;
    if (!read_string(d, content, required, &html) ||
        !append_plain(d, html, STORE_SYNCED_TEXT_MAX / 2 - 1))
        return false;
    second = (struct span){before, d->texts->n - before};
    d->text = (struct span){first.at, second.n > 0 ? second.at + second.n - first.at : first.n};
    return true;
}

/* ---- terms: strings, or objects with a name and optional values ---- */

static void add_line(struct draft *d, struct str html, const char *before)
{
    size_t at = d->texts->n;
    buf_adds(d->texts, before);
    size_t from = d->texts->n;
    append_plain(d, html, STORE_SYNCED_SHORT_MAX);
    join_lines(d, from);
    if (d->texts->n == from)
        d->texts->n = at;
}

static void add_values(struct draft *d, struct json_object *values)
{
    if (json_object_is_type(values, json_type_string))
        add_line(d, json_value_text(values), ": ");
    for (size_t i = 0; json_object_is_type(values, json_type_array) &&
                       i < json_object_array_length(values) && i < TERMS_MAX;
         i++) {
        struct json_object *value = json_object_array_get_idx(values, i);
        if (json_object_is_type(value, json_type_string))
            add_line(d, json_value_text(value), i == 0 ? ": " : ", ");
    }
}

static bool add_term(struct draft *d, const char *name, struct json_object *term)
{
    static const char *const value_names[] = {"value", "values", "options"};
    bool is_object = json_object_is_type(term, json_type_object);
    struct json_object *label = is_object ? wp_member(term, "name") : term;
    if (!json_object_is_type(label, json_type_string)) {
        wp_mistake_add(d->mistake, name, "must be an array of strings, or of objects with a name");
        return wp_continues(d->mistake);
    }
    add_line(d, json_value_text(label), d->texts->n > d->taxonomy.at ? "\n" : "");
    for (size_t i = 0; is_object && i < sizeof(value_names) / sizeof(value_names[0]); i++)
        add_values(d, wp_member(term, value_names[i]));
    return wp_continues(d->mistake);
}

static bool read_terms(struct draft *d, const char *name)
{
    struct json_object *list = wp_member(d->item, name);
    if (list == NULL)
        return true;
    if (!json_object_is_type(list, json_type_array) || json_object_array_length(list) > TERMS_MAX) {
        wp_mistake_add(d->mistake, name, "must be an array of at most %d", TERMS_MAX);
        return wp_continues(d->mistake);
    }
    for (size_t i = 0; i < json_object_array_length(list); i++)
        if (!add_term(d, name, json_object_array_get_idx(list, i)))
            return false;
    return true;
}

static void cut_terms(struct draft *d)
{
    struct str all = {d->texts->p + d->taxonomy.at, d->texts->n - d->taxonomy.at};
    d->taxonomy.n = buf_ok(d->texts) ? text_cut_bytes(all, STORE_SYNCED_TAXONOMY_MAX).n : 0;
    d->texts->n = d->taxonomy.at + d->taxonomy.n;
}

/* ---- posts ---- */

static bool read_title(struct draft *d, const char *name)
{
    if (!read_plain(d, name, true, STORE_SYNCED_SHORT_MAX, &d->title))
        return false;
    join_lines(d, d->title.at);
    return true;
}

static bool read_post(struct draft *d)
{
    d->taxonomy.at = d->texts->n;
    if (!read_terms(d, "taxonomy_terms"))
        return false;
    cut_terms(d);
    return read_title(d, "title") && read_text(d, "post_type", true, 64, &d->type) &&
           read_link(d, "permalink", true, &d->url) &&
           read_text(d, "language", false, 64, &d->language) &&
           read_body(d, "excerpt", "content_html", true);
}

/* ---- products ---- */

/* An empty price means none: a product with only variations has no own price. */
static bool read_price(struct draft *d, const char *name, bool required, int64_t *out)
{
    struct str text;
    *out = MONEY_NONE;
    if (!read_string(d, name, required, &text))
        return false;
    if (text.n > 0 && !money_read(text, out))
        wp_mistake_add(d->mistake, name, "must be a decimal string, such as \"12.50\"");
    return wp_continues(d->mistake);
}

static bool read_prices(struct draft *d, struct store_synced *out)
{
    struct str currency;
    if (!read_price(d, "price", true, &out->price) ||
        !read_price(d, "regular_price", false, &out->regular_price) ||
        !read_price(d, "sale_price", false, &out->sale_price) ||
        !read_string(d, "currency", true, &currency))
        return false;
    if (!currency_known(currency)) {
        wp_mistake_add(d->mistake, "currency", "must be three capital letters, such as USD");
        return wp_continues(d->mistake);
    }
    memcpy(out->currency, currency.p, 3);
    out->exponent = currency_exponent(currency);
    return true;
}

static bool read_stock(struct draft *d, struct store_synced *out)
{
    static const char *const names[] = {
        [STOCK_IN] = "instock", [STOCK_OUT] = "outofstock", [STOCK_BACKORDER] = "onbackorder"};
    struct str text;
    struct json_object *on_sale = wp_member(d->item, "on_sale");
    if (!read_string(d, "stock_status", true, &text))
        return false;
    for (unsigned i = STOCK_IN; i <= STOCK_BACKORDER; i++)
        if (str_eq(text, str_of(names[i])))
            out->stock = (enum stock_status)i;
    if (out->stock == STOCK_UNKNOWN)
        wp_mistake_add(d->mistake, "stock_status", "must be instock, outofstock or onbackorder");
    if (wp_continues(d->mistake) && !json_object_is_type(on_sale, json_type_boolean))
        wp_mistake_add(d->mistake, "on_sale", "is required: true or false");
    out->on_sale = json_object_get_boolean(on_sale) != 0;
    return wp_continues(d->mistake);
}

static bool read_product(struct draft *d, struct store_synced *out)
{
    d->taxonomy.at = d->texts->n;
    if (!read_terms(d, "categories") || !read_terms(d, "attributes"))
        return false;
    cut_terms(d);
    return read_title(d, "name") && read_text(d, "sku", false, 256, &d->sku) &&
           read_link(d, "permalink", true, &d->url) &&
           read_link(d, "image_url", false, &d->image_url) && read_prices(d, out) &&
           read_stock(d, out) && read_body(d, "short_description", "description", false);
}

static struct str text_at(const struct buf *texts, struct span span)
{
    return (struct str){texts->p + span.at, span.n};
}

static bool no_memory(struct wp_mistake *mistake)
{
    wp_mistake_add(mistake, NULL, "the server has no memory for the item; send it again");
    mistake->code = "unavailable";
    return false;
}

static bool read_document(enum synced_kind kind, struct json_object *item, struct buf *texts,
                          struct store_synced *out, struct wp_mistake *mistake)
{
    struct draft d = {.item = item, .texts = texts, .mistake = mistake, .left_us = PLAIN_BUDGET_US};
    *out = (struct store_synced){
        .kind = kind, .price = MONEY_NONE, .regular_price = MONEY_NONE, .sale_price = MONEY_NONE};
    if (!(kind == SYNCED_POST ? read_post(&d) : read_product(&d, out)) || mistake->code != NULL)
        return false;
    if (!buf_ok(texts))
        return no_memory(mistake);
    out->title = text_at(texts, d.title);
    out->taxonomy = text_at(texts, d.taxonomy);
    out->text = text_at(texts, d.text);
    out->url = text_at(texts, d.url);
    out->language = text_at(texts, d.language);
    out->type = text_at(texts, d.type);
    out->image_url = text_at(texts, d.image_url);
    out->sku = text_at(texts, d.sku);
    return true;
}

/* Most items are valid. Only for the others all fields are checked, in a second pass. */
bool wp_document(enum synced_kind kind, struct json_object *item, struct buf *texts,
                 struct store_synced *out, struct wp_mistake *mistake)
{
    struct wp_mistake first = {.code = NULL};
    buf_reserve(texts, 1); /* empty texts need an address */
    if (item == NULL)
        return no_memory(mistake);
    if (mistake->code == NULL && read_document(kind, item, texts, out, &first))
        return true;
    mistake->collects = true;
    read_document(kind, item, texts, out, mistake);
    mistake->collects = false;
    if (mistake->code == NULL) { /* only parsing its HTML failed */
        *mistake = first;
        first.errors = (struct buf){0};
    }
    wp_mistake_reset(&first);
    return false;
}
