/*
 * Signatures of bulk sync requests:
 *   X-Signature: t=<unix>,v1=<hex hmac-sha256(token, t + "." + raw body)>
 * The raw body is the one that was sent, before decompression. Pure functions, any process.
 */
#ifndef ASSAY_AUTH_REQUEST_SIGNATURE_H
#define ASSAY_AUTH_REQUEST_SIGNATURE_H

#include "store/bytes.h"

#define SIGNATURE_SKEW_S 300 /* allowed difference of the clocks */

enum signature_verdict {
    SIGNATURE_GOOD,
    SIGNATURE_MALFORMED,
    SIGNATURE_OLD, /* or in the future */
    SIGNATURE_WRONG,
};

/* signature_check(header, token, body, now_s): compares in constant time. */
enum signature_verdict signature_check(struct str header, struct str token, struct str body,
                                       int64_t now_s);

/* signature_make(token, body, now_s, out): the value of the header. False: OpenSSL failed. */
#define SIGNATURE_SIZE 96
bool signature_make(struct str token, struct str body, int64_t now_s, char out[SIGNATURE_SIZE]);

#endif
