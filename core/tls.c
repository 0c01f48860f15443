#include "tls.h"

#include <openssl/err.h>

static SSL_CTX *load(const struct conf_listen *listen, FILE *mistakes)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    const char *what = "TLS cannot be set up";
    bool ok = ctx != NULL && SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1;
    if (ok && !(ok = SSL_CTX_use_certificate_chain_file(ctx, listen->tls_certificate) == 1))
        what = "the certificate cannot be used";
    if (ok && !(ok = SSL_CTX_use_PrivateKey_file(ctx, listen->tls_key, SSL_FILETYPE_PEM) == 1 && SSL_CTX_check_private_key(ctx) == 1))
        what = "the key cannot be used, or is not the certificate's";
    if (ok)
        return ctx;
    char reason[256];
    ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
    ERR_clear_error();
    fprintf(mistakes, "listen %s: %s (%s, %s): %s\n", listen->address, what, listen->tls_certificate, listen->tls_key, reason);
    SSL_CTX_free(ctx);
    return NULL;
}

int tls_load(const struct conf *conf, struct tls *out, FILE *mistakes)
{
    int wrong = 0;
    *out = (struct tls){0};
    for (size_t i = 0; i < conf->listen_count; i++)
        if (conf->listen[i].tls_certificate[0] != '\0' && (out->ctx[i] = load(&conf->listen[i], mistakes)) == NULL)
            wrong++;
    if (wrong > 0)
        tls_free(out);
    return wrong;
}

void tls_free(struct tls *t)
{
    for (size_t i = 0; i < CONF_LISTEN_MAX; i++) {
        SSL_CTX_free(t->ctx[i]);
        t->ctx[i] = NULL;
    }
}
