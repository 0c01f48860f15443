/*
 * A change: one domain operation that writes, as data. A handler fills one in, a channel carries it to the writer (change_encode,
 * change_decode), and store_apply carries it out. One flat record for all kinds; the table in change.c says which members each kind
 * needs, and a member a kind does not use is zero.
 */
#ifndef ASSAY_CHANGE_H
#define ASSAY_CHANGE_H

#include "store/bytes.h"
#include "store/ulid.h"

enum store_change_kind {
    CHANGE_WORKSPACE_CREATE = 1, /* name → id */
    CHANGE_WORKSPACE_DELETE,     /* id: gone at once, purged in slices */
    CHANGE_KEY_CREATE,           /* workspace, name, scopes, hash, expires_at → id */
    CHANGE_KEY_REVOKE,           /* id; workspace 0: any */
    /*
     * id, hash, expires_at (of the OLD key: the end of the overlap, never later than it was) → id of the new key: same name, scopes,
     * workspace and length of life. Emits EVENT_KEY_REVOKED for the old one, so that nobody remembers its old end.
     */
    CHANGE_KEY_ROTATE,
    CHANGE_KEY_TOUCH, /* id: last_used_at becomes now; emits no event and bumps no version */
    CHANGE_REPORT_CREATE, /* workspace, url, name (project), privacy, hash, idem_*, code, limit → id, version */
    CHANGE_REPORT_UPDATE, /* workspace, id, fields, privacy, hash, match, limit → id, version */
    CHANGE_REPORT_DELETE, /* workspace, id, match → id */
    CHANGE_REPORT_FINISH, /* id, attempt, status, score, result, issues, results | error_code, error_message */
    CHANGE_REPORT_DIED, /* id, attempt: an auditor died holding this job alone; the second time → failed, too_complex */
    CHANGE_PROJECT_DELETE, /* workspace, id, match → id; reports invisible at once */
    /*
     * limit: at most that many records of what is erased or over its time, or results to be rated
     * -> id: how many; STORE_NOT_FOUND when nothing was left
     */
    CHANGE_PURGE,
    CHANGE_AGENT_CREATE, /* workspace, name, text (origins), data (settings), fields: AGENT_HAS_PUBLISHED, …_LEAD → first, version */
    /* workspace (0: any), agent, match, fields: which of name, text, data were sent, and the two flags' new values → first, version */
    CHANGE_AGENT_UPDATE,
    CHANGE_AGENT_DELETE, /* workspace (0: any), agent: gone at once, with all that visitors left with it */
    /*
     * agent, hash (digest of the secret that was sent, 32 bytes; empty: none), match (digest of the secret a new visitor gets), url, data
     * (JSON about the page), expires_at (a conversation begun before is not gone on with) → first: conversation, second: visitor, code: 1
     * where the visitor is new
     */
    CHANGE_VISITOR_INIT,
    CHANGE_VISITOR_ERASE, /* agent, visitor: with conversations, messages, leads, events and ratings; STORE_NOT_FOUND: gone already */
    /*
     * A visitor's message and, unless a human has the conversation, its answer. agent, visitor, conversation, client_id, text, url, data
     * (page context), answer, citations, fields, idem_*, code → first: message, second: answer
     */
    CHANGE_MESSAGE_POST,
    CHANGE_MESSAGE_REPLY, /* an operator's. workspace, conversation, id (key), text, idem_*, code → first */
    CHANGE_NOTE, /* an operator's. workspace, conversation, id (key), name (empty: the claim's), text, idem_*, code → first */
    /* by the visitor: agent, visitor; by an operator: workspace, id (key), name (with a claim). conversation, fields → version */
    CHANGE_CONVERSATION_SET,
    CHANGE_LEAD, /* agent, visitor, conversation, hash (digest of the lower-cased address), text (address), name, url (phone), data, idem_* → first, code */
    CHANGE_EVENTS, /* agent, visitor, conversation, data: rows of event_pack → id: how many */
    CHANGE_RATING, /* agent, visitor, conversation, score (1–5), text (comment), fields → first */
    /* fields: one of RETAIN_…; expires_at: what was made before; limit: records → id: how many went; STORE_NOT_FOUND when none was left */
    CHANGE_RETAIN,
    /*
     * A batch of a shop's posts or products: all of it in one commit. workspace, agent, name (the site's host), status (enum synced_kind),
     * fields: SYNC_COMPLETE, text (sync_id), data: rows of sync_pack, idem_*, code → version: the generation, id: how many items its
     * completion deleted, the marks of synced_mark. STORE_STALE: that generation is older than the last complete one; STORE_AGAIN: a SYNC_SAME
     * row is not the same any more
     */
    CHANGE_SYNC,
    /* An agent's coupons as a whole. workspace, agent, text (sync_id), data: rows of coupon_pack, idem_*, code → as CHANGE_SYNC */
    CHANGE_COUPONS,
    /*
     * What happened to an agent's answer file (answers_log.h). agent, attempt: the file's
     * generation, fields: ANSWERS_NOTE_…, id: number of
     * the last change in the file, code: ANSWERS_FORMAT of the sender. STORE_STALE: the file is not
     * the agent's any more, or not in that state, or the sender is of another version
     */
    CHANGE_ANSWERS,
    /*
     * Of the maintenance thread: maintenance.h. workspace, id (project; 0: the workspace), data:
     * numbers of reports of it that are to go, 8 bytes each; none: no report is left, so what else
     * belongs to it is to go -> id: how many records. STORE_NOT_FOUND: it is not dying
     */
    CHANGE_PURGE_DELETED,
    /*
     * workspace, data: struct index_install and what follows it -> version, id: how many reports,
     * where the index was rebuilt; STORE_STALE
     */
    CHANGE_INDEX_INSTALL,
    /*
     * workspace, id: a segment that is missing or damaged; 0: the index as a whole. It is rebuilt.
     * STORE_STALE: the segment is not in use any more
     */
    CHANGE_INDEX_LOST,
    /* workspace: records of the log that were merged go -> id: how many; 0: none was left */
    CHANGE_INDEX_SWEEP,
    CHANGE_COUPON_STAGE, /* agent, visitor, conversation, text (code), expires_at → first: the conversation. The last twenty stay */
    CHANGE_KINDS
};

/* Which optional members of a CHANGE_REPORT_UPDATE were sent. */
enum { CHANGE_HAS_PRIVACY = 1, CHANGE_HAS_PASSWORD = 2, CHANGE_REGENERATE = 4 };

/* Which members of a CHANGE_AGENT_UPDATE were sent; the flags of an agent, and their values. */
enum {
    AGENT_HAS_NAME = 1,
    AGENT_HAS_ORIGINS = 2,
    AGENT_HAS_SETTINGS = 4,
    AGENT_HAS_PUBLISHED = 8,
    AGENT_HAS_LEAD = 16,
    AGENT_PUBLISHED = 32,
    AGENT_LEAD = 64,
};

/* Of a CHANGE_MESSAGE_POST: the answer is a guess. Of a CHANGE_RATING: a comment was sent. */
enum { MESSAGE_LOW_CONFIDENCE = 1, RATING_HAS_COMMENT = 1 };

/*
 * What a CHANGE_CONVERSATION_SET does; each is idempotent. STORE_EXISTS: another operator has claimed
 * it. A closed conversation is neither claimed nor waiting: CLOSED releases it, and HUMAN and CLAIMED
 * reopen it, as a visitor's message does. An empty name keeps the name of a claim that is there.
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

/* Of a CHANGE_SYNC: what was not seen since its generation began is deleted. */
enum { SYNC_COMPLETE = 1 };

/*
 * Of a CHANGE_ANSWERS: the file has more changes; is complete; is missing or damaged; is deleted,
 * with its agent.
 */
enum { ANSWERS_NOTE_INDEXED, ANSWERS_NOTE_BUILT, ANSWERS_NOTE_LOST, ANSWERS_NOTE_DELETED };

/* What a CHANGE_RETAIN takes away. */
enum { RETAIN_EVENTS = 1, RETAIN_CONVERSATIONS = 2 };

struct store_change {
    uint32_t kind;   /* enum store_change_kind */
    uint32_t fields; /* CHANGE_HAS_… */
    uint64_t workspace;
    uint64_t id;
    uint64_t limit;  /* pending jobs a workspace may have; records a purge may take; 0: no limit */
    uint64_t beside; /* counts towards ${limit} too: jobs withdrawn and still out. By the writer */
    int64_t expires_at; /* ms since the epoch */
    uint32_t scopes;
    uint32_t privacy;
    uint32_t code; /* HTTP status the first request answers, kept for replays */
    uint32_t attempt;
    uint32_t status; /* enum report_status */
    uint32_t result; /* enum report_result */
    int32_t score;
    uint32_t issues_high, issues_medium, issues_low, issues_passed;
    struct ulid agent, conversation, visitor;
    struct str name; /* of a workspace, key or project; UTF-8 */
    struct str url;  /* normalised */
    struct str hash; /* password hash (text), or the 32 bytes of a key's SHA-256 */
    struct str
        match; /* If-Match: the versions that may be changed, each a little-endian uint64; empty: any */
    struct str
        idem_key; /* 32 bytes: SHA-256 over credential, path and Idempotency-Key; empty: none */
    struct str idem_body; /* 32 bytes: SHA-256 of the body */
    struct str results;   /* JSON object of the checks */
    struct str error_code, error_message;
    struct str text, data, client_id, answer,
        citations; /* of the widget's changes: see their rows */
};

/*
 * change_encode(change, out): append the wire form. Native byte order: both ends are this host, this version of the record.
 * change_size(change): how many bytes that is.
 */
size_t change_size(const struct store_change *change);
void change_encode(const struct store_change *change, struct buf *out);

/* change_decode(wire, out): read it back; strings are borrowed from ${wire}. False when ${wire} is not exactly one well-formed change. */
bool change_decode(struct str wire, struct store_change *out);

#endif
