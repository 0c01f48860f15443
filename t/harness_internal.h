/* What harness_client.c and harness_raw.c share. */
#ifndef ASSAY_T_HARNESS_INTERNAL_H
#define ASSAY_T_HARNESS_INTERNAL_H

#include "harness.h"

/* Bytes that grow; a NUL stands behind them. */
struct bytes {
    char *data;
    size_t size;
};
void bytes_add(struct bytes *b, const char *data, size_t size);

/* bytes_shown(data, size): as one can read them in a message. */
char *bytes_shown(const char *data, size_t size);

/*
 * response_head(r, head): fill in status and headers from ${head}, which ends with its empty line. response_json(r): parse its body, where
 * it is JSON.
 */
void response_head(struct response *r, const char *head);
void response_json(struct response *r);

#endif
