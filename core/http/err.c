#include "core/http/err.h"

/* Columns: HTTP status, reason phrase, code, default message. */
static const struct err_row rows[ERRS] = {
    [ERR_BAD_REQUEST] = {400, "Bad Request", "bad_request",
                         "The request is malformed. Check its encoding."},
    [ERR_UNAUTHORIZED] = {401, "Unauthorized", "unauthorized",
                          "Send a valid API key as Authorization: Bearer <API_KEY>."},
    [ERR_INSUFFICIENT_SCOPE] =
        {403, "Forbidden", "insufficient_scope",
         "The credential does not have the scope that the operation needs. Use one that has it."},
    [ERR_NOT_FOUND] = {404, "Not Found", "not_found",
                       "There is nothing at this address. Check the path and the id."},
    [ERR_METHOD_NOT_ALLOWED] = {405, "Method Not Allowed", "method_not_allowed",
                                "This address does not accept the method. See the Allow header."},
    [ERR_NOT_ACCEPTABLE] = {406, "Not Acceptable", "not_acceptable",
                            "Responses are application/json. Allow it in the Accept header."},
    [ERR_CONFLICT] =
        {409, "Conflict", "conflict",
         "The request conflicts with another one. Read the current state and try again."},
    [ERR_GONE] = {410, "Gone", "gone", "The record has been deleted."},
    [ERR_PRECONDITION_FAILED] =
        {412, "Precondition Failed", "precondition_failed",
         "The record has changed. Read it again and send its current ETag in If-Match."},
    [ERR_PAYLOAD_TOO_LARGE] = {413, "Payload Too Large", "payload_too_large",
                               "The body is too large. Send a smaller one."},
    [ERR_UNSUPPORTED_MEDIA_TYPE] =
        {415, "Unsupported Media Type", "unsupported_media_type",
         "This address does not accept the body's media type. See the Accept-Post header."},
    [ERR_EXPECTATION_FAILED] = {417, "Expectation Failed", "expectation_failed",
                                "The only supported expectation is 100-continue."},
    [ERR_VALIDATION_FAILED] = {422, "Unprocessable Entity", "validation_failed",
                               "Some values are invalid. Correct the fields listed in errors."},
    [ERR_IDEMPOTENCY_KEY_REUSED] =
        {422, "Unprocessable Entity", "idempotency_key_reused",
         "This Idempotency-Key was used with another body. Send a new key."},
    [ERR_RATE_LIMITED] =
        {429, "Too Many Requests", "rate_limited",
         "Too many requests. Wait Retry-After seconds and send the request again."},
    [ERR_INTERNAL] = {500, "Internal Server Error", "internal",
                      "The server failed. Try again; if it fails again, report the X-Request-Id."},
    [ERR_UNAVAILABLE] = {503, "Service Unavailable", "unavailable",
                         "The service is unavailable at the moment. Try again shortly."},
    [ERR_STORAGE_FULL] =
        {507, "Insufficient Storage", "storage_full",
         "The storage is full. Reading and deleting still work; nothing new is stored."},
    [ERR_INVALID_COUPON] = {400, "Bad Request", "invalid_coupon",
                            "This code cannot be used. Check its spelling."},
    [ERR_ORIGIN_FORBIDDEN] =
        {403, "Forbidden", "origin_forbidden",
         "The agent is not allowed on this site. Add the site to the agent's allowed origins."},
    [ERR_AGENT_NOT_FOUND] = {404, "Not Found", "agent_not_found",
                             "There is no such agent, or it is not published. Check agent_id."},
    [ERR_LEAD_REQUIRED] =
        {403, "Forbidden", "lead_required",
         "This agent requires an address first. Send one with POST /api/v1/widget/leads."},
    [ERR_SIGNATURE_MISSING] =
        {401, "Unauthorized", "signature_missing",
         "Requests with this token must be signed. Send X-Signature: t=<unix>,v1=<hex>."},
    [ERR_SIGNATURE_MISMATCH] =
        {401, "Unauthorized", "signature_mismatch",
         "The signature is wrong. Send hmac-sha256(token, t + \".\" + raw body) in hexadecimal."},
};

/* ERR_INTERNAL: only a bug can cause this status. */
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
    [STORE_AWAY] = ERR_UNAVAILABLE,
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
