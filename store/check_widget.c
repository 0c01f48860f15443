#include "check_parts.h"
#include "widget_parts.h"

/* ---- of store_check: the widget's records ---- */

static const char *id_text(const struct ulid *u)
{
    static char text[ULID_TEXT + 1];
    ulid_text(u, text);
    return text;
}

static bool workspace_there(struct check *c, uint64_t workspace)
{
    struct key k;
    MDB_val v;
    key_id(&k, SPACE_WORKSPACE, workspace);
    return check_get(c, SPACE_WORKSPACE, &k, &v);
}

static bool is_listed(struct check *c, enum listed_kind kind, const struct ulid *scope, unsigned class, const struct ulid *id)
{
    struct key k;
    MDB_val v;
    listed_prefix(&k, kind, scope, class);
    key_ulid(&k, id);
    return check_get(c, SPACE_LISTED, &k, &v);
}

/* No id may be above the last one given: the next would not be above all there are. */
static void check_id(struct check *c, const char *what, const struct ulid *id)
{
    struct key k;
    MDB_val v;
    key_space(&k, SPACE_META);
    key_bytes(&k, "u", 1);
    if (!check_get(c, SPACE_META, &k, &v) || v.mv_size != ULID_BYTES || memcmp(id->b, v.mv_data, ULID_BYTES) > 0)
        check_say(c, "%s %s has an id that was never given", what, id_text(id));
}

static bool own_key(const struct walk *w, const struct ulid *id)
{
    return w->k.mv_size == 1 + ULID_BYTES && memcmp((const uint8_t *)w->k.mv_data + 1, id->b, ULID_BYTES) == 0;
}

void check_agent(struct check *c, const struct walk *w)
{
    struct store_agent a;
    if (!schema_read_agent(w->v, &a) || !own_key(w, &a.id)) {
        check_say(c, "an agent's record is malformed");
        return;
    }
    struct ulid scope = scope_of_workspace(a.workspace);
    check_id(c, "agent", &a.id);
    if (!workspace_there(c, a.workspace))
        check_say(c, "agent %s belongs to workspace %llu, which is not there", id_text(&a.id), (unsigned long long)a.workspace);
    if (!is_listed(c, LISTED_AGENT, &scope, 0, &a.id))
        check_say(c, "agent %s is not in its workspace's list", id_text(&a.id));
}

static const enum space space_of[LISTED_KINDS] = {[LISTED_AGENT] = SPACE_AGENT};

void check_listed_row(struct check *c, const struct walk *w)
{
    const uint8_t *key = w->k.mv_data;
    struct ulid id;
    struct key k;
    MDB_val v;
    if (!listed_id(w, &id) || key[1] == 0 || key[1] >= LISTED_KINDS) {
        check_say(c, "an entry of the widget's lists is malformed");
        return;
    }
    key_of(&k, space_of[key[1]], &id);
    if (!check_get(c, space_of[key[1]], &k, &v))
        check_say(c, "a list of the widget's records names %s, which is not there", id_text(&id));
}

void check_erasing(struct check *c, const struct walk *w)
{
    if (w->k.mv_size != 1 + ULID_BYTES)
        check_say(c, "a row of what is being erased is malformed");
}
