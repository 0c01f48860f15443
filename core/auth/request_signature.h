/*
 * Signed requests of bulk sync (api.md §7):
 *   X-Signature: t=<unix>,v1=<hex hmac-sha256(token, t + "." + raw body)>
 * The raw body is what was sent, before decompression. Pure functions, any process.
 */
#ifndef ASSAY_AUTH_REQUEST_SIGNATURE_H
#define ASSAY_AUTH_REQUEST_SIGNATURE_H

#include "store/bytes.h"

#define SIGNATURE_SKEW_S 300 /* how far the signer's clock may be from ours */

enum signature_verdict {
    SIGNATURE_GOOD,
    SIGNATURE_MALFORMED,
    SIGNATURE_OLD, /* or from the future */
    SIGNATURE_WRONG,
};

/* signature_judge(header, token, body, now_s): compared in constant time. */
enum signature_verdict signature_judge(struct str header, struct str token, struct str body,
                                       int64_t now_s);

/* signature_make(token, body, now_s, out): the header's value. False when OpenSSL fails. */
#define SIGNATURE_SIZE 96
bool signature_make(struct str token, struct str body, int64_t now_s, char out[SIGNATURE_SIZE]);

#endif
