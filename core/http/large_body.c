#include "core/http/large_body.h"

#include "core/http/fields.h"
#include "core/http/pipeline.h"

#include <json-c/json.h>

#define MOST_BYTES ((size_t)64 << 20) /* of all bodies of a worker that are read, or were and whose requests have not ended */
#define GZIP_RATIO_MAX 1032           /* deflate makes no more of a byte */

static size_t held; /* bytes of them; what is to be made of gzip counts as the most that it may be */

static void large_body_free(void *arg)
{
    struct large_body *g = arg;
    held -= g->counted;
    buf_free(&g->body);
    buf_free(&g->header);
    buf_free(&g->token);
    buf_free(&g->plain);
    json_object_put(g->object);
}

static bool read_all(struct pool_job *job)
{
    struct large_body *g = (struct large_body *)job;
    struct str text = buf_view(&g->body);
    if (g->is_signed)
        g->signature = signature_judge(buf_view(&g->header), buf_view(&g->token), text, g->now_s);
    if (g->signature != SIGNATURE_GOOD)
        return false;
    if (g->compressed) {
        g->inflated = inflate_gzip(text, g->max, &g->plain);
        buf_free(&g->body);
        text = buf_view(&g->plain);
    }
    if (g->inflated == INFLATE_OK)
        g->object = fields_read_large(text, g->tree, &g->large, &g->fault);
    return false;
}

static void count(struct large_body *g, size_t bytes)
{
    held = held - g->counted + bytes;
    g->counted = bytes;
}

static void all_read(struct pool_job *job, struct waiter *w)
{
    struct request *r = request_of(w);
    struct large_body *g = (struct large_body *)job;
    count(g, g->body.n + g->plain.n);
    if (r != NULL)
        pipeline_resume(r);
    h2o_mem_release_shared(job);
}

static const struct field *tree_of(const struct field *fields)
{
    while (fields != NULL && fields->name != NULL && fields->type != FIELD_TREE)
        fields++;
    return fields == NULL || fields->name == NULL ? NULL : fields;
}

bool large_body_send(struct request *r, size_t max, struct str header, struct str token)
{
    size_t size = r->h2o->entity.len, bytes = size;
    if (r->compressed)
        bytes += size < max / GZIP_RATIO_MAX ? size * GZIP_RATIO_MAX : max;
    if (bytes > MOST_BYTES || held > MOST_BYTES - bytes)
        return false;
    struct large_body *g = h2o_mem_alloc_shared(&r->h2o->pool, sizeof(*g), large_body_free);
    *g = (struct large_body){
        .away = {.work = read_all, .over = all_read},
        .tree = tree_of(r->route->fields),
        .max = max,
        .now_s = r->now_ms / 1000,
        .compressed = r->compressed,
        .is_signed = header.n > 0,
    };
    buf_add(&g->body, r->h2o->entity.base, size);
    buf_str(&g->header, header);
    buf_str(&g->token, token);
    if (!buf_ok(&g->body) || !buf_ok(&g->header) || !buf_ok(&g->token))
        return false;
    count(g, bytes);
    r->large_body = g;
    h2o_mem_addref_shared(g);
    request_run_in_pool(r, &g->away);
    return true;
}
