#include "reading.h"

#include "fields.h"
#include "pipeline.h"

#include <json-c/json.h>

static void reading_free(void *arg)
{
    struct reading *g = arg;
    buf_free(&g->body);
    buf_free(&g->header);
    buf_free(&g->token);
    buf_free(&g->plain);
    json_object_put(g->object);
}

static bool read_all(struct away_job *job)
{
    struct reading *g = (struct reading *)job;
    struct str text = buf_view(&g->body);
    if (g->is_signed)
        g->signature = signature_judge(buf_view(&g->header), buf_view(&g->token), text, g->now_s);
    if (g->signature != SIGNATURE_GOOD)
        return false;
    if (g->compressed) {
        g->inflated = inflate_gzip(text, g->max, &g->plain);
        text = buf_view(&g->plain);
    }
    if (g->inflated == INFLATE_OK)
        g->object = fields_read_large(text, g->tree, &g->large, &g->verdict);
    return false;
}

static void all_read(struct away_job *job, struct request *r)
{
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

bool reading_send(struct request *r, size_t max, struct str header, struct str token)
{
    struct reading *g = h2o_mem_alloc_shared(&r->h2o->pool, sizeof(*g), reading_free);
    *g = (struct reading){
        .away = {.work = read_all, .over = all_read},
        .tree = tree_of(r->route->fields),
        .max = max,
        .now_s = r->now_ms / 1000,
        .compressed = r->compressed,
        .is_signed = header.n > 0,
    };
    buf_add(&g->body, r->h2o->entity.base, r->h2o->entity.len);
    buf_str(&g->header, header);
    buf_str(&g->token, token);
    if (!buf_ok(&g->body) || !buf_ok(&g->header) || !buf_ok(&g->token))
        return false;
    r->reading = g;
    h2o_mem_addref_shared(g);
    request_away(r, &g->away);
    return true;
}
