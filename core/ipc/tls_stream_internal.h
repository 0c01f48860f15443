/*
 * TLS between the buffers of a channel and its socket. OpenSSL works on two rings in memory (a BIO
 * pair) and never touches the socket: it neither waits nor raises SIGPIPE, and what it has received
 * is read to the last byte. Used by the process of its channel.
 */
#ifndef ASSAY_IPC_TLS_STREAM_INTERNAL_H
#define ASSAY_IPC_TLS_STREAM_INTERNAL_H

#include "store/bytes.h"

#include <openssl/types.h>

/* Records sent under one key. The limit of AES-GCM is 2^24.5 full ones (RFC 8446, 5.5). */
#ifndef TLS_KEY_RECORDS
#define TLS_KEY_RECORDS (1u << 22)
#endif

struct tls_stream;

/*
 * tls_stream_new(ctx, is_server): a handshake begins; NULL: out of memory.
 * tls_stream_close(t, fd): sends close_notify if the socket accepts it, and frees ${t}.
 */
struct tls_stream *tls_stream_new(SSL_CTX *ctx, bool is_server);
void tls_stream_close(struct tls_stream *t, int fd);

/*
 * tls_stream_flush(t, fd, out, at): encrypt and send ${out} from ${at} on; as channel_flush.
 * tls_stream_read(t, fd, in, most): receive and decrypt to the end of ${in}, until ${most} bytes or
 * some more arrived; as channel_read.
 */
int tls_stream_flush(struct tls_stream *t, int fd, const struct buf *out, size_t *at);
int tls_stream_read(struct tls_stream *t, int fd, struct buf *in, size_t most);

bool tls_stream_is_established(const struct tls_stream *t);

/* tls_stream_why(t): why it ended, a sentence without its full stop; "": it has not ended. */
const char *tls_stream_why(const struct tls_stream *t);

/*
 * tls_stream_refuse(ssl, why): for callbacks of OpenSSL: why the handshake of ${ssl} fails, if it
 * does.
 */
void tls_stream_refuse(SSL *ssl, const char *why);

#endif
