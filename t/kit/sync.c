#include "t/kit/sync.h"

#include <openssl/hmac.h>
#include <zlib.h>

struct server *server;
char *token, *signing, *agent, *foreign_agent, *foreign_token;

void sync_make(void)
{
    assay_ok(server, "workspace", "create", "other", NULL);
    token = assay_ok(server, "token", "create", "--workspace", "main", "--name", "shop", NULL);
    signing =
        assay_ok(server, "token", "create", "--workspace", "main", "--require-signature", NULL);
    foreign_token = assay_ok(server, "token", "create", "--workspace", "other", NULL);
    agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", "--origin",
                     "*", NULL);
    foreign_agent =
        assay_ok(server, "agent", "create", "--workspace", "other", "--name", "Theirs", NULL);
}

void sync_setup(void)
{
    server = server_new(&(struct server_options){.yaml = SYNC_MANY});
    server_start(server);
    sync_make();
}

void sync_teardown(void)
{
    server_free(server);
}

char *agent_new(void)
{
    return assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", NULL);
}

const char *const prefixes[2] = {"/v1/wp/", "/api/v1/wp/"};

struct response *post_as(const char *key, const char *path, const char *body)
{
    return http(server, .method = "POST", .path = text("/v1/wp/%s", path), .key = key,
                .headers = {"Content-Type: application/json"}, .body = body);
}

struct response *post(const char *path, const char *body)
{
    return post_as(token, path, body);
}

char *envelope(const char *of, const char *more, const char *items_name, const char *items)
{
    return text("{\"agent_id\":\"%s\",\"site_url\":\"https://www.shop.example/"
                "\",\"plugin_version\":\"1.0\"%s,\"%s\":%s}",
                of, more, items_name, items);
}

char *product(unsigned id, const char *name, const char *more)
{
    return text("{\"wp_id\":%u,\"name\":\"%s\",\"permalink\":\"https://shop.example/p/"
                "%u\",\"price\":\"12.50\",\"currency\":\"EUR\","
                "\"stock_status\":\"instock\",\"on_sale\":false,\"categories\":[\"Cups\"],"
                "\"attributes\":[]%s}",
                id, name, id, more);
}

char *a_post(unsigned id, const char *title, const char *more)
{
    return text("{\"wp_id\":%u,\"post_type\":\"post\",\"permalink\":\"https://shop.example/"
                "%u\",\"title\":\"%s\",\"content_html\":\"<p>text</p>\"%s}",
                id, id, title, more);
}

struct response *sync_one(const char *of, const char *more, const char *item)
{
    return post("products/sync", envelope(of, more, "products", text("[%s]", item)));
}

int64_t counted(const char *of, const char *kind)
{
    struct response *r = http(server, .path = text("/v1/wp/status?agent_id=%s", of), .key = token);
    expect_status(r, 200);
    return int_at(r, text("data.%s.count", kind));
}

char *many(unsigned count)
{
    char *items = text("[%s", product(1, "Mug", ""));
    for (unsigned i = 2; i <= count; i++)
        items = text("%s,%s", items, product(i, "Mug", ""));
    return text("%s]", items);
}

char *signature(const char *key, long t, const char *body, size_t size)
{
    unsigned char mac[32];
    unsigned n = sizeof(mac);
    char *head = text("%ld.", t), *all = malloc(strlen(head) + size), *hex = malloc(65);
    memcpy(all, head, strlen(head));
    memcpy(all + strlen(head), body, size);
    HMAC(EVP_sha256(), key, (int)strlen(key), (const unsigned char *)all, strlen(head) + size, mac,
         &n);
    for (size_t i = 0; i < n; i++)
        sprintf(hex + 2 * i, "%02x", mac[i]);
    return text("X-Signature: t=%ld,v1=%s", t, hex);
}

char *gzip(const char *body, size_t size, size_t *out_size)
{
    z_stream z = {0};
    ck_assert_int_eq(deflateInit2(&z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
    size_t room = deflateBound(&z, size);
    char *out = malloc(room);
    z.next_in = (Bytef *)(uintptr_t)body;
    z.avail_in = (uInt)size;
    z.next_out = (Bytef *)out;
    z.avail_out = (uInt)room;
    ck_assert_int_eq(deflate(&z, Z_FINISH), Z_STREAM_END);
    *out_size = room - z.avail_out;
    deflateEnd(&z);
    return out;
}

char *padded(const char *body, size_t size)
{
    char *all = malloc(size + 1);
    memset(all, ' ', size);
    memcpy(all, body, strlen(body));
    all[size] = '\0';
    return all;
}
