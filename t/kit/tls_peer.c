#include "t/kit/tls_peer.h"

#include "t/kit/tls.h"

#include <check.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static SSL_SESSION *session_new(SSL *ssl)
{
    const struct tls_peer *p = SSL_get_app_data(ssl);
    struct channel_tls_key key;
    memset(key.bytes, p->kind->fill, sizeof(key.bytes));
    SSL_SESSION *session = SSL_SESSION_new();
    ck_assert(SSL_SESSION_set1_master_key(session, key.bytes, sizeof(key.bytes)) == 1 &&
              SSL_SESSION_set_cipher(
                  session, SSL_CIPHER_find(ssl, (const unsigned char[]){0x13, 0x01})) == 1 &&
              SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1);
    return session;
}

static int find_session(SSL *ssl, const unsigned char *id, size_t size, SSL_SESSION **out)
{
    const struct tls_peer *p = SSL_get_app_data(ssl);
    *out = NULL;
    if (str_eq((struct str){(const char *)id, size}, str_of(p->kind->identity)))
        *out = session_new(ssl);
    return 1;
}

static int use_session(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *size,
                       SSL_SESSION **out)
{
    const struct tls_peer *p = SSL_get_app_data(ssl);
    (void)md;
    *id = (const unsigned char *)p->kind->identity;
    *size = strlen(p->kind->identity);
    *out = session_new(ssl);
    return 1;
}

static void count_message(int sent, int version, int type, const void *bytes, size_t size, SSL *ssl,
                          void *arg)
{
    struct tls_peer *p = arg;
    (void)version, (void)ssl;
    if (!sent && type == SSL3_RT_HANDSHAKE && size > 0)
        p->received[*(const unsigned char *)bytes]++;
}

static void use_certificate(SSL_CTX *ctx)
{
    char dir[] = "/tmp/assay-tls-peer-XXXXXX", certificate[64], key[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(certificate, sizeof(certificate), "%s/certificate", dir);
    snprintf(key, sizeof(key), "%s/key", dir);
    EVP_PKEY_free(tls_pair(certificate, key, false, 1));
    ck_assert(SSL_CTX_use_certificate_file(ctx, certificate, SSL_FILETYPE_PEM) == 1 &&
              SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) == 1);
    ck_assert(unlink(certificate) == 0 && unlink(key) == 0 && rmdir(dir) == 0);
}

static SSL_CTX *context_new(const struct tls_peer_kind *kind)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_method());
    ck_assert(SSL_CTX_set_max_proto_version(ctx, kind->tls_1_2 ? TLS1_2_VERSION : TLS1_3_VERSION));
    if (kind->has_certificate)
        use_certificate(ctx);
    if (kind->allows_psk_ke)
        SSL_CTX_set_options(ctx, SSL_OP_ALLOW_NO_DHE_KEX);
    if (kind->ciphers != NULL)
        ck_assert_int_eq(SSL_CTX_set_ciphersuites(ctx, kind->ciphers), 1);
    if (kind->identity != NULL && kind->is_server)
        SSL_CTX_set_psk_find_session_callback(ctx, find_session);
    else if (kind->identity != NULL)
        SSL_CTX_set_psk_use_session_callback(ctx, use_session);
    return ctx;
}

void tls_peer_begin(const struct tls_peer_kind *kind, int fd, struct tls_peer *out)
{
    signal(SIGPIPE, SIG_IGN); /* of the peer; a channel raises none */
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    *out = (struct tls_peer){.kind = kind, .ctx = context_new(kind)};
    out->ssl = SSL_new(out->ctx);
    SSL_set_app_data(out->ssl, out);
    SSL_set_msg_callback(out->ssl, count_message);
    SSL_set_msg_callback_arg(out->ssl, out);
    ck_assert_int_eq(SSL_set_fd(out->ssl, fd), 1);
    if (kind->is_server)
        SSL_set_accept_state(out->ssl);
    else
        SSL_set_connect_state(out->ssl);
}

int tls_peer_turn(struct tls_peer *p, void *to, int size)
{
    ERR_clear_error();
    return SSL_read(p->ssl, to, size);
}

void tls_peer_close(struct tls_peer *p)
{
    close(SSL_get_fd(p->ssl));
    SSL_free(p->ssl);
    SSL_CTX_free(p->ctx);
}
