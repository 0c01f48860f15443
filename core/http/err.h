/*
 * Errors as callers see them: one enum, one table (err.c) that turns it into HTTP status, code and a default message. api.md §2.
 */
#ifndef ASSAY_HTTP_ERR_H
#define ASSAY_HTTP_ERR_H

#include "store/store.h"

enum err {
    ERR_BAD_REQUEST,
    ERR_UNAUTHORIZED,
    ERR_INSUFFICIENT_SCOPE,
    ERR_NOT_FOUND,
    ERR_METHOD_NOT_ALLOWED,
    ERR_NOT_ACCEPTABLE,
    ERR_CONFLICT,
    ERR_GONE,
    ERR_PRECONDITION_FAILED,
    ERR_PAYLOAD_TOO_LARGE,
    ERR_UNSUPPORTED_MEDIA_TYPE,
    ERR_EXPECTATION_FAILED,
    ERR_VALIDATION_FAILED,
    ERR_IDEMPOTENCY_KEY_REUSED,
    ERR_RATE_LIMITED,
    ERR_INTERNAL,
    ERR_UNAVAILABLE,
    ERR_STORAGE_FULL,
    ERR_INVALID_COUPON,
    ERR_ORIGIN_FORBIDDEN,
    ERR_AGENT_NOT_FOUND,
    ERR_LEAD_REQUIRED,
    ERR_SIGNATURE_MISSING,
    ERR_SIGNATURE_MISMATCH,
    ERRS
};

struct err_row {
    int status;
    const char *reason; /* of the status line */
    const char *code;
    const char *message; /* default, for people */
};

const struct err_row *err_row(enum err err);

/* err_of_store(status): what a refused store operation is to the caller of the API. */
enum err err_of_store(enum store_status status);

/* err_of_status(status): the row for an HTTP status a library chose (400, 413, 417, …); ERR_INTERNAL for one unknown. */
enum err err_of_status(int status);

#endif
