/*
 * A change: one operation that writes, as data. A handler fills it in, a channel carries it to the
 * writer (change_encode, change_decode), and store_apply carries it out. One flat record for all
 * kinds: the comments below say which members each kind uses (before the arrow) and what its answer
 * has (after it). Unused members are zero.
 */
#ifndef ASSAY_CHANGE_H
#define ASSAY_CHANGE_H

#include "store/bytes.h"
#include "store/grading.h"
#include "store/ulid.h"

enum store_change_kind {
    CHANGE_WORKSPACE_CREATE = 1, /* name → id */
    CHANGE_WORKSPACE_DELETE,     /* id: hidden at once, deleted in batches */
    CHANGE_KEY_CREATE,           /* workspace, name, scopes, hash, expires_at → id */
    CHANGE_KEY_REVOKE,           /* id; workspace 0: any */
    /*
     * id, hash, expires_at (of the OLD key: the end of the overlap, never later than before) → id
     * of the new key, with the same name, scopes, workspace and lifetime. Emits EVENT_KEY_REVOKED
     * for the old key, so that caches forget its old end.
     */
    CHANGE_KEY_ROTATE,
    CHANGE_KEY_TOUCH, /* id: last_used_at becomes now; no event, no new version */
    /* workspace, url, name (project), privacy, hash, idem_*, code, limit → id, version */
    CHANGE_REPORT_CREATE,
    CHANGE_REPORT_UPDATE, /* workspace, id, fields, privacy, hash, match, limit → id, version */
    CHANGE_REPORT_DELETE, /* workspace, id, match → id */
    /*
     * id, attempt, status, and score, result, issues, results, facts, failed; or error_code,
     * error_message
     */
    CHANGE_REPORT_FINISH,
    /*
     * id, attempt: an auditor died while it held this job alone; the second time → failed,
     * too_complex
     */
    CHANGE_REPORT_DIED,
    CHANGE_PROJECT_DELETE, /* workspace, id, match → id; its reports are hidden at once */
    /*
     * limit: maximum of erased or expired records to delete, or of results to re-rate → id: how
     * many; STORE_NOT_FOUND: none was left
     */
    CHANGE_PURGE,
    /*
     * workspace, name, text (origins), data (settings), fields: AGENT_HAS_PUBLISHED, …_LEAD →
     * first, version
     */
    CHANGE_AGENT_CREATE,
    /*
     * workspace (0: any), agent, match, fields: which of name, text, data were sent, and the new
     * flags → first, version
     */
    CHANGE_AGENT_UPDATE,
    /* workspace (0: any), agent: hidden at once, with all records of its visitors */
    CHANGE_AGENT_DELETE,
    /*
     * agent, hash (digest of the secret that was sent, 32 bytes; empty: none), match (digest of the
     * secret for a new visitor), url, data (JSON about the page), expires_at (an older conversation
     * is not continued) → first: conversation, second: visitor, code: 1 if the visitor is new
     */
    CHANGE_VISITOR_INIT,
    /*
     * agent, visitor: with conversations, messages, leads, events and ratings; STORE_NOT_FOUND:
     * already erased
     */
    CHANGE_VISITOR_ERASE,
    /*
     * A visitor's message and, unless an operator has claimed the conversation, its answer. agent,
     * visitor, conversation, client_id, text, url, data (page context), answer, citations, fields,
     * idem_*, code → first: message, second: answer
     */
    CHANGE_MESSAGE_POST,
    /* an operator's message. workspace, conversation, id (key), text, idem_*, code → first */
    CHANGE_MESSAGE_REPLY,
    /*
     * an operator's note. workspace, conversation, id (key), name (empty: that of the claim), text,
     * idem_*, code → first
     */
    CHANGE_NOTE,
    /*
     * of a visitor: agent, visitor; of an operator: workspace, id (key), name (with a claim).
     * conversation, fields → version
     */
    CHANGE_CONVERSATION_SET,
    /*
     * agent, visitor, conversation, hash (digest of the lower-cased address), text (address), name,
     * url (phone), data, idem_* → first, code
     */
    CHANGE_LEAD,
    CHANGE_EVENTS, /* agent, visitor, conversation, data: rows of event_pack → id: how many */
    CHANGE_RATING, /* agent, visitor, conversation, score (1–5), text (comment), fields → first */
    /*
     * fields: one of RETAIN_…; expires_at: delete what was created before; limit: records → id: how
     * many; STORE_NOT_FOUND: none was left
     */
    CHANGE_RETAIN,
    /*
     * A batch of a shop's posts or products, in one commit. workspace, agent, name (the site's
     * host), status (enum synced_kind), fields: SYNC_COMPLETE, text (sync_id), data: rows of
     * sync_pack, idem_*, code → version: the generation, id: how many items its completion deleted,
     * marks for synced_mark. STORE_STALE: the generation is older than the last complete one.
     * STORE_AGAIN: a SYNC_SAME row changed meanwhile.
     */
    CHANGE_SYNC,
    /*
     * All coupons of an agent. workspace, agent, text (sync_id), data: rows of coupon_pack, idem_*,
     * code → as CHANGE_SYNC
     */
    CHANGE_COUPONS,
    /*
     * What happened to an agent's answer file (answers_log.h). agent, attempt: the file's
     * generation, fields: ANSWERS_NOTE_…, id: number of the last change in the file, code:
     * ANSWERS_FORMAT of the sender. STORE_STALE: the file is no longer the agent's or in that
     * state, or the sender has another version.
     */
    CHANGE_ANSWERS,
    /*
     * Of the merge thread (maintenance.h). workspace, id (project; 0: the workspace), data:
     * ids of its reports to delete, 8 bytes each; empty: no report is left, delete everything else
     * of it → id: how many records. STORE_NOT_FOUND: it is not being deleted.
     */
    CHANGE_PURGE_DELETED,
    /*
     * workspace, data: struct index_install and what follows it → version, id: number of reports,
     * if the index was rebuilt; STORE_STALE
     */
    CHANGE_INDEX_INSTALL,
    /*
     * workspace, id: number of a missing or damaged segment; 0: the whole index. It is rebuilt.
     * STORE_STALE: the segment is no longer used.
     */
    CHANGE_INDEX_LOST,
    /* workspace: delete merged records of the log → id: how many; 0: none was left */
    CHANGE_INDEX_SWEEP,
    /*
     * agent, visitor, conversation, text (code), expires_at → first: the conversation. The last
     * twenty are kept.
     */
    CHANGE_COUPON_PENDING,
    /*
     * The sealed signing keys of a cluster. data; text: those that they replace, empty: none.
     * STORE_STALE: the store has others.
     */
    CHANGE_SIGNING_KEYS,
    CHANGE_KINDS
};

/* Optional members that were sent with a CHANGE_REPORT_UPDATE. */
enum { CHANGE_HAS_PRIVACY = 1, CHANGE_HAS_PASSWORD = 2, CHANGE_REGENERATE = 4 };

/* Members that were sent with a CHANGE_AGENT_UPDATE; the flags of an agent, and their values. */
enum {
    AGENT_HAS_NAME = 1,
    AGENT_HAS_ORIGINS = 2,
    AGENT_HAS_SETTINGS = 4,
    AGENT_HAS_PUBLISHED = 8,
    AGENT_HAS_LEAD = 16,
    AGENT_PUBLISHED = 32,
    AGENT_LEAD = 64,
};

/* CHANGE_MESSAGE_POST: the answer is a guess. CHANGE_RATING: a comment was sent. */
enum { MESSAGE_LOW_CONFIDENCE = 1, RATING_HAS_COMMENT = 1 };

/*
 * Effects of a CHANGE_CONVERSATION_SET; each is idempotent. STORE_EXISTS: another operator has
 * claimed it. A closed conversation is neither claimed nor waiting: CLOSED releases it; HUMAN and
 * CLAIMED reopen it, as a visitor's message does. An empty name keeps the name of an existing
 * claim.
 */
enum {
    CONVERSATION_SET_READ = 1,
    CONVERSATION_SET_CLEARED = 2,
    CONVERSATION_SET_CLOSED = 4,
    CONVERSATION_SET_HUMAN = 8,
    CONVERSATION_SET_CLAIMED = 16,
    CONVERSATION_SET_RELEASED = 32,
    CONVERSATION_SET_REOPENED = 64,
};

/* CHANGE_SYNC: delete what was not seen since its generation began. */
enum { SYNC_COMPLETE = 1 };

/*
 * CHANGE_ANSWERS: the file has more changes; is complete; is missing or damaged; was deleted with
 * its agent.
 */
enum { ANSWERS_NOTE_INDEXED, ANSWERS_NOTE_BUILT, ANSWERS_NOTE_LOST, ANSWERS_NOTE_DELETED };

/* What a CHANGE_RETAIN deletes. */
enum { RETAIN_EVENTS = 1, RETAIN_CONVERSATIONS = 2 };

#define SIGNING_KEYS_BYTES 8192 /* at most, sealed */

/* The numbers come before the texts: change.c depends on it. */
struct store_change {
    uint32_t kind;   /* enum store_change_kind */
    uint32_t fields; /* CHANGE_HAS_… */
    uint64_t workspace;
    uint64_t id;
    /* maximum of pending jobs of a workspace, or of records to delete; 0: no limit */
    uint64_t limit;
    /* also counts towards ${limit}: cancelled jobs that still run. Set by the writer */
    uint64_t beside;
    int64_t expires_at; /* ms since the epoch */
    uint32_t scopes;
    uint32_t privacy;
    uint32_t code; /* HTTP status of the first answer, kept for replays */
    uint32_t attempt;
    uint32_t status; /* enum report_status */
    uint32_t result; /* enum report_result */
    int32_t score;
    uint32_t issues_high, issues_medium, issues_low, issues_passed;
    struct ulid agent, conversation, visitor;
    struct grading_facts facts; /* the last numbers, the first texts */
    struct str name;            /* of a workspace, key or project; UTF-8 */
    struct str url;             /* normalised */
    struct str hash;            /* password hash (text), or the 32 bytes of a key's SHA-256 */
    struct str match; /* If-Match: allowed versions, each a little-endian uint64; empty: any */
    struct str
        idem_key; /* 32 bytes: SHA-256 over credential, path and Idempotency-Key; empty: none */
    struct str idem_body; /* 32 bytes: SHA-256 of the body */
    struct str results;   /* JSON object of the checks */
    struct str failed;    /* as in a store_grading */
    struct str error_code, error_message;
    struct str text, data, client_id, answer,
        citations; /* of changes of the chat: see their comments */
};

/*
 * change_encode(change, out): append the wire form, in native byte order: both ends have this
 * version, and in a cluster hosts of one architecture. change_size(change): its number of bytes.
 */
size_t change_size(const struct store_change *change);
void change_encode(const struct store_change *change, struct buf *out);

/*
 * change_decode(wire, out): decode it; strings are borrowed from ${wire}. False: ${wire} is not
 * exactly one well-formed change.
 */
bool change_decode(struct str wire, struct store_change *out);

#endif
