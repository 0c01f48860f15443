/*
 * A store of an older format is copied first, then brought up to date; killed anywhere, the next start goes on, and what was can be had back.
 * Format 1 is the example: the same records, lists from a sub-database "index", of which it matters only that it goes, and messages as in
 * format 2, by conversation.
 */
#include "t/00_store_kit.h"

#include "../store/extent.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define REPORTS 2300
#define TALKS 4
#define POSTS 350 /* in each, and as many answers */

static struct kit k;
static uint64_t workspace;
static char copy[32]; /* where it is kept, and how a reader refuses the store */
static char refusal[32];

/* What is in a conversation: how many messages, and a sum over their ids and texts in their order. */
static struct talk {
    struct ulid id;
    uint64_t count, sum, before; /* of those behind the second */
} talks[TALKS];

static void put(MDB_txn *txn, const char *db, unsigned flags, const void *key, size_t key_n, const void *value, size_t value_n)
{
    MDB_dbi dbi;
    MDB_val k_ = {key_n, (void *)(uintptr_t)key}, v = {value_n, (void *)(uintptr_t)value};
    ck_assert_int_eq(mdb_dbi_open(txn, db, flags, &dbi), 0);
    ck_assert_int_eq(mdb_put(txn, dbi, &k_, &v, 0), 0);
}

/*
 * Messages as format 2 had them: under 'm', conversation, id. Of the third conversation the oldest two are gone, as if its erasure was under way,
 * and of the fourth all; one is of no conversation at all.
 */
static void put_back(MDB_txn *txn, MDB_dbi widget, const MDB_val *key, const MDB_val *value)
{
    const struct message_record *r = value->mv_data;
    struct message_record_2 old = {2, r->role, r->renderer, r->json_n, r->result_at, r->result_n};
    const struct ulid of = r->conversation;
    uint8_t name[33] = {'m'};
    char to[sizeof(old) + 512];
    MDB_val k_ = {sizeof(name), name}, v = {sizeof(old) + old.json_n, to};
    if ((ulid_eq(&of, &talks[2].id) && r->place <= 2) || ulid_eq(&of, &talks[3].id))
        return;
    ck_assert_uint_le(old.json_n, 512);
    memcpy(name + 1, of.b, sizeof(of));
    memcpy(name + 17, (const uint8_t *)key->mv_data + 1, 16);
    memcpy(to, &old, sizeof(old));
    memcpy(to + sizeof(old), r + 1, old.json_n);
    ck_assert_int_eq(mdb_put(txn, widget, &k_, &v, 0), 0);
    memset(name + 1, 0xff, 16);
    if (r->place == 1 && ulid_eq(&of, &talks[0].id))
        ck_assert_int_eq(mdb_put(txn, widget, &k_, &v, 0), 0);
}

static void put_messages_back(MDB_txn *txn)
{
    MDB_dbi widget;
    MDB_cursor *cursor;
    MDB_val key = {1, "z"}, value;
    size_t moved = 0;
    ck_assert_int_eq(mdb_dbi_open(txn, "widget", 0, &widget), 0);
    ck_assert_int_eq(mdb_cursor_open(txn, widget, &cursor), 0);
    while (mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE) == 0) {
        uint8_t name[17];
        char held[1024];
        ck_assert_uint_eq(key.mv_size, sizeof(name));
        ck_assert_uint_le(value.mv_size, sizeof(held));
        memcpy(name, key.mv_data, sizeof(name));
        memcpy(held, value.mv_data, value.mv_size);
        ck_assert_int_eq(mdb_cursor_del(cursor, 0), 0);
        put_back(txn, widget, &(MDB_val){sizeof(name), name}, &(MDB_val){value.mv_size, held});
        key = (MDB_val){1, "z"};
        moved++;
    }
    mdb_cursor_close(cursor);
    ck_assert_uint_eq(moved, 2 * TALKS * POSTS);
}

/* Older formats have no parts.dat. */
static void drop_parts(MDB_txn *txn)
{
    MDB_dbi base;
    char path[128];
    ck_assert_int_eq(mdb_dbi_open(txn, "base", 0, &base), 0);
    ck_assert_int_eq(mdb_del(txn, base, &(MDB_val){2, "mp"}, NULL), 0);
    snprintf(path, sizeof(path), "%s/parts.dat", k.dir);
    ck_assert_int_eq(unlink(path), 0);
}

static void make_format(uint32_t number)
{
    const uint32_t format[7] = {number, 1};
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi list;
    ck_assert_int_eq(mdb_env_create(&env), 0);
    mdb_env_set_maxdbs(env, 8);
    mdb_env_set_mapsize(env, MAP_BYTES);
    ck_assert_int_eq(mdb_env_open(env, k.dir, 0, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    put(txn, "base", 0, "mf", 2, format, sizeof(format));
    drop_parts(txn);
    if (number < 3)
        put_messages_back(txn);
    if (number == 1) {
        put(txn, "index", MDB_CREATE, "x", 1, "y", 1);
        ck_assert_int_eq(mdb_dbi_open(txn, "list", 0, &list), 0);
        ck_assert_int_eq(mdb_drop(txn, list, 1), 0);
    }
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

static void fill(void)
{
    struct store_txn *t;
    struct store_answer a;
    char url[64];
    workspace = kit_workspace(&k, "acme");
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (unsigned i = 0; i < REPORTS; i++) {
        snprintf(url, sizeof(url), "https://a.com/%u", i);
        struct store_change c = kit_create_change(workspace, url, i % 2 ? "a.com" : "b.com");
        store_apply(t, &c, k.now, &a);
        ck_status(a.status, STORE_OK);
        c = kit_done_change(a.id, 1, (int)(i % 101));
        store_apply(t, &c, k.now + i, &a);
    }
    ck_status(store_commit(t), STORE_OK);
}

/* Turn by turn, so that they lie among each other. */
static void fill_talks(void)
{
    struct store_change c[TALKS];
    struct store_txn *t;
    struct store_answer a = kit_apply(&k, &(struct store_change){.kind = CHANGE_AGENT_CREATE, .workspace = workspace, .name = STR("Shop"), .data = STR("{}")});
    const struct ulid agent = a.first;
    ck_status(a.status, STORE_OK);
    for (int i = 0; i < TALKS; i++) {
        char secret[32] = {(char)('0' + i)};
        a = kit_apply(&k, &(struct store_change){.kind = CHANGE_VISITOR_INIT, .agent = agent, .match = {secret, sizeof(secret)}});
        ck_status(a.status, STORE_OK);
        c[i] = (struct store_change){.kind = CHANGE_MESSAGE_POST, .agent = agent, .visitor = a.second, .conversation = a.first, .answer = STR("nothing")};
        talks[i].id = a.first;
    }
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (int i = 0; i < TALKS * POSTS; i++) {
        char text[32];
        snprintf(text, sizeof(text), "post %d", i);
        c[i % TALKS].text = str_of(text);
        store_apply(t, &c[i % TALKS], k.now, &a);
        ck_status(a.status, STORE_OK);
    }
    ck_status(store_commit(t), STORE_OK);
}

static void add_message(void *arg, enum store_status status, const struct store_kept_message *m)
{
    struct talk *talk = arg;
    if (status != STORE_OK || m == NULL)
        return;
    for (size_t i = 0; talk->count >= talk->before && i < m->json.n + sizeof(m->id); i++)
        talk->sum = talk->sum * 31 + (i < m->json.n ? (uint8_t)m->json.p[i] : m->id.b[i - m->json.n]);
    talk->count++;
}

static struct talk talk_of(struct store *s, int i, bool newest, uint64_t before)
{
    struct talk talk = {.id = talks[i].id, .before = before};
    const struct store_messages_query q = {.conversation = talk.id, .limit = UINT32_MAX, .newest = newest};
    store_message_each(s, &q, add_message, &talk);
    store_read_end(s);
    return talk;
}

/* ---- format 3: long parts, and results, in data.mdb; one row each ---- */

#define RESULTS_BYTES 20000
#define DOCUMENTS 40

static struct ulid agent;

static void put_documents(uint8_t version)
{
    struct buf rows = {0};
    for (uint64_t number = 1; number <= DOCUMENTS; number++) {
        char text[8000];
        uint8_t hash[16] = {(uint8_t)number, version};
        size_t n = 0;
        for (uint64_t i = 0; i < 900; i++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, " w%llu", (unsigned long long)(i * number % 5000));
        const struct store_synced d = {.title = STR("A document"), .text = {text, n}, .url = STR("https://a.com/"), .price = MONEY_NONE};
        sync_pack(&rows, SYNC_UPSERT, number, hash, 0, &d);
    }
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_SYNC, .workspace = workspace, .agent = agent, .name = STR("a.com"), .status = SYNCED_POST,
                                                    .text = STR(""), .data = buf_view(&rows)}),
              STORE_OK);
    buf_free(&rows);
}

static void fill_parts(void)
{
    static char json[RESULTS_BYTES];
    struct store_txn *t;
    struct key key;
    memset(json, 'r', sizeof(json));
    agent = kit_apply(&k, &(struct store_change){.kind = CHANGE_AGENT_CREATE, .workspace = workspace, .name = STR("Texts"), .data = STR("{}")}).first;
    put_documents(1);
    kit_purge(&k, 50);
    ck_status(store_begin(k.s, &t), STORE_OK);
    key_id(&key, SPACE_RESULT, 7);
    txn_put(t, SPACE_RESULT, &key, json, sizeof(json));
    ck_status(store_commit(t), STORE_OK);
}

/* How many rows of the space hold a part of some pages, and how many say where it is. */
static size_t long_parts(enum space space, size_t *elsewhere)
{
    MDB_txn *txn;
    struct walk w = {0};
    size_t count = 0;
    *elsewhere = 0;
    store_read_end(k.s);
    ck_status(store_snapshot(k.s, &txn), STORE_OK);
    enum store_status status = walk_begin(k.s, txn, &w, space);
    for (; status == STORE_OK; status = walk_next(&w)) {
        count += w.v.mv_size > 4096;
        *elsewhere += w.v.mv_size == 17;
    }
    walk_end(&w);
    store_read_end(k.s);
    return count;
}

static void add_hits(void *arg, enum store_status status, const struct store_hit *hits, size_t count)
{
    ck_assert(status == STORE_OK || status == STORE_NOT_FOUND);
    for (size_t i = 0; i < count; i++)
        *(uint64_t *)arg = *(uint64_t *)arg * 31 + hits[i].document.id;
}

/* Of every order, of searches by letters and by words, and of the results that are long. */
static uint64_t answers(void)
{
    static const char *const needles[] = {"", "/12", "B.com"};
    uint64_t sum = 1;
    for (unsigned i = 0; i < 12; i++) {
        struct store_list_query q = {.workspace = workspace, .sort = i % 4, .ascending = i % 2, .search = str_of(needles[i / 4]), .page = 2, .per_page = 300};
        struct kit_list l = kit_reports(k.s, &q);
        ck_status(l.status, STORE_OK);
        sum = sum * 31 + l.total;
        for (size_t j = 0; j < l.count; j++)
            sum = sum * 31 + l.reports[j].id;
        char words[16];
        snprintf(words, sizeof(words), "w%u w%u", i * 40, i * 11);
        store_find(k.s, &agent, str_of(words), 8, 80, add_hits, &sum);
    }
    struct store_report r;
    ck_status(kit_report(k.s, workspace, 7, &r), STORE_OK);
    sum = sum * 31 + r.results.n;
    store_read_end(k.s);
    return sum;
}

static struct {
    uint64_t answers;
    size_t parts, texts;
} was;

static void note_before(void)
{
    size_t elsewhere;
    was.answers = answers();
    was.parts = long_parts(SPACE_PART, &elsewhere);
    was.texts = long_parts(SPACE_TEXT_PART, &elsewhere);
    ck_assert(was.parts > 4 && was.texts > 0 && elsewhere == 0);
}

static void setup_of(uint32_t format)
{
    snprintf(copy, sizeof(copy), "format-%u-2026-05-05", format); /* of NOW */
    snprintf(refusal, sizeof(refusal), "old format %u", format);
    kit_open(&k);
    fill();
    fill_talks();
    if (format == 3)
        fill_parts();
    if (format == 3)
        note_before();
    for (int i = 0; i < TALKS; i++) {
        talks[i] = talk_of(k.s, i, false, i == 2 && format < 3 ? 2 : 0);
        ck_assert_uint_eq(talks[i].count, 2 * POSTS);
    }
    if (format < 3) {
        talks[2].count -= 2;
        talks[3].count = talks[3].sum = 0;
    }
    store_close(k.s);
    k.s = NULL;
    make_format(format);
}

static void setup(void)
{
    setup_of(1);
}

static void setup_2(void)
{
    setup_of(2);
}

static void setup_3(void)
{
    kit_segment_rows = 700;
    kit_log_entries = 300;
    kit_part_bytes = UINT32_MAX;
    setup_of(3);
    kit_part_bytes = 0; /* as usual */
}

static void teardown(void)
{
    kit_close(&k);
    kit_segment_rows = kit_log_entries = kit_part_bytes = 0;
}

/* ---- what is told, and who dies of it ---- */

static struct {
    unsigned calls, stages, last; /* dies at the last call */
    bool stop;
    char said[4][512];
} told;

static bool call(void)
{
    if (++told.calls == told.last && told.stop)
        return false;
    if (told.calls == told.last)
        raise(SIGKILL);
    return true;
}

static bool on_progress(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    kit_assert(done <= total);
    return call();
}

static void on_stage(void *arg, const char *what)
{
    (void)arg;
    if (told.stages < 4)
        snprintf(told.said[told.stages++], sizeof(told.said[0]), "%s", what);
    call();
}

static enum store_status open_in(const char *dir, bool without_copy, struct store **out, char *why, size_t why_size)
{
    const struct store_options o = {.dir = dir, .map_size = MAP_BYTES, .max_readers = 16, .mode = STORE_WRITE, .renderer = &kit_renderer,
                                    .without_copy = without_copy, .now_ms = NOW, .progress = on_progress, .stage = on_stage,
                                    .segment_rows = 700, .log_entries = 300, .part_bytes = kit_part_bytes};
    memset(told.said, 0, sizeof(told.said));
    told.calls = told.stages = 0;
    return store_open(&o, out, why, why_size);
}

static void open_here(bool without_copy)
{
    char why[1024];
    enum store_status status = open_in(k.dir, without_copy, &k.s, why, sizeof(why));
    ck_assert_msg(status == STORE_OK, "%s", why);
}

static void expect_whole(struct store *s)
{
    struct store_list_query q = {.workspace = workspace, .sort = REPORT_BY_SCORE, .search = STR("A.com"), .page = 1, .per_page = 50};
    ck_assert_uint_eq(kit_reports(s, &q).total, REPORTS);
    store_read_end(s);
    for (int i = 0; i < TALKS; i++) {
        struct talk talk = talk_of(s, i, false, 0);
        ck_assert_uint_eq(talk.count, talks[i].count);
        ck_assert_uint_eq(talk.sum, talks[i].sum);
        ck_assert_uint_eq(talk_of(s, i, true, 0).count, talks[i].count);
    }
    kit_check_clean(s);
}

static bool there(const char *name)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s%s", k.dir, copy, name);
    return access(path, F_OK) == 0;
}

static void expect_refused(const char *dir, enum store_mode mode, const char *part)
{
    char why[512] = "";
    struct store *s;
    const struct store_options o = {.dir = dir, .mode = mode, .renderer = &kit_renderer};
    ck_assert_int_ne(store_open(&o, &s, why, sizeof(why)), STORE_OK);
    ck_assert_msg(strstr(why, part) != NULL, "%s", why);
}

/* The copy is as the store was, and comes back by a restore; it is left alone by that. */
static void expect_copy_restores(void)
{
    char from[128], to[64], why[1024] = "";
    struct store *s;
    snprintf(from, sizeof(from), "%s/%s", k.dir, copy);
    ck_assert(there("/data.mdb") && !there("/data.mdb.part"));
    kit_dir(to);
    ck_assert_msg(store_restore(from, to, NULL, NULL, why, sizeof(why)) == STORE_OK, "%s", why);
    expect_refused(to, STORE_READ, refusal);
    ck_assert_msg(open_in(to, true, &s, why, sizeof(why)) == STORE_OK, "%s", why);
    expect_whole(s);
    store_close(s);
    kit_remove(to);
}

/* ---- */

START_TEST(a_store_of_an_older_format_is_copied_first_by_format_and_day)
{
    open_here(false);
    ck_assert_uint_eq(told.stages, 4);
    ck_assert_msg(strstr(told.said[0], "copying the store of format 1 to ") && strstr(told.said[0], copy), "%s", told.said[0]);
    ck_assert_str_eq(told.said[1], "bringing the store from format 1 to 2");
    ck_assert_str_eq(told.said[2], "bringing the store from format 2 to 3");
    ck_assert_str_eq(told.said[3], "bringing the store from format 3 to 4");
    expect_whole(k.s);
    expect_copy_restores();
    store_close(k.s);
    open_here(false);
    ck_assert_uint_eq(told.calls, 0); /* that was once */
}
END_TEST

START_TEST(a_store_of_format_2_takes_the_last_steps_alone)
{
    open_here(false);
    ck_assert_uint_eq(told.stages, 3);
    ck_assert(there("/data.mdb"));
    ck_assert_str_eq(told.said[1], "bringing the store from format 2 to 3");
    ck_assert_str_eq(told.said[2], "bringing the store from format 3 to 4");
    expect_whole(k.s);
}
END_TEST

/* Every report graded anew, and every document put anew, so that all there is to merge is merged. */
static void go_on(void)
{
    struct store_txn *t;
    struct store_answer a;
    ck_status(store_begin(k.s, &t), STORE_OK);
    for (uint64_t id = 1; id <= REPORTS; id++) {
        struct store_change c = {.kind = CHANGE_REPORT_UPDATE, .workspace = workspace, .id = id, .fields = CHANGE_REGENERATE};
        store_apply(t, &c, k.now, &a);
        c = kit_done_change(id, 2, (int)(id % 101));
        store_apply(t, &c, k.now + 60000, &a);
        ck_status(a.status, STORE_OK);
    }
    ck_status(store_commit(t), STORE_OK);
    for (uint8_t version = 2; version < 6; version++)
        put_documents(version);
    kit_purge(&k, 50);
}

START_TEST(a_store_of_format_3_answers_the_same_and_its_long_parts_give_way_to_those_in_parts_dat)
{
    size_t elsewhere, texts_elsewhere;
    open_here(false);
    ck_assert_uint_eq(told.stages, 2);
    ck_assert_str_eq(told.said[1], "bringing the store from format 3 to 4");
    ck_assert_uint_eq(long_parts(SPACE_PART, &elsewhere), was.parts);
    ck_assert_uint_eq(long_parts(SPACE_TEXT_PART, &texts_elsewhere), was.texts);
    ck_assert_uint_eq(elsewhere + texts_elsewhere, 0);
    ck_assert_uint_eq(answers(), was.answers);
    expect_whole(k.s);
    go_on();
    ck_assert_uint_lt(long_parts(SPACE_PART, &elsewhere), was.parts);
    ck_assert_uint_lt(long_parts(SPACE_TEXT_PART, &texts_elsewhere), was.texts);
    ck_assert_uint_gt(elsewhere, 0);
    ck_assert_uint_gt(texts_elsewhere, 0);
    expect_whole(k.s);
    uint64_t now = answers();
    store_close(k.s);
    open_here(false);
    ck_assert_uint_eq(told.calls, 0);
    ck_assert_uint_eq(answers(), now);
    expect_copy_restores();
}
END_TEST

static void tamper(const void *key, size_t key_n, bool put_back)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi widget;
    MDB_val name = {key_n, (void *)(uintptr_t)key};
    ck_assert_int_eq(mdb_env_create(&env), 0);
    mdb_env_set_maxdbs(env, 8);
    mdb_env_set_mapsize(env, MAP_BYTES);
    ck_assert_int_eq(mdb_env_open(env, k.dir, 0, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    if (put_back)
        ck_assert_int_eq(mdb_dbi_open(txn, "widget", 0, &widget), 0);
    if (put_back)
        ck_assert_int_eq(mdb_del(txn, widget, &name, NULL), 0);
    else
        put(txn, "widget", 0, key, key_n, "?", 1);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

/* Columns: the beginning of the key of what is no conversation, and of what is no message of the first one; its size. */
static const struct {
    char tag;
    size_t size;
} damages[] = {{'c', 21}, {'m', 33}, {'m', 20}};

/* Walks end at what is damaged, and what they did not come to is there for the start after it. */
START_TEST(what_is_damaged_stops_it_and_takes_no_message_along)
{
    uint8_t key[33];
    memset(key, 1, sizeof(key)); /* before the first of all */
    key[0] = (uint8_t)damages[_i].tag;
    if (damages[_i].tag == 'm')
        memcpy(key + 1, &talks[0].id, sizeof(talks[0].id));
    tamper(key, damages[_i].size, false);
    for (int again = 0; again < 2; again++) {
        char why[1024] = "", lies[256];
        snprintf(lies, sizeof(lies), "restore the copy that %s has of it", k.dir);
        ck_status(open_in(k.dir, false, &k.s, why, sizeof(why)), STORE_CORRUPT);
        ck_assert_msg(strstr(why, lies) != NULL, "%s", why);
    }
    k.s = NULL;
    tamper(key, damages[_i].size, true);
    open_here(false);
    expect_whole(k.s);
}
END_TEST

START_TEST(without_a_copy_if_so_told)
{
    open_here(true);
    ck_assert_uint_eq(told.stages, 3);
    ck_assert(!there(""));
    expect_whole(k.s);
}
END_TEST

static bool is_killed(unsigned at)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        kit_child();
        told.last = at;
        open_here(false);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

START_TEST(killed_anywhere_the_next_start_goes_on)
{
    unsigned at = (unsigned)_i + 1;
    bool killed = is_killed(at);
    if (killed && !there("/data.mdb"))
        expect_refused(k.dir, STORE_READ, refusal);
    bool half_way = killed && there("/data.mdb");
    if (half_way) {
        expect_refused(k.dir, STORE_READ, "old format "); /* that, or one on the way */
        is_killed(2); /* and once more on the way */
    }
    open_here(false);
    expect_whole(k.s);
    expect_copy_restores();
}
END_TEST

START_TEST(half_way_no_second_copy_is_made)
{
    unsigned calls = 1;
    struct stat before, after;
    char path[256];
    while (is_killed(calls) && !there("/data.mdb"))
        calls++;
    snprintf(path, sizeof(path), "%s/%s/data.mdb", k.dir, copy);
    ck_assert_int_eq(stat(path, &before), 0);
    open_here(false);
    ck_assert_uint_eq(told.stages, 3);
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_uint_eq(before.st_ino, after.st_ino);
    expect_whole(k.s);
}
END_TEST

static size_t slurp(char *to, size_t size)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/data.mdb", k.dir);
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, to, size);
    close(fd);
    ck_assert(n > 0 && (size_t)n < size);
    return (size_t)n;
}

START_TEST(stopped_while_it_copies_it_leaves_all_as_it_was)
{
    static char before[16 << 20], after[16 << 20];
    char why[1024] = "";
    size_t n = slurp(before, sizeof(before));
    told.last = 3;
    told.stop = true;
    enum store_status status = open_in(k.dir, false, &k.s, why, sizeof(why));
    if (status == STORE_OK) /* the disk shares blocks: there was nothing to stop */
        return;
    ck_status(status, STORE_IO);
    ck_assert_msg(strstr(why, "stopped") != NULL, "%s", why);
    ck_assert(!there(""));
    ck_assert_uint_eq(slurp(after, sizeof(after)), n);
    ck_assert(memcmp(before, after, n) == 0);
    told.last = 0;
    open_here(false);
    expect_whole(k.s);
}
END_TEST

/* ---- a disk with room for the store and its upgrade, but not for a copy ---- */

static uint64_t used_blocks(const char *path)
{
    struct stat st;
    kit_assert(stat(path, &st) == 0);
    return (uint64_t)st.st_blocks * 512;
}

static int on_a_small_disk(void)
{
    char source[256], command[1024], options[64], why[1024] = "";
    struct store *s;
    /* without the zeros that lie ahead of it */
    snprintf(source, sizeof(source), "%s/sparse.mdb", k.dir);
    snprintf(command, sizeof(command), "cp --sparse=always %s/data.mdb %s", k.dir, source);
    kit_assert(system(command) == 0);
    snprintf(options, sizeof(options), "size=%llu", (unsigned long long)(used_blocks(source) + used_blocks(source) / 2));
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || mount("tmpfs", "/mnt", "tmpfs", 0, options) != 0)
        return 77;
    snprintf(command, sizeof(command), "cp --sparse=always %s /mnt/data.mdb", source);
    kit_assert(system(command) == 0);
    kit_assert(open_in("/mnt", false, &s, why, sizeof(why)) == STORE_FULL);
    if (strstr(why, "no room") == NULL || strstr(why, "copy_before_upgrade") == NULL)
        kit_fail(__FILE__, __LINE__, "the sentence", why);
    snprintf(command, sizeof(command), "/mnt/%s", copy);
    kit_assert(access(command, F_OK) != 0);
    if (open_in("/mnt", true, &s, why, sizeof(why)) != STORE_OK)
        kit_fail(__FILE__, __LINE__, "without a copy", why);
    expect_whole(s);
    store_close(s);
    return 0;
}

START_TEST(without_room_for_the_copy_it_is_refused_with_a_sentence)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        kit_child();
        _exit(on_a_small_disk());
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        fprintf(stderr, "no disk could be mounted here: not tested\n");
    else
        ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store upgrade");
    TCase *tc = tcase_create("upgrade");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_store_of_an_older_format_is_copied_first_by_format_and_day);
    tcase_add_test(tc, without_a_copy_if_so_told);
    tcase_add_loop_test(tc, killed_anywhere_the_next_start_goes_on, 0, 24);
    tcase_add_test(tc, half_way_no_second_copy_is_made);
    tcase_add_test(tc, stopped_while_it_copies_it_leaves_all_as_it_was);
    tcase_add_test(tc, without_room_for_the_copy_it_is_refused_with_a_sentence);
    suite_add_tcase(suite, tc);
    tc = tcase_create("format 2");
    tcase_add_checked_fixture(tc, setup_2, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_store_of_format_2_takes_the_last_steps_alone);
    tcase_add_loop_test(tc, what_is_damaged_stops_it_and_takes_no_message_along, 0, (int)(sizeof(damages) / sizeof(*damages)));
    tcase_add_loop_test(tc, killed_anywhere_the_next_start_goes_on, 0, 24);
    suite_add_tcase(suite, tc);
    tc = tcase_create("format 3");
    tcase_add_checked_fixture(tc, setup_3, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, a_store_of_format_3_answers_the_same_and_its_long_parts_give_way_to_those_in_parts_dat);
    tcase_add_loop_test(tc, killed_anywhere_the_next_start_goes_on, 0, 8);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
