/*
 * Test doubles for the handlers of core/api: the pipeline (request.h), the store's readers and the
 * writer. A test sets what the store holds and how the writer answers, sends a request through the
 * route table, and checks the reply and the changes. One request at a time.
 */
#ifndef ASSAY_T_API_DOUBLES_H
#define ASSAY_T_API_DOUBLES_H

#include "core/http/handler.h"

struct played_header {
    const char *name;
    char value[6000];
};

struct played {
    /* set by the test */
    struct store_workspace workspace;
    struct store_report reports[100];
    size_t reports_count;
    struct store_grading gradings[STORE_GRADINGS_MAX]; /* of every report, newest first */
    size_t gradings_count;
    enum store_status gradings_status;
    struct store_project projects[100];
    size_t projects_count;
    uint64_t total;             /* of a list */
    struct store_answer answer; /* the writer's */
    bool hash_queue_full;
    bool not_ready;
    void (*on_await)(void);  /* called while a request is held */
    void (*on_change)(void); /* called while the writer works */
    /* recorded */
    struct request request;
    unsigned replies;
    int status;
    struct buf body;
    struct played_header headers[8];
    size_t headers_count;
    unsigned changes, awaits, hashes, lists, list_turns, laters;
    bool queries_full, query_late;
    enum store_status list_status; /* of a list that ends */
    struct store_change change;    /* the last one; its strings live as long as the request */
    struct store_list_query query; /* the last */
    struct store_gradings_query gradings_query;
    uint64_t awaited;
    unsigned await_ms;
};
extern struct played played;

/* played_begin: resets everything; workspace 7 is empty. played_end: frees everything. */
void played_begin(void);
void played_end(void);

/*
 * played_send(method, path, args, input, headers): sends a request to the route of that method and
 * path. ${args}: two path arguments or NULL; ${input}: encoded query or form; ${headers}: name,
 * value, …, NULL. The handler must reply exactly once.
 */
void played_send(const char *method, const char *path, const char *const *args, const char *input,
                 const char *const *headers);

/* played_header(name): a header of the reply, or NULL. */
const char *played_header(const char *name);

/* played_report, played_project: add a record to workspace 7. */
struct store_report *played_report(uint64_t id, enum report_status status, const char *results);
struct store_project *played_project(uint64_t id, const char *name);

#define RECORD_PENDING(link)                                                                       \
    "{\"id\":41,\"url\":\"https://example.com/\",\"project\":\"example.com\","                     \
    "\"status\":\"pending\",\"score\":null,\"result\":null,\"privacy\":0,\"password\":false,"      \
    "\"link\":\"" link "\",\"issues\":null,\"results\":null,\"error\":null,"                       \
    "\"generated_at\":null,\"created_at\":\"2026-05-07T13:00:00Z\","                               \
    "\"updated_at\":\"2026-05-07T13:00:00Z\"}"
#define LINK "https://api.example.com/reports/41"

/* The body of the reply must equal, or contain, this text. */
void played_body_is(const char *want);
void played_body_has(const char *part);

/* Makes a graded report, 41, the only one of the store. */
void played_graded(void);

#endif
