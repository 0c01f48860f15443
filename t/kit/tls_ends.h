/*
 * Channels with TLS under test, used as channel.h says: input is watched always, output while
 * channel_flush returns 1. A failure fails the running test.
 */
#ifndef ASSAY_T_TLS_ENDS_H
#define ASSAY_T_TLS_ENDS_H

#include "core/ipc/channel_tls.h"

struct tls_end {
    struct channel channel;
    bool blocked, ended; /* output is watched; channel_flush, _read or _next returned -1 */
    char why[192];       /* channel_tls_why when it ended */
    void (*on_frame)(struct tls_end *end, const struct frame *frame);
    uint64_t frames; /* received so far */
};

/* The key that the tests use: bytes of ${fill}. */
struct channel_tls_key tls_key(unsigned char fill);

/* tls_listen(address, buffer): a listener at a free port; ${buffer} bytes a socket, 0: as usual */
int tls_listen(char address[64], int buffer);

/* tls_accept(context, listener, out): accept a connection that is on its way. */
void tls_accept(struct channel_tls_context *context, int listener, struct tls_end *out);

/* tls_connect(context, address, out): begin to connect. */
void tls_connect(struct channel_tls_context *context, const char *address, struct tls_end *out);

/*
 * tls_turn(ends, count, fd, timeout_ms): flush the ends, wait until one of them or ${fd} (-1: none)
 * is ready, and read those that are. False: none was ready in time.
 */
bool tls_turn(struct tls_end *const *ends, size_t count, int fd, int timeout_ms);

/* tls_turn2(a, b): tls_turn of two ends, which must be ready within seconds. */
void tls_turn2(struct tls_end *a, struct tls_end *b);

void tls_end_close(struct tls_end *end);

#endif
