#include "widget_parts.h"

#include <errno.h>

/* Rendering again what belongs to agents: the widget's part of render.c, by the same rules. */
#define LOOKED 500              /* records a step looks at */
#define BYTES ((size_t)1 << 20) /* and of how many bytes, about */

/* ---- as it is read ---- */

enum store_status render_read_agent(struct store *s, struct store_agent *a)
{
    struct buf json = {0};
    if (!render_is_stale(s, a->renderer))
        return STORE_OK;
    s->renderer->widget.agent(a, &json);
    return render_keep(s, &json, &a->json);
}

enum store_status render_read_conversation(struct store *s, struct store_conversation *c)
{
    struct buf json = {0};
    if (!render_is_stale(s, c->renderer))
        return STORE_OK;
    s->renderer->widget.conversation(c, &json);
    return render_keep(s, &json, &c->json);
}

enum store_status render_read_message(struct store *s, struct store_kept_message *m)
{
    struct buf json = {0};
    size_t at = 0, n = 0;
    if (!render_is_stale(s, m->renderer))
        return STORE_OK;
    if (!s->renderer->widget.message_again(m->role, m->json, &json, &at, &n)) {
        buf_free(&json);
        return STORE_OK;
    }
    enum store_status status = render_keep(s, &json, &m->json);
    if (status == STORE_OK)
        m->result = (struct str){m->json.p + at, n};
    return status;
}

/* ---- in the background ---- */

/* Columns, in the order of the passes: which records, what renders one again. A pass is known by its place: new ones go to the end. */
static const struct {
    enum space space;
    again_fn *again;
} passes[] = {
    {SPACE_AGENT, agent_again},     {SPACE_CONVERSATION, conversation_again},
    {SPACE_MESSAGE, message_again}, {SPACE_LEAD, lead_again},
    {SPACE_EVENT, event_again},     {SPACE_RATING, rating_again},
};
#define PASSES (sizeof(passes) / sizeof(*passes))

struct place {
    uint8_t n, b[sizeof(((struct format_record *)NULL)->widget_after)];
};

/* The next records of ${space}; how many. */
static size_t gather(struct store_txn *t, enum space space, const struct format_record *f, struct place *places)
{
    struct walk w = {0};
    struct key from = {.n = 0};
    size_t count = 0, bytes = 0;
    key_space(&w.prefix, space);
    key_bytes(&from, w.prefix.b, w.prefix.n);
    if (f->widget_after_n > 0) {
        from.n = 0;
        key_bytes(&from, f->widget_after, f->widget_after_n);
    }
    enum store_status status = walk_from(t->s, t->mdb, &w, DB_WIDGET, &from);
    for (; status == STORE_OK && count < LOOKED && bytes < BYTES; status = walk_next(&w)) {
        if (w.k.mv_size > sizeof(places->b)) {
            txn_fail(t, 0, "a key of the widget's records");
            break;
        }
        if (w.k.mv_size == f->widget_after_n && memcmp(w.k.mv_data, f->widget_after, w.k.mv_size) == 0)
            continue;
        places[count].n = (uint8_t)w.k.mv_size;
        memcpy(places[count++].b, w.k.mv_data, w.k.mv_size);
        bytes += w.v.mv_size;
    }
    walk_end(&w);
    return count;
}

static void again(struct store_txn *t, size_t pass, const struct place *place)
{
    struct key k = {.n = 0};
    MDB_val v;
    key_bytes(&k, place->b, place->n);
    if (txn_get(t, passes[pass].space, &k, &v) != STORE_OK)
        return;
    buf_reset(&t->copy);
    buf_add(&t->copy, v.mv_data, v.mv_size);
    if (buf_ok(&t->copy))
        passes[pass].again(t, &k, (MDB_val){t->copy.n, t->copy.p});
    else
        txn_fail(t, ENOMEM, "hold a record");
}

size_t render_widget_slice(struct store_txn *t, struct format_record *f)
{
    struct place places[LOOKED];
    for (; f->widget_pass < PASSES && t->error == STORE_OK; f->widget_pass++, f->widget_after_n = 0) {
        size_t count = gather(t, passes[f->widget_pass].space, f, places);
        size_t done = 0;
        for (bool paused = false; done < count && t->error == STORE_OK && !paused; paused = txn_paused(t))
            again(t, f->widget_pass, &places[done++]);
        if (done == 0)
            continue;
        f->widget_after_n = places[done - 1].n;
        memcpy(f->widget_after, places[done - 1].b, places[done - 1].n);
        return done;
    }
    return 0;
}
