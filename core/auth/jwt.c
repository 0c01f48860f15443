#include "core/auth/jwt.h"

#include "core/text/json_scan.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>

#define MAC_BYTES 32
#define JSON_DEPTH 3

static const char base64url[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* ---- base64url without padding (RFC 7515 §2) ---- */

static size_t encode(const void *bytes, size_t n, char *out)
{
    const uint8_t *p = bytes;
    size_t at = 0;
    for (size_t i = 0; i < n; i += 3) {
        uint32_t group = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
                         (i + 2 < n ? p[i + 2] : 0);
        size_t digits = n - i >= 3 ? 4 : n - i + 1;
        for (size_t d = 0; d < digits; d++)
            out[at++] = base64url[group >> (18 - 6 * d) & 63];
    }
    return at;
}

static int digit_of(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '-'             ? 62
           : c == '_'             ? 63
                                  : -1;
}

/* False also for bits after the last byte, so that each token has only one spelling. */
static bool decode(struct str text, uint8_t *out, size_t size, size_t *n)
{
    uint32_t group = 0;
    unsigned bits = 0;
    *n = 0;
    if (text.n % 4 == 1)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        int digit = digit_of(text.p[i]);
        if (digit < 0)
            return false;
        group = (group << 6 | (uint32_t)digit) & 0xffff;
        bits += 6;
        if (bits < 8)
            continue;
        bits -= 8;
        if (*n == size)
            return false;
        out[(*n)++] = (uint8_t)(group >> bits);
    }
    return (group & ((1u << bits) - 1)) == 0;
}

/* ---- HMAC ---- */

static bool mac(const struct secret *secret, struct str text, uint8_t out[MAC_BYTES])
{
    unsigned n = MAC_BYTES;
    return HMAC(EVP_sha256(), secret->key, SECRET_BYTES, (const unsigned char *)text.p, text.n, out,
                &n) != NULL &&
           n == MAC_BYTES;
}

/* ---- signing ---- */

static void ulid_claim(char *out, size_t size, size_t *n, const char *name, const struct ulid *id)
{
    char text[ULID_TEXT];
    ulid_text(id, text);
    *n += (size_t)snprintf(out + *n, size - *n, ",\"%s\":\"%.*s\"", name, ULID_TEXT, text);
}

static void position_claim(char *out, size_t size, size_t *n, const struct log_position *position)
{
    char text[LOG_POSITION_SIZE];
    if (position->log == 0)
        return;
    log_position_write(position, text);
    *n += (size_t)snprintf(out + *n, size - *n, ",\"position\":\"%s\"", text);
}

size_t jwt_sign(const struct signing_keys *keys, int64_t now_ms, const struct jwt *claims,
                char out[JWT_SIZE])
{
    const struct secret *secret = signing_keys_signing(keys, now_ms);
    char head[96], body[256];
    uint8_t signature[MAC_BYTES];
    size_t head_n = (size_t)snprintf(
        head, sizeof(head), "{\"alg\":\"HS256\",\"typ\":\"JWT\",\"kid\":\"%s\"}", secret->kid);
    size_t body_n = (size_t)snprintf(
        body, sizeof(body), "{\"iss\":\"" JWT_ISSUER "\",\"iat\":%" PRId64 ",\"exp\":%" PRId64,
        claims->iat, claims->exp);
    ulid_claim(body, sizeof(body), &body_n, "agent_id", &claims->agent);
    ulid_claim(body, sizeof(body), &body_n, "visitor_id", &claims->visitor);
    ulid_claim(body, sizeof(body), &body_n, "conversation_id", &claims->conversation);
    position_claim(body, sizeof(body), &body_n, &claims->position);
    body[body_n++] = '}';
    size_t n = encode(head, head_n, out);
    out[n++] = '.';
    n += encode(body, body_n, out + n);
    if (!mac(secret, (struct str){out, n}, signature))
        return 0;
    out[n++] = '.';
    n += encode(signature, sizeof(signature), out + n);
    out[n] = '\0';
    return n;
}

/* ---- verifying ---- */

struct parts {
    struct str head, body, signature, signed_text;
};

static bool split(struct str token, struct parts *out)
{
    const char *end = token.p + token.n, *first, *second;
    if (token.n == 0 || token.n > JWT_MAX || (first = memchr(token.p, '.', token.n)) == NULL ||
        (second = memchr(first + 1, '.', (size_t)(end - first) - 1)) == NULL ||
        memchr(second + 1, '.', (size_t)(end - second) - 1) != NULL)
        return false;
    *out = (struct parts){
        .head = {token.p, (size_t)(first - token.p)},
        .body = {first + 1, (size_t)(second - first) - 1},
        .signature = {second + 1, (size_t)(end - second) - 1},
        .signed_text = {token.p, (size_t)(second - token.p)},
    };
    return true;
}

/* A part as a json-c object, which the caller frees; NULL: it is not an object. */
static struct json_object *object_of(struct str part)
{
    uint8_t text[JWT_MAX];
    size_t n;
    enum json_verdict verdict;
    if (!decode(part, text, sizeof(text), &n))
        return NULL;
    struct json_object *object =
        json_scan_parse((struct str){(const char *)text, n}, JSON_DEPTH, &verdict);
    if (json_object_is_type(object, json_type_object))
        return object;
    json_object_put(object);
    return NULL;
}

/* n 0: missing or not a string. */
static struct str text_member(struct json_object *object, const char *name)
{
    struct json_object *value = NULL;
    if (!json_object_object_get_ex(object, name, &value) ||
        !json_object_is_type(value, json_type_string))
        return (struct str){"", 0};
    return (struct str){json_object_get_string(value), (size_t)json_object_get_string_len(value)};
}

static bool time_member(struct json_object *object, const char *name, int64_t *out)
{
    struct json_object *value = NULL;
    if (!json_object_object_get_ex(object, name, &value) ||
        !json_object_is_type(value, json_type_int))
        return false;
    *out = json_object_get_int64(value);
    return *out >= 0 && *out < INT64_MAX / 2;
}

/* The key that the header names, if the header is as jwt_sign writes it. */
static const struct secret *secret_of(const struct signing_keys *keys, struct str head,
                                      int64_t now_ms, int64_t ttl_ms)
{
    const struct secret *secret = NULL;
    struct json_object *object = object_of(head);
    struct str type = text_member(object, "typ");
    if (object != NULL && str_eq(text_member(object, "alg"), STR("HS256")) &&
        (type.n == 0 || str_eq(type, STR("JWT"))) &&
        !json_object_object_get_ex(object, "crit", NULL))
        secret = signing_keys_find(keys, text_member(object, "kid"), now_ms,
                                   ttl_ms + JWT_LEEWAY_S * 1000);
    json_object_put(object);
    return secret;
}

/* A token of a server without a cluster has none. */
static bool position_member(struct json_object *object, struct log_position *out)
{
    *out = (struct log_position){0};
    return !json_object_object_get_ex(object, "position", NULL) ||
           log_position_read(text_member(object, "position"), out);
}

static bool claims_of(struct str body, int64_t now_s, struct jwt *out)
{
    int64_t not_before = 0;
    struct json_object *object = object_of(body);
    bool good = object != NULL && str_eq(text_member(object, "iss"), STR(JWT_ISSUER)) &&
                time_member(object, "iat", &out->iat) && time_member(object, "exp", &out->exp) &&
                ulid_parse(text_member(object, "agent_id"), &out->agent) &&
                ulid_parse(text_member(object, "visitor_id"), &out->visitor) &&
                ulid_parse(text_member(object, "conversation_id"), &out->conversation) &&
                position_member(object, &out->position);
    if (good && json_object_object_get_ex(object, "nbf", NULL))
        good = time_member(object, "nbf", &not_before);
    json_object_put(object);
    return good && out->exp + JWT_LEEWAY_S > now_s && out->iat - JWT_LEEWAY_S <= now_s &&
           not_before - JWT_LEEWAY_S <= now_s;
}

bool jwt_verify(const struct signing_keys *keys, struct str token, int64_t now_ms, int64_t ttl_ms,
                struct jwt *out)
{
    struct parts parts;
    uint8_t sent[MAC_BYTES], made[MAC_BYTES];
    size_t n;
    if (!split(token, &parts) || !decode(parts.signature, sent, sizeof(sent), &n) || n != MAC_BYTES)
        return false;
    const struct secret *secret = secret_of(keys, parts.head, now_ms, ttl_ms);
    /* the body is parsed only after its signature is verified */
    return secret != NULL && mac(secret, parts.signed_text, made) &&
           CRYPTO_memcmp(sent, made, MAC_BYTES) == 0 && claims_of(parts.body, now_ms / 1000, out);
}
