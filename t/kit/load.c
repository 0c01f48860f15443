#include "t/kit/load.h"

#include <strings.h>

static atomic_bool load_ends;

static void ask(struct raw *raw, const struct load *load)
{
    if (load->writes)
        raw_post(raw, load->server->key, "Prefer: respond-async\r\n",
                 "url=http%3A%2F%2F127.0.0.1%3A80%2F");
    else
        raw_get(raw, load->server->key, "/api/v1/reports");
}

static void *load_run(void *arg)
{
    struct load *load = arg;
    struct raw *raw = NULL;
    while (!load_ends && !load->failure) {
        raw = raw ? raw : raw_open(load->server);
        ask(raw, load);
        struct response *r = raw_response(raw, false, 20000);
        const char *connection = header(r, "Connection");
        if (r->status != (load->writes ? 202 : 200))
            load->failure =
                text("after %u requests: status %d\n%s", load->done, r->status, response_text(r));
        load->done++;
        if (load->fresh || (connection && !strcasecmp(connection, "close"))) {
            raw_close(raw);
            raw = NULL;
        }
        response_free(r);
    }
    raw_close(raw);
    return NULL;
}

void load_start(const struct server *s, struct load *loads, size_t count)
{
    load_ends = false;
    for (size_t i = 0; i < count; i++) {
        loads[i].server = s;
        ck_assert_int_eq(pthread_create(&loads[i].thread, NULL, load_run, &loads[i]), 0);
    }
}

void load_end(struct load *loads, size_t count, unsigned least)
{
    load_ends = true;
    for (size_t i = 0; i < count; i++)
        pthread_join(loads[i].thread, NULL);
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(!loads[i].failure && loads[i].done >= least, "%s %s: %u requests, %s\n%s",
                      loads[i].fresh ? "fresh" : "kept", loads[i].writes ? "writes" : "reads",
                      loads[i].done, loads[i].failure ? loads[i].failure : "too few",
                      server_log(loads[i].server));
}
