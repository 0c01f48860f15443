#include "internal.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

/*
 * Rendering again: what is served lies rendered in the store, so a renderer of another version finds what that of before made. Until the
 * background has rendered it anew, a slice of it in each transaction of the upkeep, it is rendered as it is read: so every answer is this
 * version's from the first moment, and its ETag, which names the version, is true. How far the background is lies in the store and is
 * committed with each slice, so that it goes on after a restart; what was written meanwhile is of this version already and passed over.
 */
#define SLICE 500 /* records a step looks at */

/* ---- as it is read ---- */

/* one rendered value, for as long as the snapshot */
struct fresh {
    struct fresh *next;
    char bytes[];
};

enum store_status render_keep(struct store *s, struct buf *json, struct str *out)
{
    struct fresh *f = buf_ok(json) ? malloc(sizeof(*f) + json->n) : NULL;
    if (f == NULL) {
        buf_free(json);
        return store_fail(s, ENOMEM, "render a record");
    }
    if (json->n != 0)
        memcpy(f->bytes, json->p, json->n);
    f->next = s->fresh;
    s->fresh = f;
    *out = (struct str){f->bytes, json->n};
    buf_free(json);
    return STORE_OK;
}

bool render_is_stale(const struct store *s, uint32_t renderer)
{
    return s->renderer != NULL && renderer != s->renderer->version;
}

enum store_status render_read_report(struct store *s, struct store_report *r)
{
    struct buf json = {0};
    if (!render_is_stale(s, r->renderer))
        return STORE_OK;
    s->renderer->report(r, &json, &r->link_at, &r->results_at);
    return render_keep(s, &json, &r->json);
}

enum store_status render_read_project(struct store *s, struct store_project *p)
{
    struct buf json = {0};
    if (!render_is_stale(s, p->renderer))
        return STORE_OK;
    s->renderer->project(p, &json);
    return render_keep(s, &json, &p->json);
}

void render_forget(struct store *s)
{
    while (s->fresh != NULL) {
        struct fresh *f = s->fresh;
        s->fresh = f->next;
        free(f);
    }
}

/* ---- in the background ---- */

static void render_report(struct store_txn *t, uint64_t id)
{
    struct store_report r;
    if (report_load(t, id, &r) != STORE_OK)
        txn_fail(t, 0, "a report's record");
    else if (render_is_stale(t->s, r.renderer))
        report_write(t, &r);
}

/* its version and its times stay */
static void render_project(struct store_txn *t, uint64_t id)
{
    struct cached *p = txn_project(t, id);
    if (p != NULL && render_is_stale(t->s, p->project.renderer))
        project_write(t, p);
}

/* Columns of a pass, in its order: which records, how far it is, what a step does with one. */
static const struct {
    enum space space;
    size_t after;
    void (*render)(struct store_txn *t, uint64_t id);
} passes[] = {
    {SPACE_REPORT, offsetof(struct format_record, rendered_reports), render_report},
    {SPACE_PROJECT, offsetof(struct format_record, rendered_projects), render_project},
};
#define PASSES (sizeof(passes) / sizeof(*passes))

/* Some records of the first kind that has any left; how many. */
static size_t render_slice(struct store_txn *t, struct format_record *f)
{
    uint64_t ids[SLICE], after;
    for (size_t pass = 0; pass < PASSES; pass++) {
        char *at = (char *)f + passes[pass].after;
        memcpy(&after, at, sizeof(after));
        size_t count = record_ids(t, passes[pass].space, after, SLICE, ids);
        if (count == 0)
            continue;
        size_t done = 0;
        for (bool paused = false; done < count && t->error == STORE_OK && !paused; paused = txn_paused(t))
            passes[pass].render(t, ids[done++]);
        memcpy(at, &ids[done - 1], sizeof(after));
        return done;
    }
    return 0;
}

/* The pass for this renderer: where it stopped, or one that begins. One of another version that stopped half-way is as good as none. */
static enum store_status pass_read(struct store *s, MDB_txn *txn, struct format_record *f)
{
    uint32_t version = s->renderer->version;
    enum store_status status = format_read(s, txn, f);
    if (status == STORE_OK && f->rendering != version && (f->rendering != 0 || f->renderer != version)) {
        f->rendering = version;
        f->rendered_reports = f->rendered_projects = 0;
        f->widget_pass = f->widget_after_n = 0;
    }
    return status;
}

bool render_step(struct store_txn *t)
{
    struct format_record f;
    struct store *s = t->s;
    if (s->rendered || t->error != STORE_OK || txn_upkeep_rests(t))
        return false;
    if (pass_read(s, t->mdb, &f) != STORE_OK) {
        txn_fail(t, 0, "the record of the store's format");
        return false;
    }
    if (f.rendering == 0) {
        s->rendered = true;
        return false;
    }
    t->upkept = true;
    if (render_slice(t, &f) == 0 && render_widget_slice(t, &f) == 0) {
        f.renderer = f.rendering;
        f.rendering = 0;
    }
    format_write(t, &f);
    return true;
}

bool render_progress(struct store *s, MDB_txn *txn, uint64_t *after)
{
    struct format_record f;
    if (s->rendered || s->renderer == NULL || pass_read(s, txn, &f) != STORE_OK || f.rendering == 0)
        return false;
    *after = f.rendered_reports;
    return true;
}
