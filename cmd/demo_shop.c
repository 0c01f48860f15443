/* The pages of the invented shop, rendered from the catalogue and its templates. */
#include "cmd/demo.h"

#include <stdio.h>
#include <string.h>

#define ROBOTS "User-agent: *\nDisallow: /cart\n"
#define HTML "text/html; charset=utf-8"

struct shop {
    const char *api;
    const struct demo_catalogue *catalogue;
    struct demo_site *site;
    struct buf chat; /* its script element */
    bool full;
};

static struct str no_text(void)
{
    return (struct str){"", 0};
}

/* A new page; NULL when there are too many. */
static struct buf *page_add(struct shop *shop, const char *path, const char *type, bool of_shop)
{
    struct demo_site *site = shop->site;
    if (site->count == DEMO_PAGES_MAX) {
        shop->full = true;
        return NULL;
    }
    struct demo_page *page = &site->pages[site->count++];
    *page = (struct demo_page){.type = type, .shop = of_shop};
    snprintf(page->path, sizeof(page->path), "%s", path);
    return &page->body;
}

static void file_add(struct shop *shop, const char *path, const char *type, struct str text)
{
    struct buf *body = page_add(shop, path, type, false);
    if (body != NULL)
        buf_str(body, text);
}

/* A page in the shop's frame. ${main}: HTML. */
static void frame_add(struct shop *shop, const char *path, const char *title, struct str main)
{
    struct buf escaped = {0}, *body = page_add(shop, path, HTML, true);
    demo_html(title, &escaped);
    const struct demo_slot slots[] = {{"title", buf_view(&escaped)},
                                      {"main", main},
                                      {"chat", buf_view(&shop->chat)},
                                      {NULL, no_text()}};
    if (body != NULL)
        demo_fill(demo_text("shop.html"), slots, body);
    buf_free(&escaped);
}

/* ---- what a product shows ---- */

static const char *member(const struct json *item, const char *name)
{
    const struct json *value = json_member(item, name);
    return value == NULL ? "" : json_chars(value);
}

/* ${url} without the shop's origin. */
static const char *path_of(const struct shop *shop, const char *url)
{
    size_t n = strlen(shop->catalogue->origin);
    return strncmp(url, shop->catalogue->origin, n) == 0 ? url + n : "/";
}

static void put_price(const struct json *product, struct buf *out)
{
    if (json_true(json_member(product, "on_sale")))
        buf_printf(out, "<s>£%s</s> ", member(product, "regular_price"));
    buf_printf(out, "£%s", member(product, "price"));
    if (strcmp(member(product, "stock_status"), "instock") != 0)
        buf_adds(out, " · on backorder");
}

static void product_fill(const struct shop *shop, const char *template, const struct json *product,
                         struct buf *out)
{
    struct buf name = {0}, price = {0};
    demo_html(member(product, "name"), &name);
    put_price(product, &price);
    const struct demo_slot slots[] = {
        {"path", str_of(path_of(shop, member(product, "permalink")))},
        {"image", str_of(path_of(shop, member(product, "image_url")))},
        {"name", buf_view(&name)},
        {"short", str_of(member(product, "short_description"))},
        {"description", str_of(member(product, "description"))},
        {"price", buf_view(&price)},
        {NULL, no_text()},
    };
    demo_fill(demo_text(template), slots, out);
    buf_free(&name);
    buf_free(&price);
}

/* "/bags/6b3e1e.svg": a bag of that colour. */
static void picture_add(struct shop *shop, const char *path)
{
    const char *colour = strrchr(path, '/');
    if (colour == NULL || strspn(colour + 1, "0123456789abcdef") != 6)
        return;
    const struct demo_slot slots[] = {{"colour", {colour + 1, 6}}, {NULL, no_text()}};
    struct buf *body = page_add(shop, path, "image/svg+xml", false);
    if (body != NULL)
        demo_fill(demo_text("bag.svg"), slots, body);
}

/* ---- pages ---- */

static void products_add(struct shop *shop, struct buf *cards)
{
    const struct json *products = json_member(shop->catalogue->json, "products");
    for (size_t i = 0; i < json_length(products); i++) {
        const struct json *product = json_item(products, i);
        struct buf main = {0};
        product_fill(shop, "product.html", product, &main);
        product_fill(shop, "card.html", product, cards);
        frame_add(shop, path_of(shop, member(product, "permalink")), member(product, "name"),
                  buf_view(&main));
        picture_add(shop, path_of(shop, member(product, "image_url")));
        buf_free(&main);
    }
}

static void posts_add(struct shop *shop, struct buf *links)
{
    const struct json *posts = json_member(shop->catalogue->json, "posts");
    for (size_t i = 0; i < json_length(posts); i++) {
        const struct json *post = json_item(posts, i);
        const char *path = path_of(shop, member(post, "permalink"));
        struct buf title = {0}, main = {0};
        demo_html(member(post, "title"), &title);
        const struct demo_slot slots[] = {{"title", buf_view(&title)},
                                          {"path", str_of(path)},
                                          {"content", str_of(member(post, "content_html"))},
                                          {NULL, no_text()}};
        demo_fill(demo_text("page.html"), slots, &main);
        demo_fill(demo_text("link.html"), slots, links);
        frame_add(shop, path, member(post, "title"), buf_view(&main));
        buf_free(&title);
        buf_free(&main);
    }
}

static void front_add(struct shop *shop, const struct buf *cards, const struct buf *links)
{
    const struct json *questions = json_member(shop->catalogue->json, "questions");
    struct buf buttons = {0}, cart = {0}, main = {0};
    for (size_t i = 0; i < json_length(questions); i++) {
        struct buf text = {0};
        demo_html(json_chars(json_item(questions, i)), &text);
        const struct demo_slot slots[] = {{"text", buf_view(&text)}, {NULL, no_text()}};
        demo_fill(demo_text("question.html"), slots, &buttons);
        buf_free(&text);
    }
    demo_html(member(shop->catalogue->json, "basket"), &cart);
    const struct demo_slot slots[] = {{"questions", buf_view(&buttons)},
                                      {"products", buf_view(cards)},
                                      {"pages", buf_view(links)},
                                      {"cart", buf_view(&cart)},
                                      {NULL, no_text()}};
    demo_fill(demo_text("front.html"), slots, &main);
    frame_add(shop, "/chat", "Coffee from the old fish quay", buf_view(&main));
    buf_free(&buttons);
    buf_free(&cart);
    buf_free(&main);
}

static bool site_ok(const struct shop *shop)
{
    bool good = !shop->full && buf_ok(&shop->site->policy);
    for (size_t i = 0; i < shop->site->count; i++)
        good = good && buf_ok(&shop->site->pages[i].body);
    return good;
}

bool demo_site_build(const char *api, const struct ulid *agent,
                     const struct demo_catalogue *catalogue, struct demo_site *site)
{
    struct shop shop = {.api = api, .catalogue = catalogue, .site = site};
    struct buf cards = {0}, links = {0};
    *site = (struct demo_site){.count = 0};
    bool good = demo_chat_element(api, agent, &shop.chat);
    buf_printf(&site->policy,
               "Content-Security-Policy: default-src 'none'; script-src 'self' %s; "
               "connect-src %s; style-src 'self'; img-src 'self'; base-uri 'none'; "
               "form-action 'none'; require-trusted-types-for 'script'\r\n",
               api, api);
    file_add(&shop, "/", "text/html", demo_text("index.html"));
    file_add(&shop, "/robots.txt", "text/plain", STR(ROBOTS));
    file_add(&shop, "/shop.css", "text/css; charset=utf-8", demo_text("shop.css"));
    file_add(&shop, "/shop.js", "text/javascript; charset=utf-8", demo_text("shop.js"));
    products_add(&shop, &cards);
    posts_add(&shop, &links);
    front_add(&shop, &cards, &links);
    good = good && buf_ok(&cards) && buf_ok(&links) && site_ok(&shop);
    buf_free(&cards);
    buf_free(&links);
    buf_free(&shop.chat);
    return good;
}

void demo_site_free(struct demo_site *site)
{
    for (size_t i = 0; i < site->count; i++)
        buf_free(&site->pages[i].body);
    buf_free(&site->policy);
    site->count = 0;
}
