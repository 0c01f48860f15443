#include "core/http/err.h"

/* Columns: HTTP status, its reason phrase, the code programs read, the message people read unless a handler has a better one. */
static const struct err_row rows[ERRS] = {
    [ERR_BAD_REQUEST] = {400, "Bad Request", "bad_request", "The request is malformed: check its encoding."},
    [ERR_UNAUTHORIZED] = {401, "Unauthorized", "unauthorized", "Send a valid API key as Authorization: Bearer <API_KEY>."},
    [ERR_INSUFFICIENT_SCOPE] = {403, "Forbidden", "insufficient_scope", "This credential does not have the scope the operation needs."},
    [ERR_NOT_FOUND] = {404, "Not Found", "not_found", "There is nothing at this address: check the path and the id."},
    [ERR_METHOD_NOT_ALLOWED] = {405, "Method Not Allowed", "method_not_allowed", "This address does not take that method: see the Allow header."},
    [ERR_NOT_ACCEPTABLE] = {406, "Not Acceptable", "not_acceptable", "Answers are application/json: let the Accept header allow it."},
    [ERR_CONFLICT] = {409, "Conflict", "conflict", "Another request got in the way: look at the present state and try again."},
    [ERR_GONE] = {410, "Gone", "gone", "The record was deleted in the meantime."},
    [ERR_PRECONDITION_FAILED] = {412, "Precondition Failed", "precondition_failed", "The record has changed since: read it again and send its present ETag as If-Match."},
    [ERR_PAYLOAD_TOO_LARGE] = {413, "Payload Too Large", "payload_too_large", "The body is too large: send a smaller one."},
    [ERR_UNSUPPORTED_MEDIA_TYPE] = {415, "Unsupported Media Type", "unsupported_media_type", "The body's type is not taken here: see the Accept-Post header."},
    [ERR_EXPECTATION_FAILED] = {417, "Expectation Failed", "expectation_failed", "The only expectation that can be met is 100-continue."},
    [ERR_VALIDATION_FAILED] = {422, "Unprocessable Entity", "validation_failed", "Some values are not valid: see errors for what to change."},
    [ERR_IDEMPOTENCY_KEY_REUSED] = {422, "Unprocessable Entity", "idempotency_key_reused", "This Idempotency-Key was used with another body: send a new key."},
    [ERR_RATE_LIMITED] = {429, "Too Many Requests", "rate_limited", "Too many requests: wait for Retry-After seconds and send it once more."},
    [ERR_INTERNAL] = {500, "Internal Server Error", "internal", "Something went wrong on our side: try again, and report the X-Request-Id if it stays."},
    [ERR_UNAVAILABLE] = {503, "Service Unavailable", "unavailable", "The service cannot do this at the moment: try again shortly."},
    [ERR_STORAGE_FULL] = {507, "Insufficient Storage", "storage_full", "The storage is full: reading and deleting go on, nothing new can be kept."},
    [ERR_INVALID_COUPON] = {400, "Bad Request", "invalid_coupon", "This code cannot be used: check its spelling."},
    [ERR_ORIGIN_FORBIDDEN] = {403, "Forbidden", "origin_forbidden", "This agent is not shown on this site: add its origin to the agent's allowed origins."},
    [ERR_AGENT_NOT_FOUND] = {404, "Not Found", "agent_not_found", "There is no such agent, or it is not published: check agent_id."},
    [ERR_LEAD_REQUIRED] = {403, "Forbidden", "lead_required", "This agent wants an address before it chats: send one by POST /api/v1/widget/leads."},
    [ERR_SIGNATURE_MISSING] = {401, "Unauthorized", "signature_missing", "Requests under this token must be signed: send X-Signature: t=<unix>,v1=<hex>."},
    [ERR_SIGNATURE_MISMATCH] = {401, "Unauthorized", "signature_mismatch", "The signature does not fit: it is hmac-sha256(token, t + \".\" + raw body) in hexadecimal."},
};

/* What the caller of the API is told. A status that only a mistake of ours can bring about is ERR_INTERNAL. */
static const enum err of_store[STORE_STATUSES] = {
    [STORE_OK] = ERR_INTERNAL,
    [STORE_NOT_FOUND] = ERR_NOT_FOUND,
    [STORE_EXISTS] = ERR_CONFLICT,
    [STORE_PRECONDITION] = ERR_PRECONDITION_FAILED,
    [STORE_KEY_REUSED] = ERR_IDEMPOTENCY_KEY_REUSED,
    [STORE_NO_PASSWORD] = ERR_VALIDATION_FAILED,
    [STORE_NOT_PROTECTED] = ERR_VALIDATION_FAILED,
    [STORE_QUEUE_FULL] = ERR_UNAVAILABLE,
    [STORE_STALE] = ERR_CONFLICT,
    [STORE_FULL] = ERR_STORAGE_FULL,
    [STORE_BUSY] = ERR_UNAVAILABLE,
    [STORE_OTHER_FORMAT] = ERR_UNAVAILABLE,
    [STORE_INVALID] = ERR_INTERNAL,
    [STORE_CORRUPT] = ERR_INTERNAL,
    [STORE_AGAIN] = ERR_INTERNAL,
    [STORE_IO] = ERR_UNAVAILABLE,
    [STORE_TOO_MANY] = ERR_CONFLICT,
    [STORE_REBUILDING] = ERR_UNAVAILABLE,
    [STORE_DAMAGED] = ERR_UNAVAILABLE,
};

const struct err_row *err_row(enum err err)
{
    return &rows[(unsigned)err < ERRS ? err : ERR_INTERNAL];
}

enum err err_of_store(enum store_status status)
{
    return (unsigned)status < STORE_STATUSES ? of_store[status] : ERR_INTERNAL;
}

enum err err_of_status(int status)
{
    for (unsigned i = 0; i < ERRS; ++i)
        if (rows[i].status == status)
            return (enum err)i;
    return ERR_INTERNAL;
}
