#include "core/auth/request_signature.h"

#include "core/text/chars.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <inttypes.h>
#include <stdio.h>

#define MAC_BYTES 32
#define TIME_DIGITS_MAX 12

static bool mac_read(struct str hex, uint8_t out[MAC_BYTES])
{
    if (hex.n != 2 * MAC_BYTES)
        return false;
    for (size_t i = 0; i < MAC_BYTES; i++) {
        int high = hex_digit(hex.p[2 * i]), low = hex_digit(hex.p[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static bool time_read(struct str digits, int64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < digits.n; i++) {
        if (digits.p[i] < '0' || digits.p[i] > '9')
            return false;
        *out = *out * 10 + (digits.p[i] - '0');
    }
    return digits.n > 0;
}

/* Split "t=…,v1=…"; the digits are signed as they are written. */
static bool header_read(struct str header, struct str *digits, struct str *hex)
{
    const char *comma = header.n == 0 ? NULL : memchr(header.p, ',', header.n);
    if (comma == NULL || header.n < 2 || memcmp(header.p, "t=", 2) != 0)
        return false;
    *digits = (struct str){header.p + 2, (size_t)(comma - header.p) - 2};
    struct str rest = {comma + 1, header.n - (size_t)(comma + 1 - header.p)};
    while (rest.n > 0 && *rest.p == ' ')
        rest = (struct str){rest.p + 1, rest.n - 1};
    if (digits->n > TIME_DIGITS_MAX || rest.n < 3 || memcmp(rest.p, "v1=", 3) != 0)
        return false;
    *hex = (struct str){rest.p + 3, rest.n - 3};
    return true;
}

static bool mac_make(struct str token, struct str digits, struct str body, uint8_t out[MAC_BYTES])
{
    static char digest[] = "SHA256";
    const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", digest, 0),
                                 OSSL_PARAM_construct_end()};
    size_t n = 0;
    EVP_MAC *hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *mac = hmac == NULL ? NULL : EVP_MAC_CTX_new(hmac);
    bool good = mac != NULL &&
                EVP_MAC_init(mac, (const unsigned char *)token.p, token.n, params) == 1 &&
                EVP_MAC_update(mac, (const unsigned char *)digits.p, digits.n) == 1 &&
                EVP_MAC_update(mac, (const unsigned char *)".", 1) == 1 &&
                EVP_MAC_update(mac, (const unsigned char *)body.p, body.n) == 1 &&
                EVP_MAC_final(mac, out, &n, MAC_BYTES) == 1;
    EVP_MAC_CTX_free(mac);
    EVP_MAC_free(hmac);
    return good && n == MAC_BYTES;
}

enum signature_verdict signature_check(struct str header, struct str token, struct str body,
                                       int64_t now_s)
{
    struct str digits, hex;
    uint8_t sent[MAC_BYTES], ours[MAC_BYTES];
    int64_t t;
    if (!header_read(header, &digits, &hex) || !time_read(digits, &t) || !mac_read(hex, sent))
        return SIGNATURE_MALFORMED;
    if (t < now_s - SIGNATURE_SKEW_S || t > now_s + SIGNATURE_SKEW_S)
        return SIGNATURE_OLD;
    return mac_make(token, digits, body, ours) && CRYPTO_memcmp(sent, ours, MAC_BYTES) == 0
               ? SIGNATURE_GOOD
               : SIGNATURE_WRONG;
}

bool signature_make(struct str token, struct str body, int64_t now_s, char out[SIGNATURE_SIZE])
{
    uint8_t mac[MAC_BYTES];
    int n = snprintf(out, SIGNATURE_SIZE, "t=%" PRId64 ",v1=", now_s);
    const struct str digits = {out + 2, (size_t)n - 6};
    if (!mac_make(token, digits, body, mac))
        return false;
    for (size_t i = 0; i < MAC_BYTES; i++)
        n += snprintf(out + n, SIGNATURE_SIZE - (size_t)n, "%02x", mac[i]);
    return true;
}
