#include "t/kit/store_segments.h"

struct kit k;
uint64_t w;

void setup(void)
{
    kit_segment_rows = 64;
    kit_ngram_block_shift = 6;
    kit_log_entries = 16;
    kit_open(&k);
    w = kit_workspace(&k, "acme");
}

void teardown(void)
{
    kit_close(&k);
    kit_segment_rows = kit_ngram_block_shift = kit_log_entries = kit_small_rows = 0;
}

static bool note_file(void *arg, uint64_t workspace, uint64_t number)
{
    struct files *f = arg;
    kit_assert(f->count < 256);
    f->workspace[f->count] = workspace;
    f->number[f->count++] = number;
    return true;
}

struct files files(void)
{
    struct files f = {0};
    ck_assert_int_eq(segment_file_each(k.dir, note_file, &f), 0);
    return f;
}

char *path_of(uint64_t workspace, uint64_t number)
{
    static char path[SEGMENT_PATH_BYTES];
    segment_file_path(k.dir, workspace, number, path);
    return path;
}

char *first_file(void)
{
    struct files f = files();
    ck_assert_uint_ge(f.count, 1);
    return path_of(f.workspace[0], f.number[0]);
}

void create(unsigned count)
{
    char url[64];
    static unsigned number;
    for (unsigned i = 0; i < count; i++, number++) {
        snprintf(url, sizeof(url), "https://a.com/page/%u", number * 7919 % 100000);
        kit_create(&k, w, url, number % 3 == 0 ? "a.com" : "b.com");
    }
}

size_t list_all(struct store *s, uint64_t *ids, size_t capacity)
{
    size_t n = 0;
    for (unsigned sort = REPORT_BY_ID; sort <= REPORT_BY_SCORE; sort++) {
        struct store_list_query q = {.workspace = w, .sort = sort, .page = 1, .per_page = 1000};
        struct kit_list l = kit_reports(s, &q);
        ck_status(l.status, STORE_OK);
        for (size_t i = 0; i < l.count; i++) {
            kit_assert(n < capacity);
            ids[n++] = l.reports[i].id;
        }
        store_read_end(s);
    }
    return n;
}

enum store_status list_status(struct store *s, unsigned sort, const char *search)
{
    struct store_list_query q = {
        .workspace = w, .sort = sort, .page = 1, .per_page = 1000, .search = str_of(search)};
    enum store_status status = kit_reports(s, &q).status;
    store_read_end(s);
    return status;
}
