/* Errors of the API: an enum and a table with HTTP status, code and default message. */
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
    const char *message; /* the default */
};

const struct err_row *err_row(enum err err);

/* err_of_store(status): the error for a refused store operation. */
enum err err_of_store(enum store_status status);

/* err_of_status(status): the error for a status that libh2o chose; ERR_INTERNAL: unknown. */
enum err err_of_status(int status);

#endif
