/*
 * The schema: spaces, their keys and their records. For store/ alone.
 *
 * A key is a tag byte, which names its space, and parts that memcmp sorts: numbers as a length byte
 * and that many big-endian bytes (small numbers are short), hashes and texts as they are. A record
 * is a packed header in native byte order, as LMDB's own pages are, followed by its texts.
 */
#ifndef ASSAY_STORE_ENGINE_SCHEMA_H
#define ASSAY_STORE_ENGINE_SCHEMA_H

#include "store/store.h"

#include <lmdb.h>

/*
 * Sub-databases. Few, because each costs a look-up in the root of every transaction that uses it;
 * all that every request reads is in one. Columns: enum, name on disk.
 */
#define DATABASES(X)                                                                               \
    X(DB_RECORD, "record")   /* read by every request: keys by hash, heads of reports */           \
    X(DB_BASE, "base")       /* small tables */                                                    \
    X(DB_LIST, "list")       /* the index of reports: index/index.h */                             \
    X(DB_RESULT, "result")   /* results of reports */                                              \
    X(DB_GRADING, "grading") /* gradings of reports */                                             \
    X(DB_WIDGET, "widget")   /* everything of agents */

#define X(id, name) id,
enum db { DATABASES(X) DB_COUNT };
#undef X

/*
 * Spaces. Columns: enum, sub-database, tag, kind (derived.h), keys and values.
 *
 * Spaces of records are replicated: a row set (store/rows.h) has their rows. All others are local:
 * each store builds them from replicated rows. Jobs, idempotency keys and senders are replicated
 * because the work goes on, and a repeated request is recognised, wherever changes are executed
 * next.
 */
/* clang-format off */
#define SPACES(X) \
    X(SPACE_KEY, DB_RECORD, 'k', SPACE_IS_RECORD, "hash → key_record") \
    X(SPACE_REPORT, DB_RECORD, 'r', SPACE_IS_RECORD, "id → report_record") \
    X(SPACE_META, DB_BASE, 'm', SPACE_IS_RECORD, \
      "'c' → counters_record, 'r' → rating_record, 'u' → the last ULID given, " \
      "'y' → synced_counters, 's' → the sealed signing keys of a cluster") \
    X(SPACE_LOCAL, DB_BASE, 'l', SPACE_IS_LOCAL, \
      "'f' → format_record, 'i' → the store's random id, which names its answer files, " \
      "'a' → the number of rows of SPACE_ANSWERS_LOG, 'p' → struct store_position") \
    X(SPACE_WORKSPACE, DB_BASE, 'w', SPACE_IS_RECORD, "id → workspace_record") \
    X(SPACE_WORKSPACE_NAME, DB_BASE, 'n', SPACE_IS_DERIVED, "name → id") \
    X(SPACE_KEY_ID, DB_BASE, 'i', SPACE_IS_DERIVED, "id → hash") \
    X(SPACE_KEY_WORKSPACE, DB_BASE, 'h', SPACE_IS_DERIVED, "workspace, id → hash") \
    X(SPACE_PROJECT, DB_BASE, 'p', SPACE_IS_RECORD, "id → project_record") \
    X(SPACE_PROJECT_NAME, DB_BASE, 'q', SPACE_IS_DERIVED, "workspace, name → id") \
    X(SPACE_PROJECT_DATE, DB_BASE, 'd', SPACE_IS_DERIVED, "workspace, created_at, id → nothing") \
    X(SPACE_JOB, DB_BASE, 'j', SPACE_IS_RECORD, "report → job_record") \
    X(SPACE_DELETING, DB_BASE, 'x', SPACE_IS_DERIVED, \
      "workspace, project (0: the workspace itself) → nothing") \
    X(SPACE_IDEM, DB_BASE, 'e', SPACE_IS_RECORD, "hash → idem_record") \
    X(SPACE_IDEM_AGE, DB_BASE, 'f', SPACE_IS_DERIVED, "expires_at, hash → nothing") \
    X(SPACE_SENDER, DB_BASE, 'c', SPACE_IS_RECORD, "sender (0: none) → sequence, answers") \
    X(SPACE_LOG, DB_LIST, 'l', SPACE_IS_INDEX, "workspace, sequence → log_head, entries") \
    X(SPACE_INDEX, DB_LIST, 'm', SPACE_IS_INDEX, "workspace → index_record") \
    X(SPACE_SEGMENT, DB_LIST, 's', SPACE_IS_INDEX, \
      "workspace, number → segment_record, bitmap of dead rows") \
    X(SPACE_BASE, DB_LIST, 'b', SPACE_IS_INDEX, \
      "workspace, piece → entries as in the log: the rows of a small workspace") \
    X(SPACE_INDEX_DUE, DB_LIST, 'd', SPACE_IS_INDEX, \
      "workspace → nothing: its log is to be merged, or swept") \
    X(SPACE_RESULT, DB_RESULT, 's', SPACE_IS_RECORD, \
      "report, piece (none: the first) → results: result.c") \
    X(SPACE_GRADING, DB_GRADING, 'g', SPACE_IS_RECORD, \
      "report, attempt → grading_record: grading.c") \
    X(SPACE_AGENT, DB_WIDGET, 'a', SPACE_IS_RECORD, "id → agent_record") \
    X(SPACE_VISITOR, DB_WIDGET, 'v', SPACE_IS_RECORD, "id → visitor_record") \
    X(SPACE_VISITOR_SECRET, DB_WIDGET, 's', SPACE_IS_DERIVED, "agent, hash → visitor") \
    X(SPACE_CONVERSATION, DB_WIDGET, 'c', SPACE_IS_RECORD, "id → conversation_record") \
    X(SPACE_ONCE, DB_WIDGET, 'o', SPACE_IS_RECORD, "conversation, kind, key → once_record") \
    X(SPACE_LEAD, DB_WIDGET, 'd', SPACE_IS_RECORD, "id → lead_record") \
    X(SPACE_LEAD_EMAIL, DB_WIDGET, 'e', SPACE_IS_DERIVED, "agent, hash → lead") \
    X(SPACE_EVENT, DB_WIDGET, 'n', SPACE_IS_RECORD, "id → event_record") \
    X(SPACE_RATING, DB_WIDGET, 'r', SPACE_IS_RECORD, "id → event_record") \
    X(SPACE_LIST_ENTRY, DB_WIDGET, 'l', SPACE_IS_DERIVED, "kind, scope, class, id → nothing") \
    X(SPACE_ERASING, DB_WIDGET, 'x', SPACE_IS_RECORD, "scope → nothing") \
    X(SPACE_COLLECTION, DB_WIDGET, 'K', SPACE_IS_RECORD, "id → collection_record") \
    X(SPACE_COLLECTION_NAME, DB_WIDGET, 'N', SPACE_IS_DERIVED, "agent, kind, site → collection") \
    X(SPACE_GENERATION, DB_WIDGET, 'G', SPACE_IS_RECORD, \
      "collection, generation → generation_record") \
    X(SPACE_GENERATION_ID, DB_WIDGET, 'H', SPACE_IS_RECORD, "collection, sync_id → generation") \
    X(SPACE_ITEM, DB_WIDGET, 'I', SPACE_IS_RECORD, "collection, wp_id → item_record") \
    X(SPACE_DOCUMENT, DB_WIDGET, 'D', SPACE_IS_RECORD, "id → document_record") \
    X(SPACE_UNSEEN, DB_WIDGET, 'U', SPACE_IS_RECORD, \
      "collection → unseen_record: a purge of what was not seen") \
    X(SPACE_ANSWERS, DB_WIDGET, 'A', SPACE_IS_RECORD, \
      "agent → the number of the last change of its documents: answers_log.h") \
    X(SPACE_ANSWER_FILE, DB_WIDGET, 'B', SPACE_IS_LOCAL, \
      "agent → answer_file_record: each store has files of its own") \
    X(SPACE_ANSWERS_LOG, DB_WIDGET, 'F', SPACE_IS_LOCAL, \
      "agent, sequence (0: its answer file waits for more) → document: what the file of this " \
      "store lacks: answers_log.h") \
    X(SPACE_COUPON, DB_WIDGET, 'C', SPACE_IS_RECORD, "agent, folded code → coupon_record") \
    X(SPACE_PENDING_COUPONS, DB_WIDGET, 'T', SPACE_IS_RECORD, \
      "conversation → its pending coupons") \
    X(SPACE_NOTE, DB_WIDGET, 't', SPACE_IS_RECORD, "conversation, id → note_record: note.c") \
    X(SPACE_SYNC_ONCE, DB_WIDGET, 'S', SPACE_IS_RECORD, "hash → sync_once_record") \
    X(SPACE_MESSAGE, DB_WIDGET, 'z', SPACE_IS_RECORD, \
      "id → message_record; the last tag, so that new messages go to the end of the tree: " \
      "message_log.h")
/* clang-format on */

#define X(id, db, tag, kind, text) id,
enum space { SPACES(X) SPACE_COUNT };
#undef X

extern const char *const schema_db_names[DB_COUNT];
extern const uint8_t schema_space_db[SPACE_COUNT];
extern const uint8_t schema_space_tag[SPACE_COUNT];

#define KEY_MAX_BYTES 511 /* LMDB's */
#define NAME_MAX_BYTES 400
#define URL_MAX_BYTES 8192

struct key {
    size_t n;
    uint8_t b[KEY_MAX_BYTES];
};

static inline void key_space(struct key *k, enum space space)
{
    k->b[0] = schema_space_tag[space];
    k->n = 1;
}

static inline void key_u64(struct key *k, uint64_t v)
{
    uint8_t *to = k->b + k->n;
    unsigned bytes = v == 0 ? 0 : (unsigned)(71 - __builtin_clzll(v)) / 8;
    uint64_t big = bytes == 0 ? 0 : __builtin_bswap64(v << (64 - 8 * bytes));
    to[0] = (uint8_t)bytes;
    memcpy(to + 1, &big, 8);
    k->n += 1 + bytes;
}

static inline void key_bytes(struct key *k, const void *p, size_t n)
{
    memcpy(k->b + k->n, p, n);
    k->n += n;
}

static inline void key_str(struct key *k, struct str s)
{
    if (s.n != 0)
        key_bytes(k, s.p, s.n);
}

static inline MDB_val key_val(struct key *k)
{
    return (MDB_val){k->n, k->b};
}

/* key_read_u64(at, end, out): read a number and advance; false: it is malformed. */
bool key_read_u64(const uint8_t **at, const uint8_t *end, uint64_t *out);

static inline void key_id(struct key *k, enum space space, uint64_t id)
{
    key_space(k, space);
    key_u64(k, id);
}

/* key_meta(k, name): a record of SPACE_META. key_local(k, name): one of SPACE_LOCAL. */
static inline void key_meta(struct key *k, char name)
{
    key_space(k, SPACE_META);
    key_bytes(k, &name, 1);
}

static inline void key_local(struct key *k, char name)
{
    key_space(k, SPACE_LOCAL);
    key_bytes(k, &name, 1);
}

#define CLASSES 4  /* of reports, by result: enum report_result */
#define STATUSES 3 /* enum report_status */

#ifndef PACKED
#define PACKED __attribute__((packed))
#endif

struct PACKED counts {
    uint64_t by[CLASSES];
};

static inline uint64_t counts_sum(const struct counts *c)
{
    return c->by[RESULT_NONE] + c->by[RESULT_GOOD] + c->by[RESULT_DECENT] + c->by[RESULT_BAD];
}

struct PACKED format_record {
    uint32_t format, layout;
};

struct PACKED rating_record {
    uint32_t good, decent;
    uint64_t after; /* results up to this report follow these thresholds; UINT64_MAX: all do */
};

struct PACKED counters_record {
    uint64_t workspace, key, project, report; /* the last id given */
    uint64_t job, node;
    uint64_t deleting; /* rows of SPACE_DELETING */
};

struct PACKED workspace_record {
    uint8_t deleting;
    int64_t created_at;
    uint64_t id, version, projects, pending;
    struct counts counts;
    uint16_t name_n;
};

struct PACKED project_record {
    uint8_t deleting;
    uint64_t id, workspace, version, pending, score_total;
    struct counts counts;
    int64_t created_at, updated_at;
    uint16_t name_n;
};

struct PACKED key_record {
    uint32_t scopes;
    uint64_t id, workspace;
    int64_t created_at, last_used_at, expires_at, revoked_at;
    uint16_t name_n;
};

struct PACKED report_record {
    uint8_t status, privacy, result;
    int8_t score;
    uint32_t attempt;
    uint64_t id, workspace, project, version;
    int64_t created_at, updated_at, generated_at;
    uint32_t issues_high, issues_medium, issues_low, issues_passed;
    uint16_t url_n, name_n, hash_n, code_n, message_n;
};

/* Followed by protocol, version, the final URL and the ids of the failed checks. */
struct PACKED grading_record {
    uint8_t score, result, protocol_n, version_n;
    uint16_t http_status, url_n, failed_n;
    uint32_t issues_high, issues_medium, issues_low, issues_passed;
    uint32_t ttfb_ms, load_ms;
    uint64_t page_bytes;
    int64_t generated_at;
};

struct PACKED job_record {
    uint64_t workspace, order;
    uint32_t attempt, deaths;
};

struct PACKED idem_record {
    uint8_t body[32];
    uint64_t workspace, report;
    int64_t expires_at;
    uint32_t code;
};

struct PACKED agent_record {
    uint8_t is_published, require_lead;
    struct ulid id;
    uint64_t workspace, version;
    int64_t created_at, updated_at;
    uint16_t name_n;
    uint32_t origins_n, settings_n;
};

struct PACKED visitor_record {
    uint8_t lead;
    struct ulid id, agent, conversation; /* conversation: the newest one */
    uint64_t workspace;
    int64_t created_at;
    uint8_t secret[32]; /* digest */
    uint32_t about_n;
};

struct PACKED conversation_record {
    uint8_t human_requested, lead_captured, rating;
    struct ulid id, agent, visitor, last, cleared, read, rating_id;
    uint64_t workspace, version, messages, claimed_by, closed_by;
    int64_t created_at, updated_at, closed_at;
    uint16_t url_n, name_n;
};

/*
 * Followed by text, citations, client_message_id, page_url and page_context. ${before}, ${jump}:
 * earlier messages of the same conversation, or none; places count from 1.
 */
struct PACKED message_record {
    uint8_t role, low_confidence;
    uint16_t client_n, url_n;
    uint32_t text_n, citations_n, context_n;
    int64_t created_at;
    struct ulid conversation, before, jump;
    uint64_t place, jump_place;
};

/* An operator's note, followed by its author's name and its text. */
struct PACKED note_record {
    uint64_t key;
    int64_t created_at;
    uint16_t name_n;
    uint32_t text_n;
};

/* What was done under a client_message_id or an Idempotency-Key. Deleted with the conversation. */
struct PACKED once_record {
    struct ulid first, second;
    int64_t expires_at;
    uint8_t body[32];
    uint32_t code;
};

/*
 * Followed by its senders in the order of their first sending, each with address, name, phone and
 * fields.
 */
struct PACKED lead_record {
    struct ulid id, agent;
    uint64_t workspace;
    uint8_t hash[32];
    uint16_t senders_n;
};

struct PACKED sender_record {
    struct ulid visitor, conversation;
    int64_t created_at, updated_at;
    uint16_t email_n, name_n, phone_n;
    uint32_t fields_n;
};

/* An event or a rating, followed by the event's kind, and its payload or the rating's comment. */
struct PACKED event_record {
    uint8_t rating; /* 0: an event */
    struct ulid id, agent, visitor, conversation;
    uint64_t workspace;
    int64_t created_at,
        /* at: when the event happened, by the visitor's clock; or when the rating last changed */
        at;
    uint16_t kind_n;
    uint32_t text_n;
};

/* ---- synced records: synced.h ---- */

struct PACKED synced_counters {
    uint64_t collection, document; /* the last id given */
};

struct PACKED collection_record {
    uint8_t kind;
    struct ulid agent;
    uint64_t id, count, generations, complete;
    int64_t completed_at, synced_at;
    uint8_t site_n, sync_id_n;
};

/*
 * ${items}: existing items last seen in this generation (see also generations_closed). Meaningless
 * once a later generation is complete.
 */
struct PACKED generation_record {
    uint64_t items;
    int64_t begun_at;
};

/*
 * An item. ${document} 0: a tombstone; ${modified_at} and ${generation} then say what is too old to
 * restore it. An item whose document was last seen before the last complete generation counts as
 * deleted, and becomes a tombstone.
 */
struct PACKED item_record {
    uint64_t document, generation;
    int64_t modified_at, deleted_at;
    uint8_t hash[16];
};

/* Progress of the deletion of unseen items: the wp_id to continue from; UNSEEN_DONE: done. */
struct unseen_record {
    uint64_t from;
};
#define UNSEEN_DONE UINT64_MAX

struct PACKED document_record {
    uint8_t kind, on_sale, stock, exponent;
    char currency[3];
    struct ulid agent;
    uint64_t id, collection, wp_id;
    uint64_t change; /* number of the change that set its texts: answers_log.h */
    int64_t modified_at, synced_at, price, regular_price, sale_price;
    uint32_t text_n;
    uint16_t title_n, taxonomy_n, url_n, language_n, type_n, image_url_n, sku_n;
};

struct PACKED answer_file_record {
    uint64_t indexed;
    uint32_t generation, oldest, serving;
    uint8_t state; /* enum answers_state */
};

struct PACKED coupon_record {
    uint8_t type, exclude_sale_items;
    struct ulid agent;
    int64_t amount, minimum, maximum, expires_at;
    uint64_t usage_limit, usage_count;
    uint16_t code_n, label_n, products_n, excluded_n; /* lists: number of products */
};

/* The answer to a batch with an Idempotency-Key; deleted with its row in SPACE_IDEM. */
struct PACKED sync_once_record {
    uint64_t id, version;
    struct ulid first, second;
};

/* Head of a record of the log of an index (index/index.h): what the log has held so far. */
struct PACKED log_head {
    uint64_t entries, bytes; /* of all records of the workspace up to the end of this one */
};

/* What store_check knows of the log that it walks. */
struct check_log {
    uint64_t workspace, next; /* sequence that must follow */
    struct log_head head;
};

/* schema_read_…(value, out): decode a value; texts are borrowed from it. False: it is malformed. */
bool schema_read_report(MDB_val value, struct store_report *out);
bool schema_read_project(MDB_val value, struct store_project *out);
bool schema_read_key(MDB_val value, const uint8_t *hash, struct store_key *out);
bool schema_read_workspace(MDB_val value, struct store_workspace *out);

#endif
