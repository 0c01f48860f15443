/*
 * A store of many workspaces with a few reports each, made without a server, for t/bench/scale.
 *
 *   run_scale_data DATA-DIR WORKSPACES REPORTS-OF-EACH
 */
#include "store/backup.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { WORKSPACES_A_COMMIT = 200 };

static struct store *s;

static void must(enum store_status status, const char *what)
{
    if (status == STORE_OK)
        return;
    fprintf(stderr, "run_scale_data: %s: %s: %s\n", what, store_status_text(status), store_why(s));
    exit(1);
}

static uint64_t apply(struct store_txn *t, const struct store_change *c)
{
    struct store_answer answer;
    store_apply(t, c, 1777986000000, &answer);
    must((enum store_status)answer.status, "change");
    return answer.id;
}

static void make_workspace(struct store_txn *t, unsigned number, unsigned reports)
{
    char name[32], url[80];
    snprintf(name, sizeof(name), "w%u", number);
    struct store_change c = {.kind = CHANGE_WORKSPACE_CREATE, .name = str_of(name)};
    uint64_t workspace = apply(t, &c);
    for (unsigned i = 0; i < reports; i++) {
        snprintf(url, sizeof(url), "https://shop-%u.example/some/page-%u.html", number, i);
        c = (struct store_change){.kind = CHANGE_REPORT_CREATE,
                                  .workspace = workspace,
                                  .url = str_of(url),
                                  .name = STR("shop.example"),
                                  .code = 201};
        c = (struct store_change){.kind = CHANGE_REPORT_FINISH,
                                  .id = apply(t, &c),
                                  .attempt = 1,
                                  .status = REPORT_DONE,
                                  .score = (int)(i * 7 % 101),
                                  .result = RESULT_GOOD,
                                  .results = STR("{}")};
        apply(t, &c);
    }
}

static bool go_on(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    return done <= total;
}

int main(int argc, char **argv)
{
    char why[512];
    if (argc != 4) {
        fprintf(stderr, "usage: run_scale_data DATA-DIR WORKSPACES REPORTS-OF-EACH\n");
        return 2;
    }
    unsigned workspaces = (unsigned)atoi(argv[2]), reports = (unsigned)atoi(argv[3]);
    const struct store_options o = {.dir = argv[1], .map_size = 64ull << 30, .mode = STORE_WRITE};
    mkdir(argv[1], 0700);
    if (store_open(&o, &s, why, sizeof(why)) != STORE_OK) {
        fprintf(stderr, "run_scale_data: %s\n", why);
        return 1;
    }
    for (unsigned i = 0; i < workspaces;) {
        struct store_txn *t;
        must(store_begin(s, &t), "begin");
        for (unsigned end = i + WORKSPACES_A_COMMIT; i < end && i < workspaces; i++)
            make_workspace(t, i + 1, reports);
        must(store_commit(t), "commit");
    }
    must(store_maintain(s, go_on, NULL), "maintain");
    store_close(s);
    return 0;
}
