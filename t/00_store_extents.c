/*
 * Parts of indexes beside data.mdb: no page of parts.dat is written while a state that may still be read names it, what is given up comes back,
 * and a file that does not belong is told.
 */
#include "t/00_store_kit.h"

#include "../store/extent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

static struct kit k;
static char path[128]; /* of parts.dat */

static void setup(void)
{
    kit_part_bytes = 1;
    kit_open(&k);
    snprintf(path, sizeof(path), "%s/parts.dat", k.dir);
}

static void teardown(void)
{
    kit_close(&k);
    kit_segment_rows = kit_chunk_shift = kit_log_entries = kit_part_bytes = 0;
}

/* Of whole pages. */
static uint64_t file_bytes(void)
{
    struct stat st;
    kit_assert(stat(path, &st) == 0);
    return ((uint64_t)st.st_size + PAGE - 1) / PAGE * PAGE;
}

/*
 * ---- parts of the tests' own: a number's, of a workspace that is not there, or, since it is no
 * number, of one that no manifest can deny ----
 */

static enum space part_key(struct key *key, uint64_t number)
{
    key_space(key, SPACE_PART);
    if (number % 2)
        key_u64(key, 77);
    else
        key_bytes(key, "0123456789abcdef", 16);
    key_u64(key, number);
    return SPACE_PART;
}

static char bytes[64 << 10];

static struct str content(uint64_t seed, size_t n)
{
    kit_assert(n <= sizeof(bytes));
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(seed * 37 + i + i / PAGE * 11);
    return (struct str){bytes, n};
}

static struct store_txn *begin(void)
{
    struct store_txn *t;
    ck_status(store_begin(k.s, &t), STORE_OK);
    return t;
}

static void put(struct store_txn *t, uint64_t number, uint64_t seed, size_t n)
{
    struct key key;
    enum space space = part_key(&key, number);
    struct str all = content(seed, n);
    const struct str pieces[] = {{all.p, n / 3}, {NULL, 0}, {all.p + n / 3, n - n / 3}};
    extent_put(t, space, &key, pieces, 3);
    ck_status(store_txn_error(t), STORE_OK);
}

static void del(struct store_txn *t, uint64_t number)
{
    struct key key;
    enum space space = part_key(&key, number);
    txn_del(t, space, &key);
    ck_status(store_txn_error(t), STORE_OK);
}

static void commit(struct store_txn *t)
{
    ck_status(store_commit(t), STORE_OK);
}

static void expect(MDB_txn *txn, uint64_t number, uint64_t seed, size_t n)
{
    struct key key;
    MDB_val v;
    enum space space = part_key(&key, number);
    enum store_status status = extent_get(k.s, txn, space, &key, &v);
    if (n == 0) {
        ck_status(status, STORE_NOT_FOUND);
        return;
    }
    ck_status(status, STORE_OK);
    kit_assert(v.mv_size == n);
    kit_assert(memcmp(v.mv_data, content(seed, n).p, n) == 0);
}

static MDB_txn *look(void)
{
    MDB_txn *txn;
    kit_assert(mdb_txn_begin(k.s->env, NULL, MDB_RDONLY, &txn) == 0);
    return txn;
}

#define ROWS 512

struct rows {
    size_t count;
    struct row {
        uint64_t page, pages, number; /* of the last number in the key */
    } row[ROWS];
};

static bool note(void *arg, const struct extent_at *at)
{
    struct rows *rows = arg;
    uint64_t number = 0;
    const uint8_t *from = at->row->k.mv_data, *end = from + at->row->k.mv_size;
    kit_assert(rows->count < ROWS);
    const bool even = from[1] == '0';
    for (from += 1 + (even ? 16 : 0); from < end;) {
        uint64_t last;
        kit_assert(key_read_u64(&from, end, &last));
        number = number * 1000003 + last;
    }
    kit_assert(at->at % PAGE == 0);
    rows->row[rows->count++] =
        (struct row){at->at / PAGE, (at->bytes + PAGE - 1) / PAGE, number << 1 | !even};
    return true;
}

static struct rows rows_of(MDB_txn *txn)
{
    struct rows rows = {0};
    ck_status(extent_each(k.s, txn, note, &rows), STORE_OK);
    return rows;
}

static struct rows rows_now(void)
{
    MDB_txn *txn = look();
    struct rows rows = rows_of(txn);
    mdb_txn_abort(txn);
    return rows;
}

static uint64_t place(uint64_t number)
{
    struct key key;
    MDB_val v;
    MDB_txn *txn = look();
    uint64_t at;
    enum space space = part_key(&key, number);
    ck_status(store_get(k.s, txn, space, &key, &v), STORE_OK);
    kit_assert(v.mv_size == 17);
    memcpy(&at, (const char *)v.mv_data + 1, sizeof(at));
    mdb_txn_abort(txn);
    return at;
}

/*
 * What the last three states name. A page that a state names first was named by neither of the two before: one is there for who reads, and
 * the other may be all that a power cut leaves.
 */
struct history {
    uint64_t version;
    struct rows now, before, ahead;
};

static bool overlap(const struct row *a, const struct row *b)
{
    return a->page < b->page + b->pages && b->page < a->page + a->pages;
}

static bool same(const struct row *a, const struct row *b)
{
    return a->page == b->page && a->pages == b->pages && a->number == b->number;
}

static void expect_untouched(const struct row *r, const struct rows *older)
{
    for (size_t i = 0; i < older->count; i++)
        kit_assert(!overlap(r, &older->row[i]));
}

static void expect_apart(const struct rows *rows)
{
    for (size_t i = 0; i < rows->count; i++)
        for (size_t j = 0; j < i; j++)
            kit_assert(!overlap(&rows->row[i], &rows->row[j]));
}

static void track(struct history *h)
{
    uint64_t version = store_version(k.s);
    if (version == h->version)
        return; /* nothing changed */
    kit_assert(h->version == 0 || version == h->version + 1);
    h->ahead = h->before;
    h->before = h->now;
    h->now = rows_now();
    h->version = version;
    expect_apart(&h->now);
    for (size_t i = 0; i < h->now.count; i++) {
        const struct row *r = &h->now.row[i];
        bool stayed = false;
        for (size_t j = 0; j < h->before.count && !stayed; j++)
            stayed = same(r, &h->before.row[j]);
        if (stayed)
            continue;
        expect_untouched(r, &h->before);
        expect_untouched(r, &h->ahead);
    }
}

/* ---- beside a model ---- */

#define PARTS 24

struct model {
    uint64_t seed;
    struct history h;
    struct content {
        uint64_t seed;
        size_t n; /* 0: it is not there */
    } part[PARTS];
};

static struct model *m; /* shared with other writers' processes */

static uint64_t pick(uint64_t below)
{
    return kit_random(&m->seed) % below;
}

static void change(struct store_txn *t, struct content *part)
{
    uint64_t at = pick(PARTS);
    struct content *c = &part[at];
    if (c->n != 0)
        del(t, at);
    bool again = c->n == 0 || pick(3) == 0;
    c->n = 0;
    if (!again)
        return;
    *c = (struct content){pick(UINT32_MAX), 1 + pick(pick(4) == 0 ? 60000 : 9000)};
    put(t, at, c->seed, c->n);
}

static void expect_all(MDB_txn *txn, const struct content *part)
{
    for (uint64_t i = 0; i < PARTS; i++)
        expect(txn, i, part[i].seed, part[i].n);
}

static void one_transaction(void)
{
    struct content part[PARTS];
    struct store_txn *t = begin();
    memcpy(part, m->part, sizeof(part));
    for (uint64_t i = 1 + pick(4); i > 0; i--)
        change(t, part);
    if (pick(8) == 0)
        expect_all(t->mdb, part);
    if (pick(4) == 0) {
        store_abort(t);
    } else {
        t->unawaited = pick(2); /* synced once */
        commit(t);
        memcpy(m->part, part, sizeof(part));
    }
    track(&m->h);
    MDB_txn *txn = look();
    expect_all(txn, m->part);
    mdb_txn_abort(txn);
}

static void another_writer(void)
{
    int status;
    pid_t pid = fork();
    kit_assert(pid >= 0);
    if (pid == 0) {
        kit_child();
        k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
        for (uint64_t i = pick(4); i > 0; i--)
            one_transaction();
        if (pick(2))
            store_close(k.s);
        else
            put(begin(), 1000, 1, 30000); /* it dies in the middle of one */
        _exit(0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}

/* Columns: are older snapshots open, do others write, is the store opened anew. */
static const struct {
    bool held, others, anew;
} ways[] = {{false, false, false}, {true, false, false}, {false, true, false}, {false, false, true}, {true, true, true}};

struct held {
    MDB_txn *txn;
    struct content part[PARTS];
};

static void hold_or_release(struct held *h)
{
    if (h->txn == NULL && pick(6) == 0) {
        h->txn = look();
        memcpy(h->part, m->part, sizeof(h->part));
    } else if (h->txn != NULL && pick(12) == 0) {
        expect_all(h->txn, h->part);
        mdb_txn_abort(h->txn);
        h->txn = NULL;
    }
}

static void release(struct held *h, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (h[i].txn == NULL)
            continue;
        expect_all(h[i].txn, h[i].part);
        mdb_txn_abort(h[i].txn);
        h[i].txn = NULL;
    }
}

START_TEST(whatever_is_put_given_up_and_undone_no_state_that_may_be_read_is_written_over)
{
    struct held held[3] = {0};
    m = kit_shared(sizeof(*m));
    m->seed = 4242 + (uint64_t)_i;
    track(&m->h);
    for (int i = 0; i < 300; i++) {
        one_transaction();
        for (size_t j = 0; j < 3 && ways[_i].held; j++)
            hold_or_release(&held[j]);
        if (ways[_i].others && pick(20) == 0)
            another_writer();
        if (ways[_i].anew && pick(20) == 0) {
            release(held, 3);
            kit_reopen(&k);
        }
    }
    release(held, 3);
    if (!ways[_i].held) /* parts are twenty-four of up to fifteen pages, most of up to three; three states of them */
        ck_assert_uint_lt(file_bytes(), 400 * PAGE);
    kit_check_clean(k.s);
}
END_TEST

/* ---- one by one ---- */

static void commit_one(uint64_t number, size_t n)
{
    struct store_txn *t = begin();
    put(t, number, number, n);
    commit(t);
}

static void commit_gone(uint64_t number)
{
    struct store_txn *t = begin();
    del(t, number);
    commit(t);
}

START_TEST(what_was_given_up_is_written_over_after_one_more_commit_and_not_before)
{
    commit_one(1, 3 * PAGE);
    uint64_t at = place(1);
    commit_gone(1);
    commit_one(2, 3 * PAGE);
    ck_assert_uint_ne(place(2), at);
    commit_one(3, 3 * PAGE);
    ck_assert_uint_eq(place(3), at);
}
END_TEST

START_TEST(what_was_given_up_is_kept_for_an_older_snapshot_and_written_over_after_it)
{
    commit_one(1, 3 * PAGE);
    uint64_t at = place(1), end;
    MDB_txn *older = look();
    commit_gone(1);
    MDB_txn *newer = look(); /* which does not have it */
    for (uint64_t i = 2; i < 12; i++) {
        commit_one(i, 3 * PAGE);
        ck_assert_uint_ne(place(i), at);
    }
    expect(older, 1, 1, 3 * PAGE);
    mdb_txn_abort(older);
    end = file_bytes();
    commit_one(12, 3 * PAGE);
    ck_assert_uint_eq(place(12), at);
    ck_assert_uint_eq(file_bytes(), end);
    mdb_txn_abort(newer);
}
END_TEST

START_TEST(a_transaction_that_is_aborted_gives_back_what_it_took_and_keeps_what_it_gave_up)
{
    commit_one(1, 3 * PAGE);
    uint64_t at = place(1), taken;
    struct store_txn *t = begin();
    put(t, 2, 2, 5 * PAGE);
    store_abort(t);
    for (int i = 0; i < 20; i++) {
        t = begin();
        del(t, 1);
        put(t, 3, 3, 5 * PAGE);
        put(t, 1, 4, PAGE);
        store_abort(t);
    }
    ck_assert_uint_eq(file_bytes(), at + (3 + 5 + 1) * PAGE);
    commit_one(2, 5 * PAGE);
    taken = place(2);
    ck_assert_uint_eq(taken, at + 3 * PAGE);
    for (uint64_t i = 3; i < 8; i++)
        commit_one(i, 3 * PAGE);
    ck_assert_uint_eq(place(1), at);
    MDB_txn *txn = look();
    for (uint64_t i = 1; i < 8; i++)
        expect(txn, i, i, i == 2 ? 5 * PAGE : 3 * PAGE);
    mdb_txn_abort(txn);
}
END_TEST

static bool fails;

int fdatasync(int fd)
{
    if (!fails)
        return fsync(fd);
    errno = EIO;
    return -1;
}

START_TEST(a_disk_that_loses_parts_fails_the_commit_that_names_them)
{
    commit_one(1, PAGE);
    struct store_txn *t = begin();
    put(t, 2, 2, PAGE);
    t->installed = true; /* as by a merge, whose manifest names it */
    fails = true;
    enum store_status status = store_commit(t);
    fails = false;
    ck_status(status, STORE_IO);
    ck_assert_ptr_nonnull(strstr(store_why(k.s), "sync the parts"));
    MDB_txn *txn = look();
    expect(txn, 1, 1, PAGE);
    expect(txn, 2, 0, 0);
    mdb_txn_abort(txn);
    commit_one(2, PAGE);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_writer_that_dies_with_parts_under_way_leaves_nothing_behind)
{
    uint64_t before = 0;
    commit_one(1, 3 * PAGE);
    for (int i = 0; i < 12; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            kit_child();
            k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
            char name[16];
            snprintf(name, sizeof(name), "w%d", i);
            kit_workspace(&k, name); /* what its first transaction takes is at the end */
            commit_one(2, PAGE);
            commit_gone(2);
            put(begin(), 3, 3, 10 * PAGE);
            raise(SIGKILL);
        }
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        if (i == 3)
            before = file_bytes();
    }
    ck_assert_uint_eq(file_bytes(), before);
    MDB_txn *txn = look();
    expect(txn, 1, 1, 3 * PAGE);
    mdb_txn_abort(txn);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(the_file_ends_where_the_map_may_and_what_finds_no_room_is_undone)
{
    uint64_t count = 0;
    store_close(k.s);
    kit_remove(k.dir);
    kit_dir(k.dir);
    snprintf(path, sizeof(path), "%s/parts.dat", k.dir);
    k.s = kit_store(k.dir, STORE_WRITE, 1 << 20);
    for (enum store_status status = STORE_OK; status == STORE_OK; count++) {
        struct store_txn *t = begin();
        struct key key;
        enum space space = part_key(&key, count);
        const struct str all = content(count, 10 * PAGE);
        extent_put(t, space, &key, &all, 1);
        status = store_commit(t);
        ck_assert(status == STORE_OK || status == STORE_FULL);
    }
    ck_assert_uint_gt(count, 20);
    ck_assert_uint_le(file_bytes(), 1 << 20);
    ck_assert_ptr_nonnull(strstr(store_why(k.s), "map"));
    MDB_txn *txn = look();
    for (uint64_t i = 0; i + 1 < count; i++)
        expect(txn, i, i, 10 * PAGE);
    mdb_txn_abort(txn);
    commit_gone(0);
    commit_gone(1);
    commit_one(0, 10 * PAGE);
    kit_check_clean(k.s);
}
END_TEST

/* A row that says so, whatever is there. */
static void put_row(uint64_t number, uint8_t format, uint64_t at, uint64_t n)
{
    char ref[17] = {(char)format};
    struct store_txn *t = begin();
    struct key key;
    enum space space = part_key(&key, number);
    memcpy(ref + 1, &at, sizeof(at));
    memcpy(ref + 9, &n, sizeof(n));
    txn_put(t, space, &key, ref, sizeof(ref));
    commit(t);
}

START_TEST(what_was_read_stays_where_it_is_when_the_file_outgrows_its_map)
{
    struct key key;
    MDB_val v;
    store_close(k.s);
    k.s = kit_store(k.dir, STORE_WRITE, (uint64_t)2 << 30);
    commit_one(1, 3 * PAGE);
    MDB_txn *txn = look();
    enum space space = part_key(&key, 1);
    ck_status(extent_get(k.s, txn, space, &key, &v), STORE_OK);
    for (uint64_t mib = 200; mib <= 800; mib *= 2) { /* of holes */
        ck_assert_int_eq(truncate(path, (off_t)(mib << 20)), 0);
        put_row(mib, 1, (mib << 20) - PAGE, PAGE);
        MDB_txn *now = look();
        MDB_val far;
        space = part_key(&key, mib);
        ck_status(extent_get(k.s, now, space, &key, &far), STORE_OK);
        ck_assert(far.mv_size == PAGE && *(const char *)far.mv_data == 0);
        mdb_txn_abort(now);
        ck_assert(v.mv_size == 3 * PAGE && memcmp(v.mv_data, content(1, 3 * PAGE).p, 3 * PAGE) == 0);
    }
    mdb_txn_abort(txn);
    kit_reopen(&k);
    commit_one(2, 2 * PAGE); /* in the hole, from the second commit on */
    commit_one(3, 2 * PAGE);
    commit_one(4, 2 * PAGE);
    ck_assert_uint_lt(place(4), 200 << 20);
    txn = look();
    for (uint64_t i = 2; i <= 4; i++)
        expect(txn, i, i, 2 * PAGE);
    mdb_txn_abort(txn);
    kit_check_clean(k.s);
}
END_TEST

/* ---- a file that does not belong ---- */

static size_t problems_of_reader(void)
{
    struct store *s = kit_store(k.dir, STORE_READ, 0);
    size_t problems = kit_problems(s);
    store_close(s);
    return problems;
}

static char why[512];

static enum store_status open_writer(struct store **out)
{
    const struct store_options o = {.dir = k.dir, .map_size = MAP_BYTES, .mode = STORE_WRITE};
    return store_open(&o, out, why, sizeof(why));
}

static void make_missing(void)
{
    ck_assert_int_eq(unlink(path), 0);
}

static void make_short(void)
{
    ck_assert_int_eq(truncate(path, 3 * PAGE), 0);
}

static void make_nothing(void)
{
    ck_assert_int_eq(truncate(path, 0), 0);
}

/* Of a store with as much in it. */
static void make_anothers(void)
{
    struct kit other = {0};
    char from[128];
    kit_open(&other);
    snprintf(from, sizeof(from), "%s/parts.dat", other.dir);
    store_close(other.s);
    ck_assert_int_eq(rename(from, path), 0);
    ck_assert_int_eq(truncate(path, 1 << 20), 0);
    kit_remove(other.dir);
}

/* Columns: what happened to it, what is told of it, to a writer as well. */
static const struct {
    void (*happen)(void);
    const char *told;
} damages[] = {
    {make_missing, "parts.dat is not there: put both files back as they were together, or restore a backup"},
    {make_short, "parts.dat is cut short: put both files back"},
    {make_nothing, "parts.dat belongs to another data.mdb: put both files back"},
    {make_anothers, "parts.dat belongs to another data.mdb: put both files back"},
};

static uint64_t workspace;

/* Reports in segments, all of them in parts.dat. */
static void fill(unsigned reports)
{
    struct store_answer a;
    store_close(k.s);
    kit_segment_rows = 64;
    kit_chunk_shift = 6;
    kit_log_entries = 20;
    k.s = kit_store(k.dir, STORE_WRITE, MAP_BYTES);
    workspace = kit_workspace(&k, "acme");
    struct store_txn *t = begin();
    for (unsigned i = 0; i < reports; i++) {
        char url[64];
        snprintf(url, sizeof(url), "https://a.com/page/%u", i);
        struct store_change c = kit_create_change(workspace, url, i % 2 ? "a.com" : "b.com");
        store_apply(t, &c, k.now, &a);
        c = kit_done_change(a.id, 1, (int)(i % 101));
        store_apply(t, &c, k.now + i, &a);
        ck_status(a.status, STORE_OK);
    }
    commit(t);
    kit_purge(&k, 50);
    ck_assert_uint_gt(rows_now().count, reports / 64);
    kit_check_clean(k.s);
}

START_TEST(check_and_who_opens_or_reads_it_tell_of_a_file_that_does_not_belong)
{
    struct store *s;
    fill(200);
    store_close(k.s);
    damages[_i].happen();
    ck_assert_uint_gt(problems_of_reader(), 0);
    s = kit_store(k.dir, STORE_READ, 0);
    struct kit_list l = kit_reports(s, &(struct store_list_query){.workspace = workspace, .page = 1, .per_page = 10});
    ck_status(l.status, STORE_CORRUPT);
    ck_assert_msg(strstr(store_why(s), damages[_i].told) != NULL, "%s", store_why(s));
    store_close(s);
    enum store_status status = open_writer(&k.s);
    ck_status(status, STORE_CORRUPT);
    ck_assert_msg(strstr(why, damages[_i].told) != NULL, "%s", why);
}
END_TEST

static void note_sentence(void *arg, const char *sentence)
{
    const char *want = *(const char **)arg;
    if (want != NULL && strstr(sentence, want) != NULL)
        *(const char **)arg = NULL;
}

static void check_says(const char *want)
{
    store_read_end(k.s);
    ck_status(store_check(k.s, NULL, note_sentence, &want, NULL), STORE_CORRUPT);
    ck_assert_msg(want == NULL, "%s", want);
}

START_TEST(check_says_what_is_wrong_with_the_file_once_and_though_nothing_is_in_it)
{
    store_close(k.s);
    damages[_i].happen();
    k.s = kit_store(k.dir, STORE_READ, 0);
    if (damages[_i].happen == make_short) { /* there is nothing to lack */
        kit_check_clean(k.s);
        return;
    }
    check_says(damages[_i].told);
    ck_assert_uint_eq(kit_problems(k.s), 1);
}
END_TEST

START_TEST(check_finds_two_parts_that_lie_over_each_other)
{
    commit_one(1, 3 * PAGE);
    commit_one(2, 3 * PAGE);
    kit_check_clean(k.s);
    put_row(3, 1, place(1) + (uint64_t)_i * PAGE, 2 * PAGE);
    check_says("lie over each other");
}
END_TEST

/* Columns: at, bytes, of rows that no writer makes. */
static const struct {
    uint64_t at, n;
} strays[] = {
    {0, 100},
    {PAGE + 1, 100},
    {PAGE, 0},
    {PAGE, UINT64_MAX},
    {UINT64_MAX - 4095, PAGE},
    {(uint64_t)1 << 63, PAGE},
    {(uint64_t)1 << 62, PAGE},
    {PAGE, (uint64_t)1 << 40},
    {UINT64_MAX, UINT64_MAX},
};

START_TEST(a_row_that_names_what_cannot_be_is_told_and_nothing_is_read)
{
    struct key key;
    MDB_val v;
    commit_one(1, 100);
    put_row(2, 1, strays[_i].at, strays[_i].n);
    MDB_txn *txn = look();
    enum space space = part_key(&key, 2);
    ck_status(extent_get(k.s, txn, space, &key, &v), STORE_CORRUPT);
    mdb_txn_abort(txn);
    ck_assert_uint_gt(kit_problems(k.s), 0);
    store_close(k.s);
    ck_status(open_writer(&k.s), STORE_CORRUPT);
}
END_TEST

START_TEST(a_row_of_a_later_kind_is_told)
{
    struct key key;
    MDB_val v;
    commit_one(1, 100);
    put_row(2, 2, place(1), 100);
    MDB_txn *txn = look();
    enum space space = part_key(&key, 2);
    ck_status(extent_get(k.s, txn, space, &key, &v), STORE_CORRUPT);
    mdb_txn_abort(txn);
}
END_TEST

/* ---- indexes that are merged again and again ---- */

/* Every report graded anew, and what that makes to do. */
static void churn(unsigned reports, unsigned round, struct history *h)
{
    struct store_answer a;
    struct store_txn *t = begin();
    for (uint64_t id = 1; id <= reports; id++) {
        store_apply(t, &(struct store_change){.kind = CHANGE_REPORT_UPDATE, .workspace = workspace, .id = id, .fields = CHANGE_REGENERATE},
                    k.now, &a);
        ck_status(a.status, STORE_OK);
        struct store_change c = kit_done_change(id, round + 2, (int)((id + round) % 101));
        store_apply(t, &c, k.now + round, &a);
        ck_status(a.status, STORE_OK);
    }
    commit(t);
    if (h != NULL)
        track(h);
    enum store_status status = STORE_OK;
    for (int i = 0; status == STORE_OK && i < 500; i++) {
        status = kit_status(&k, &(struct store_change){.kind = CHANGE_PURGE, .limit = 10});
        if (h != NULL)
            track(h);
    }
    ck_status(status, STORE_NOT_FOUND);
}

START_TEST(merging_the_same_reports_forever_keeps_the_file_as_long_as_it_was)
{
    enum { REPORTS = 300, ROUNDS = 40 };
    static struct history h;
    uint64_t after_some = 0;
    h = (struct history){0};
    fill(REPORTS);
    track(&h);
    for (unsigned round = 0; round < ROUNDS; round++) {
        churn(REPORTS, round, &h);
        if (round == ROUNDS / 4)
            after_some = file_bytes();
        if (round % 10 == 5)
            kit_reopen(&k);
    }
    uint64_t used = 0;
    for (size_t i = 0; i < h.now.count; i++)
        used += h.now.row[i].pages * PAGE;
    ck_assert_uint_le(file_bytes(), after_some);
    ck_assert_uint_le(file_bytes(), 4 * used);
    struct store_usage u;
    ck_status(store_usage(k.s, &u), STORE_OK);
    ck_assert_uint_eq((u.room.parts_bytes + PAGE - 1) / PAGE, file_bytes() / PAGE);
    store_read_end(k.s);
    kit_check_clean(k.s);
}
END_TEST

/* As usual, long parts alone are there; others fill a page of data.mdb, where they do not move, and none takes two. */
START_TEST(a_part_in_data_mdb_is_on_one_page_of_its_own)
{
    struct walk walk = {0};
    MDB_stat stat;
    size_t rows = 0, there = 0;
    kit_part_bytes = 0;
    fill(300);
    churn(300, 0, NULL);
    MDB_txn *txn = look();
    enum store_status status = walk_begin(k.s, txn, &walk, SPACE_PART);
    for (; status == STORE_OK; status = walk_next(&walk), rows++) {
        ck_assert(walk.v.mv_size == 17 || walk.v.mv_size == 4080);
        there += walk.v.mv_size == 17;
    }
    walk_end(&walk);
    ck_assert_int_eq(mdb_stat(txn, k.s->dbi[DB_LIST], &stat), 0);
    ck_assert(there > 0 && rows > there);
    ck_assert_uint_eq(stat.ms_overflow_pages, rows - there);
    mdb_txn_abort(txn);
}
END_TEST

/* What it reads with its snapshot, and again when it is told to, is the same; then it lets go. */
static void reader(int from, int to)
{
    struct store *s = kit_store(k.dir, STORE_READ, 0);
    MDB_txn *txn;
    char c;
    ck_status(store_snapshot(s, &txn), STORE_OK);
    k.s = s;
    struct rows rows = rows_of(txn);
    char *all = malloc(rows.count * 64 * PAGE), *at = all;
    kit_assert(all != NULL && rows.count > 4);
    for (size_t i = 0; i < rows.count; i++, at += 64 * PAGE) {
        MDB_val v;
        kit_assert(rows.row[i].pages <= 64);
        ck_status(extent_read(s, txn, rows.row[i].page * PAGE, (rows.row[i].pages - 1) * PAGE + 1, &v), STORE_OK);
        memcpy(at, v.mv_data, v.mv_size);
    }
    kit_assert(write(to, "r", 1) == 1);
    kit_assert(read(from, &c, 1) == 1);
    at = all;
    for (size_t i = 0; i < rows.count; i++, at += 64 * PAGE) {
        MDB_val v;
        ck_status(extent_read(s, txn, rows.row[i].page * PAGE, (rows.row[i].pages - 1) * PAGE + 1, &v), STORE_OK);
        kit_assert(memcmp(at, v.mv_data, v.mv_size) == 0);
    }
    free(all);
    struct kit_list l =
        kit_reports(s, &(struct store_list_query){.workspace = workspace, .search = STR("/page/1"), .page = 1, .per_page = 50});
    ck_status(l.status, STORE_OK);
    kit_assert(l.total == 111);
    store_read_end(s);
    kit_assert(write(to, "e", 1) == 1);
    kit_assert(read(from, &c, 1) == 1); /* it is there, and reads nothing */
    store_close(s);
    _exit(0);
}

START_TEST(another_process_reads_its_snapshot_as_it_was_and_the_file_stops_growing_once_it_is_over)
{
    enum { REPORTS = 300 };
    int up[2], down[2], status;
    char c;
    fill(REPORTS);
    churn(REPORTS, 0, NULL);
    ck_assert_int_eq(pipe(up) | pipe(down), 0);
    pid_t pid = fork();
    if (pid == 0) {
        kit_child();
        reader(down[0], up[1]);
    }
    ck_assert_int_eq(read(up[0], &c, 1), 1);
    uint64_t before = file_bytes();
    for (unsigned round = 1; round < 8; round++)
        churn(REPORTS, round, NULL);
    uint64_t held = file_bytes();
    ck_assert_uint_gt(held, before);
    ck_assert_int_eq(write(down[1], "g", 1), 1);
    ck_assert_int_eq(read(up[0], &c, 1), 1);
    ck_assert_int_eq(c, 'e');
    for (unsigned round = 8; round < 20; round++)
        churn(REPORTS, round, NULL);
    ck_assert_uint_eq(file_bytes(), held);
    ck_assert_int_eq(write(down[1], "g", 1), 1);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_deleted_workspace_leaves_none_of_its_parts)
{
    uint64_t all, left;
    fill(300);
    MDB_txn *txn = look();
    ck_status(extent_bytes(k.s, txn, &all), STORE_OK);
    mdb_txn_abort(txn);
    ck_assert_uint_gt(all, 0);
    ck_status(kit_status(&k, &(struct store_change){.kind = CHANGE_WORKSPACE_DELETE, .workspace = workspace, .id = workspace}), STORE_OK);
    kit_purge(&k, 50);
    txn = look();
    ck_status(extent_bytes(k.s, txn, &left), STORE_OK);
    mdb_txn_abort(txn);
    ck_assert_uint_eq(left, 0);
    kit_check_clean(k.s);
    commit_one(1, PAGE);
    uint64_t end = file_bytes();
    for (uint64_t i = 2; i <= all / PAGE; i++) /* and their room is others' */
        commit_one(i, PAGE);
    ck_assert_uint_eq(file_bytes(), end);
}
END_TEST

#define COUNT(a) ((int)(sizeof(a) / sizeof(*(a))))

int main(void)
{
    Suite *suite = suite_create("store extents");
    TCase *tc = tcase_create("extents");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, whatever_is_put_given_up_and_undone_no_state_that_may_be_read_is_written_over, 0, COUNT(ways));
    tcase_add_test(tc, what_was_given_up_is_written_over_after_one_more_commit_and_not_before);
    tcase_add_test(tc, what_was_given_up_is_kept_for_an_older_snapshot_and_written_over_after_it);
    tcase_add_test(tc, a_transaction_that_is_aborted_gives_back_what_it_took_and_keeps_what_it_gave_up);
    tcase_add_test(tc, a_disk_that_loses_parts_fails_the_commit_that_names_them);
    tcase_add_test(tc, a_writer_that_dies_with_parts_under_way_leaves_nothing_behind);
    tcase_add_test(tc, the_file_ends_where_the_map_may_and_what_finds_no_room_is_undone);
    tcase_add_test(tc, what_was_read_stays_where_it_is_when_the_file_outgrows_its_map);
    tcase_add_loop_test(tc, check_and_who_opens_or_reads_it_tell_of_a_file_that_does_not_belong, 0, COUNT(damages));
    tcase_add_loop_test(tc, check_says_what_is_wrong_with_the_file_once_and_though_nothing_is_in_it, 0, COUNT(damages));
    tcase_add_loop_test(tc, check_finds_two_parts_that_lie_over_each_other, 0, 3);
    tcase_add_loop_test(tc, a_row_that_names_what_cannot_be_is_told_and_nothing_is_read, 0, COUNT(strays));
    tcase_add_test(tc, a_row_of_a_later_kind_is_told);
    tcase_add_test(tc, merging_the_same_reports_forever_keeps_the_file_as_long_as_it_was);
    tcase_add_test(tc, a_part_in_data_mdb_is_on_one_page_of_its_own);
    tcase_add_test(tc, another_process_reads_its_snapshot_as_it_was_and_the_file_stops_growing_once_it_is_over);
    tcase_add_test(tc, a_deleted_workspace_leaves_none_of_its_parts);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
