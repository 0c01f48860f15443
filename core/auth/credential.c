#include "core/auth/credential.h"

#include <openssl/evp.h>
#include <sys/random.h>
#include <zlib.h>

static const char base62[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

static const char *const prefixes[CREDENTIAL_KINDS] = {
    [CREDENTIAL_KEY] = "asy_key_", [CREDENTIAL_TOKEN] = "asy_wp_"};

const struct credential_scope credential_scopes[] = {
    {"reports:read", SCOPE_REPORTS_READ},
    {"reports:write", SCOPE_REPORTS_WRITE},
    {"projects:read", SCOPE_PROJECTS_READ},
    {"projects:write", SCOPE_PROJECTS_WRITE},
    {"conversations:read", SCOPE_CONVERSATIONS_READ},
    {"conversations:write", SCOPE_CONVERSATIONS_WRITE},
    {"wp:sync", SCOPE_WP_SYNC},
    {.name = NULL},
};

const char *credential_looks_like(struct str text)
{
    /* a JWT starts with the base64url of {" (RFC 7519) */
    static const struct {
        struct str prefix;
        const char *name;
    } rows[] = {
        {STR("asy_key_"), "an API key"},
        {STR("asy_wp_"), "a workspace token"},
        {STR("eyJ"), "a visitor's token"},
        {STR("anon_"), "a visitor's anonymous id"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (text.n > rows[i].prefix.n && memcmp(text.p, rows[i].prefix.p, rows[i].prefix.n) == 0)
            return rows[i].name;
    return NULL;
}

const char *credential_prefix(enum credential_kind kind)
{
    return prefixes[kind];
}

/* CRC-32 of ${text} as CREDENTIAL_CHECK base62 digits, which is enough: 62^6 > 2^32. */
static void checksum(const char *text, size_t n, char out[CREDENTIAL_CHECK])
{
    unsigned long crc = crc32(0, (const unsigned char *)text, (unsigned)n);
    for (size_t i = CREDENTIAL_CHECK; i-- > 0; crc /= 62)
        out[i] = base62[crc % 62];
}

/* ${count} base62 characters without bias: bytes from 248 (4 × 62) on are not used. */
static bool random_base62(char *out, size_t count)
{
    size_t n = 0;
    while (n < count) {
        unsigned char bytes[64];
        if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
            return false;
        for (size_t i = 0; i < sizeof(bytes) && n < count; i++)
            if (bytes[i] < 248)
                out[n++] = base62[bytes[i] % 62];
    }
    return true;
}

bool credential_new(const char *prefix, char out[CREDENTIAL_SIZE])
{
    size_t n = strlen(prefix);
    out[0] = '\0';
    if (n + CREDENTIAL_RANDOM + CREDENTIAL_CHECK >= CREDENTIAL_SIZE ||
        !random_base62(out + n, CREDENTIAL_RANDOM)) {
        out[0] = '\0';
        return false;
    }
    memcpy(out, prefix, n);
    n += CREDENTIAL_RANDOM;
    checksum(out, n, out + n);
    out[n + CREDENTIAL_CHECK] = '\0';
    return true;
}

bool credential_parse(struct str text, enum credential_kind *kind)
{
    for (unsigned i = 0; i < CREDENTIAL_KINDS; i++) {
        size_t n = strlen(prefixes[i]);
        if (text.n != n + CREDENTIAL_RANDOM + CREDENTIAL_CHECK ||
            memcmp(text.p, prefixes[i], n) != 0)
            continue;
        for (size_t at = n; at < text.n; at++)
            if (text.p[at] == '\0' || strchr(base62, text.p[at]) == NULL)
                return false;
        char check[CREDENTIAL_CHECK];
        checksum(text.p, text.n - CREDENTIAL_CHECK, check);
        *kind = (enum credential_kind)i;
        return memcmp(check, text.p + text.n - CREDENTIAL_CHECK, CREDENTIAL_CHECK) == 0;
    }
    return false;
}

/* Once per thread: fetching a digest and creating a context cost more than a hash. */
static _Thread_local EVP_MD *digest;
static _Thread_local EVP_MD_CTX *context;

void credential_hash_end(void)
{
    EVP_MD_free(digest);
    EVP_MD_CTX_free(context);
    digest = NULL;
    context = NULL;
}

bool credential_hash(struct str text, uint8_t out[CREDENTIAL_HASH])
{
    if (digest == NULL)
        digest = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (context == NULL)
        context = EVP_MD_CTX_new();
    return digest != NULL && context != NULL && EVP_DigestInit_ex2(context, digest, NULL) == 1 &&
           EVP_DigestUpdate(context, text.p, text.n) == 1 &&
           EVP_DigestFinal_ex(context, out, NULL) == 1;
}
