#include "core/web/report_cookie.h"

#include "core/auth/password.h"
#include "core/text/form.h"

#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

#define MAC_BYTES 32

/* Signed texts of other purposes, such as visitors' tokens, never begin like this. */
#define PURPOSE "assay report cookie"

static bool mac(const struct secret *secret, const struct store_report *report, int64_t expires_s,
                uint8_t out[MAC_BYTES])
{
    char text[sizeof(PURPOSE) + 2 * sizeof(" 18446744073709551615") + PASSWORD_HASH_SIZE];
    unsigned size = MAC_BYTES;
    struct str hash = report->password_hash;
    if (report->privacy != PRIVACY_PASSWORD || hash.n == 0 || hash.n >= PASSWORD_HASH_SIZE)
        return false;
    int n = snprintf(text, sizeof(text), PURPOSE " %" PRIu64 " %" PRId64 " %.*s", report->id,
                     expires_s, (int)hash.n, hash.p);
    return HMAC(EVP_sha256(), secret->key, SECRET_BYTES, (const unsigned char *)text, (size_t)n,
                out, &size) != NULL &&
           size == MAC_BYTES;
}

/* The value for one key and expiry; 0: none. */
static size_t value_of(const struct secret *secret, const struct store_report *report,
                       int64_t expires_s, char out[REPORT_COOKIE_SIZE])
{
    uint8_t made[MAC_BYTES];
    if (!mac(secret, report, expires_s, made))
        return 0;
    int n = snprintf(out, REPORT_COOKIE_SIZE, "%s.%" PRId64 ".", secret->kid, expires_s);
    for (size_t i = 0; i < MAC_BYTES; i++)
        n += snprintf(out + n, REPORT_COOKIE_SIZE - (size_t)n, "%02x", made[i]);
    return (size_t)n;
}

size_t report_cookie_make(const struct signing_keys *keys, const struct store_report *report,
                          int64_t now_ms, char out[REPORT_COOKIE_SIZE])
{
    return value_of(signing_keys_signing(keys, now_ms), report,
                    (now_ms + REPORT_COOKIE_LIFE_MS) / 1000, out);
}

/* "KID.EXPIRY.…" */
static bool split(struct str value, struct str *kid, uint64_t *expires_s)
{
    const char *first = value.n == 0 ? NULL : memchr(value.p, '.', value.n), *second;
    const char *end = first == NULL ? NULL : value.p + value.n;
    if (first == NULL || (second = memchr(first + 1, '.', (size_t)(end - first) - 1)) == NULL)
        return false;
    *kid = (struct str){value.p, (size_t)(first - value.p)};
    return number_parse((struct str){first + 1, (size_t)(second - first) - 1}, INT64_MAX,
                        expires_s);
}

bool report_cookie_valid(const struct signing_keys *keys, const struct store_report *report,
                         int64_t now_ms, struct str value)
{
    char want[REPORT_COOKIE_SIZE];
    struct str kid;
    uint64_t expires_s;
    if (!split(value, &kid, &expires_s) || (int64_t)expires_s <= now_ms / 1000)
        return false;
    const struct secret *secret = signing_keys_find(keys, kid, now_ms, REPORT_COOKIE_LIFE_MS);
    /* the whole value is compared, so that it has one spelling */
    size_t n = secret == NULL ? 0 : value_of(secret, report, (int64_t)expires_s, want);
    return n > 0 && n == value.n && CRYPTO_memcmp(want, value.p, n) == 0;
}
