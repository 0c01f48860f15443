/*
 * GET /widget.js, the newest version, cached for five minutes; and GET /widget/{version}/widget.js,
 * which never changes, for pages that pin it with integrity="…". Other versions are 404.
 */
#include "core/widget/script.h"

#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

void script_version_text(char out[SCRIPT_VERSION_SIZE])
{
    snprintf(out, SCRIPT_VERSION_SIZE, "%016" PRIx64, script_file.version);
}

bool script_integrity(char out[SCRIPT_INTEGRITY_SIZE])
{
    static const char algorithm[] = "sha384-";
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (EVP_Digest(script_file.text.p, script_file.text.n, digest, &size, EVP_sha384(), NULL) !=
            1 ||
        size != 48)
        return false;
    memcpy(out, algorithm, sizeof(algorithm));
    EVP_EncodeBlock((unsigned char *)out + sizeof(algorithm) - 1, digest, (int)size);
    return true;
}

static void serve(struct request *r, const char *cache_control)
{
    reply_header(r, "cache-control", str_of(cache_control));
    if (!reply_etag(r, script_file.version))
        reply_fixed(r, "text/javascript; charset=utf-8", script_file.text, script_file.gzip);
}

void script_newest(struct request *r)
{
    serve(r, "public, max-age=300");
}

void script_pinned(struct request *r)
{
    char version[SCRIPT_VERSION_SIZE];
    script_version_text(version);
    if (str_eq(r->args[0], str_of(version))) {
        serve(r, "public, max-age=31536000, immutable");
        return;
    }
    reply_header(r, "cache-control", STR("no-store"));
    reply_error(r, ERR_NOT_FOUND,
                "This server has version %s of the widget. Use the address that `assay agent "
                "embed` prints.",
                version);
}
