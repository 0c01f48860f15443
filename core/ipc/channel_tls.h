/*
 * Channels between nodes: TCP with TLS 1.3 and a key that all nodes of a cluster have
 * (cluster.key_file). Only a node that has the key completes the handshake; there are no
 * certificates.
 * Each connection also negotiates its own secret (psk_dhe_ke), so the key file does not decrypt
 * recorded traffic. The writer calls this. channel.h says what a caller watches.
 *
 * The identity of the key contains the version of the channel: another version fails the handshake.
 *
 * Addresses are numeric, because looking up a name blocks the caller's loop. A node that is
 * configured with a name looks it up when the configuration is loaded and registers the address.
 */
#ifndef ASSAY_IPC_CHANNEL_TLS_H
#define ASSAY_IPC_CHANNEL_TLS_H

#include "core/ipc/channel.h"

#define CHANNEL_TLS_KEY_BYTES 32
#define CHANNEL_TLS_HANDSHAKE_MS 5000 /* an unfinished handshake is ended by the caller */

/* core/auth/secret_file.h reads one. */
struct channel_tls_key {
    unsigned char bytes[CHANNEL_TLS_KEY_BYTES];
};

/*
 * What all channels of a process share. channel_tls_context_new(key, version): ${version} is
 * CHANNEL_VERSION; NULL: out of memory, or OpenSSL has no TLS 1.3. It is freed after its channels.
 */
struct channel_tls_context *channel_tls_context_new(const struct channel_tls_key *key,
                                                    unsigned version);
void channel_tls_context_free(struct channel_tls_context *context);

/*
 * channel_tls_listen(address, why, why_size): a listening socket at "192.0.2.1:7443" or
 * "[2001:db8::1]:7443"; -1: ${why} says why, with the address.
 */
int channel_tls_listen(const char *address, char *why, size_t why_size);

/*
 * channel_tls_accept(context, c, fd): take over ${fd}, an accepted connection. False: out of
 * memory, and ${c} is closed.
 * channel_tls_connect(context, c, address, why, why_size): begin to connect. False: ${why} says
 * why, with the address, and ${c} is closed. A connection that fails later fails channel_flush or
 * channel_read.
 */
bool channel_tls_accept(struct channel_tls_context *context, struct channel *c, int fd);
bool channel_tls_connect(struct channel_tls_context *context, struct channel *c,
                         const char *address, char *why, size_t why_size);

/* channel_tls_is_established(c): the other side has proved that it has the key. */
bool channel_tls_is_established(const struct channel *c);

/*
 * channel_tls_why(c): why channel_flush or channel_read returned -1: a sentence for the log without
 * its full stop, valid until channel_close.
 */
const char *channel_tls_why(const struct channel *c);

#endif
