#include "core/http/large_body.h"

#include "core/http/continuations.h"
#include "core/http/fields.h"
#include "core/http/pipeline.h"
#include "core/http/steps_internal.h"

#include <json-c/json.h>

/* of all large bodies of a worker whose requests have not ended */
#define MEMORY_MAX ((size_t)64 << 20)
#define GZIP_RATIO_MAX 1032 /* bytes that deflate can make of one */
/* a larger body is processed in a thread */
#define LARGE_BYTES ((size_t)256 * 1024)
#define LARGE_PACKED_BYTES (LARGE_BYTES / 1024)

static size_t memory_used; /* by them; gzip that is not inflated yet counts as the most it can be */

static void dispose(void *arg)
{
    struct large_body *b = arg;
    memory_used -= b->accounted;
    buf_free(&b->body);
    buf_free(&b->header);
    buf_free(&b->token);
    buf_free(&b->plain);
    json_object_put(b->object);
}

/* In the thread. */
static bool process(struct pool_job *job)
{
    struct large_body *b = (struct large_body *)job;
    struct str text = buf_view(&b->body);
    if (b->is_signed)
        b->signature = signature_check(buf_view(&b->header), buf_view(&b->token), text, b->now_s);
    if (b->signature != SIGNATURE_GOOD)
        return false;
    if (b->compressed) {
        b->inflated = inflate_gzip(text, b->max, &b->plain);
        buf_free(&b->body);
        text = buf_view(&b->plain);
    }
    if (b->inflated == INFLATE_OK)
        b->object = fields_read_large(text, b->tree, &b->large, &b->fault);
    return false;
}

static void account(struct large_body *b, size_t bytes)
{
    memory_used = memory_used - b->accounted + bytes;
    b->accounted = bytes;
}

static void on_processed(struct pool_job *job, struct waiter *w)
{
    struct request *r = request_of(w);
    struct large_body *b = (struct large_body *)job;
    account(b, b->body.n + b->plain.n);
    if (r != NULL)
        pipeline_resume(r);
    h2o_mem_release_shared(job);
}

static const struct field *tree_field(const struct field *fields)
{
    while (fields != NULL && fields->name != NULL && fields->type != FIELD_TREE)
        fields++;
    return fields == NULL || fields->name == NULL ? NULL : fields;
}

/*
 * Process ${r}'s body in the thread, then resume the pipeline. ${header}: its X-Signature, or
 * empty. False: memory is short, or the large bodies of this worker would take too much.
 */
static bool start(struct request *r, size_t max, struct str header, struct str token)
{
    size_t size = r->h2o->entity.len, bytes = size;
    if (r->compressed)
        bytes += size < max / GZIP_RATIO_MAX ? size * GZIP_RATIO_MAX : max;
    if (bytes > MEMORY_MAX || memory_used > MEMORY_MAX - bytes)
        return false;
    struct large_body *b = h2o_mem_alloc_shared(&r->h2o->pool, sizeof(*b), dispose);
    *b = (struct large_body){
        .job = {.work = process, .over = on_processed},
        .tree = tree_field(r->route->fields),
        .max = max,
        .now_s = r->now_ms / 1000,
        .compressed = r->compressed,
        .is_signed = header.n > 0,
    };
    buf_add(&b->body, r->h2o->entity.base, size);
    buf_str(&b->header, header);
    buf_str(&b->token, token);
    if (!buf_ok(&b->body) || !buf_ok(&b->header) || !buf_ok(&b->token))
        return false;
    account(b, bytes);
    r->large_body = b;
    h2o_mem_addref_shared(b);
    request_run_in_pool(r, &b->job);
    return true;
}

enum step step_read_large_body(struct request *r)
{
    struct str header = {"", 0}, token;
    if (r->route->body != BODY_SYNC ||
        r->h2o->entity.len <= (r->compressed ? LARGE_PACKED_BYTES : LARGE_BYTES) ||
        !request_bearer(r, &token))
        return STEP_NEXT;
    request_header(r, "x-signature", &header);
    if (header.n == 0 && (r->scopes & SCOPE_SIGNED) != 0)
        return STEP_NEXT; /* step_check_signature refuses it */
    if (start(r, step_max_body(r->route, r->conf), header, token))
        return STEP_WAIT;
    return step_refuse(r, ERR_UNAVAILABLE);
}
