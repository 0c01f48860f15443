#include "core/ipc/tls_stream_internal.h"

#include "core/ipc/channel.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#define RING_BYTES (64u << 10)
#define RECORD_BYTES (16u << 10)
/* A full record, and space for messages of the protocol, so that OpenSSL's writes always fit. */
#define RECORD_SPACE (24u << 10)

struct tls_stream {
    SSL *ssl;
    BIO *inside, *outside; /* the ends of both rings: OpenSSL's, which ${ssl} owns, and ours */
    bool established, ended;
    unsigned records; /* sent under the present key */
    char why[192];    /* also set for a refused identity, after which another may follow */
};

/* ---- why it ended ---- */

#define NO_TLS "the other side does not speak TLS: it is not a node of this cluster"
#define NO_TLS_1_3 "the other side does not speak TLS 1.3: it is not a node of this cluster"
#define NO_KEY "the other side has no key: it is not a node of this cluster"
#define OTHER_KEY "the other side has another key: copy one cluster.key_file to every node"

/* Columns: OpenSSL's reason; what it means between nodes. An alert is the other side's reason. */
static const struct {
    int reason;
    const char *why;
} reasons[] = {
    {SSL_R_BINDER_DOES_NOT_VERIFY, OTHER_KEY},
    {SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER, OTHER_KEY},
    {SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, NO_KEY},
    {SSL_R_MISSING_SIGALGS_EXTENSION, NO_KEY},
    {SSL_R_CERTIFICATE_VERIFY_FAILED, "the other side sends a certificate instead of using the "
                                      "key: it is not a node of this cluster"},
    {SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE,
     "the other side does not speak this version of the channel: install one version of Assay on "
     "every node"},
    {SSL_R_HTTP_REQUEST, NO_TLS},
    {SSL_R_HTTPS_PROXY_REQUEST, NO_TLS},
    {SSL_R_WRONG_VERSION_NUMBER, NO_TLS},
    {SSL_R_UNSUPPORTED_PROTOCOL, NO_TLS_1_3},
    {SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, NO_TLS_1_3},
};

/* The first reason stays. Always -1. */
static int end(struct tls_stream *t, const char *why, const char *detail)
{
    t->ended = true;
    if (t->why[0] == '\0')
        snprintf(t->why, sizeof(t->why), "%s%s", why, detail);
    return -1;
}

static int end_by_tls(struct tls_stream *t)
{
    unsigned long error = ERR_peek_last_error();
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
        if (ERR_GET_LIB(error) == ERR_LIB_SSL && ERR_GET_REASON(error) == reasons[i].reason)
            return end(t, reasons[i].why, "");
    const char *text = ERR_reason_error_string(error);
    return end(t, "TLS failed: ", text == NULL ? "unknown error" : text);
}

static int end_by_socket(struct tls_stream *t)
{
    return end(t, "the connection failed: ", strerror(errno));
}

static int end_by_eof(struct tls_stream *t)
{
    return end(t,
               t->established ? "the connection ended without a close_notify: the other side "
                                "died, or the network cut the connection"
                              : "the other side closed the connection during the TLS handshake",
               "");
}

/* after a call of OpenSSL: 0: it waits for the other side; -1: the stream ended */
static int wait_or_end(struct tls_stream *t)
{
    switch (SSL_get_error(t->ssl, 0)) {
    case SSL_ERROR_WANT_READ:
        return 0;
    case SSL_ERROR_ZERO_RETURN:
        return end(t, "the other side closed the connection", "");
    case SSL_ERROR_WANT_WRITE:
        return end(t, "the other side requests key updates and does not read the answers", "");
    default:
        return end_by_tls(t);
    }
}

/* ---- a stream's life ---- */

static bool connect_rings(struct tls_stream *t, SSL_CTX *ctx)
{
    t->ssl = SSL_new(ctx);
    if (t->ssl == NULL || BIO_new_bio_pair(&t->inside, RING_BYTES, &t->outside, RING_BYTES) != 1)
        return false;
    SSL_set_bio(t->ssl, t->inside, t->inside);
    return SSL_set_app_data(t->ssl, t) == 1;
}

static void stream_free(struct tls_stream *t)
{
    SSL_free(t->ssl);
    BIO_free(t->outside);
    free(t);
}

struct tls_stream *tls_stream_new(SSL_CTX *ctx, bool is_server)
{
    struct tls_stream *t = calloc(1, sizeof(*t));
    if (t == NULL)
        return NULL;
    ERR_clear_error();
    if (!connect_rings(t, ctx)) {
        stream_free(t);
        return NULL;
    }
    if (is_server) {
        SSL_set_accept_state(t->ssl);
        return t;
    }
    SSL_set_verify(t->ssl, SSL_VERIFY_PEER, NULL);
    SSL_set_connect_state(t->ssl);
    if (SSL_do_handshake(t->ssl) != 1)
        wait_or_end(t); /* a stream that has ended fails the next call */
    return t;
}

bool tls_stream_is_established(const struct tls_stream *t)
{
    return t->established;
}

const char *tls_stream_why(const struct tls_stream *t)
{
    return t->why;
}

void tls_stream_refuse(SSL *ssl, const char *why)
{
    struct tls_stream *t = SSL_get_app_data(ssl);
    snprintf(t->why, sizeof(t->why), "%s", why);
}

size_t tls_stream_unsent(const struct tls_stream *t)
{
    return BIO_ctrl_pending(t->outside);
}

/* ---- sending ---- */

/* 0: the ring is empty; 1: the socket is full; -1: the other side is gone */
static int send_ring(struct tls_stream *t, int fd)
{
    char *from;
    int size;
    while ((size = BIO_nread0(t->outside, &from)) > 0) {
        ssize_t n = send(fd, from, (size_t)size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 1 : end_by_socket(t);
        BIO_nread(t->outside, &from, (int)n);
    }
    return 0;
}

static bool renew_key(struct tls_stream *t)
{
    if (t->records < TLS_KEY_RECORDS)
        return true;
    t->records = 0;
    return SSL_key_update(t->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1;
}

/* Encrypts into the ring as many records as fit. 1: some; 0: none; -1: the stream ended */
static int encrypt(struct tls_stream *t, const struct buf *out, size_t *at)
{
    int some = 0;
    ERR_clear_error();
    while (*at < out->n && BIO_ctrl_get_write_guarantee(t->inside) >= RECORD_SPACE) {
        size_t n;
        if (!renew_key(t) || SSL_write_ex(t->ssl, out->p + *at, out->n - *at, &n) != 1)
            return wait_or_end(t) < 0 ? -1 : some;
        *at += n;
        t->records++;
        some = 1;
    }
    return some;
}

int tls_stream_flush(struct tls_stream *t, int fd, const struct buf *out, size_t *at)
{
    for (;;) {
        int left = t->ended ? -1 : send_ring(t, fd);
        if (left != 0 || !t->established)
            return left;
        int more = encrypt(t, out, at);
        if (more <= 0)
            return more;
    }
}

void tls_stream_close(struct tls_stream *t, int fd)
{
    ERR_clear_error();
    if (t->established && !t->ended && SSL_shutdown(t->ssl) >= 0)
        send_ring(t, fd);
    stream_free(t);
}

/* ---- receiving ---- */

/* Receives into the ring. The number of bytes; 0: none; -1: the other side is gone */
static ssize_t receive(struct tls_stream *t, int fd, bool *is_all)
{
    char *to;
    int space = BIO_nwrite0(t->outside, &to);
    ssize_t n;
    do
        n = recv(fd, to, (size_t)space, 0);
    while (n < 0 && errno == EINTR);
    *is_all = n < space;
    if (n > 0)
        BIO_nwrite(t->outside, &to, (int)n);
    else if (n < 0)
        return errno == EAGAIN ? 0 : end_by_socket(t);
    return n > 0 ? n : end_by_eof(t);
}

static void note_established(struct tls_stream *t)
{
    if (t->established || !SSL_is_init_finished(t->ssl))
        return;
    t->established = true;
    t->why[0] = '\0';
}

/* Decrypts the ring. 1: some bytes; 0: no complete record; -1: the stream ended */
static int decrypt(struct tls_stream *t, struct buf *in)
{
    int some = 0;
    ERR_clear_error();
    for (;;) {
        size_t n;
        char *to = buf_reserve(in, RECORD_BYTES);
        if (to == NULL)
            return end(t, "out of memory", "");
        bool got = SSL_read_ex(t->ssl, to, RECORD_BYTES, &n) == 1;
        note_established(t);
        if (!got)
            return wait_or_end(t) < 0 ? -1 : some;
        in->n += n;
        some = 1;
    }
}

int tls_stream_read(struct tls_stream *t, int fd, struct buf *in, size_t most)
{
    int some = 0;
    bool is_all = t->ended;
    for (size_t received = 0; !is_all && received < most;) {
        ssize_t n = receive(t, fd, &is_all);
        if (n <= 0)
            return n < 0 ? -1 : some;
        received += (size_t)n;
        int more = decrypt(t, in);
        if (more < 0) {
            send_ring(t, fd); /* the alert that says why, if the socket accepts it */
            return -1;
        }
        some = more > 0 ? 1 : some;
    }
    return t->ended ? -1 : some;
}
