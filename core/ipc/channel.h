/*
 * A channel: frames over a Unix stream socket between the writer and everybody else (workers,
 * auditors, commands), or over TCP with TLS between nodes (channel_tls.h). Non-blocking on both
 * sides; what the socket does not take stays in a buffer. A channel belongs to one process.
 *
 * The caller watches the socket for input, and for output while channel_flush returns 1. It calls
 * channel_flush after channel_read and channel_put where channel_pending is not 0: with TLS, frames
 * wait for the handshake, and reading may leave bytes of the protocol to send. It reads until a
 * handshake is over, whatever is pending.
 *
 *   HELLO      to writer    a: sender id (0: none), b: auditor's index  first frame of a connection
 *   CHANGE     to writer    a: sequence, b: highest answered            change_encode
 *   ANSWER     from writer  a: sequence, b: entry of the log or 0       struct store_answer
 *   EVENT      from writer                                              struct store_event
 *   WAIT       to writer    a: report                                   prioritize its job
 *   LOCAL      to writer                                                change_encode, no answer
 *   POSITION   to writer    a: turn (cluster_score.h), b: 1: read head  EVENT_POSITION, later
 *   JOB        from writer  a: report, b: attempt                       its URL
 *   RESULT     to writer    a: report, b: attempt                       change_encode of the result
 *   WITHDRAW   from writer  a: report, b: attempt                       cancel and return this job
 *   RETURNED   to writer    a: report, b: attempt                       a = 0: take no more jobs
 *   SUSPECT    to writer    a: report                                   its auditor dies of it
 *   TAKE_SLOT  to writer    a: number, b: 1: redirected page            a host
 *   SLOT       from writer  a: number, b: 1: taken, 0: none is free     the host
 *   FREE_SLOT  to writer                                                the host
 *   AUDITOR    to writer    a: how many jobs it takes                   first frame, and repeated
 *   ENDED      to writer    a: 1: it died, 0: it returned its jobs      the last frame
 *   NOTICES    to writer                                                first frame
 *   TYPING     both ways    a: milliseconds left, 0: ended, b: who      a conversation
 *   COPY       to writer                                                first frame
 *   PIECE      from writer  a: offset, b: bytes of all, about           a piece of data.mdb
 *   COPIED     from writer  a: bytes of all, b: 0; or b: 1, refused     hash of all; or a sentence
 *
 * CHANGE, WAIT and POSITION are for everybody but auditors; LOCAL is for workers and commands,
 * about files of their own server; those from JOB to ENDED are for auditors. Those about slots are
 * used in a cluster. AUDITOR and ENDED are for an auditor of another node: the writer of that node
 * sends them, AUDITOR in place of HELLO and every ${CHANNEL_AUDITOR_MS}. Workers send TYPING;
 * between nodes it comes after NOTICES (typing_notice.h). The last three are for a node that joins
 * (core/cluster/store_copy.h).
 */
#ifndef ASSAY_IPC_CHANNEL_H
#define ASSAY_IPC_CHANNEL_H

#include "store/bytes.h"

/*
 * Of the frames and their contents. Workers of the old version speak with the new writer during a
 * binary upgrade, so every change of a frame raises it; the upgrade is then refused with a sentence
 * that asks for a restart. A node of another version is refused when it connects.
 */
#ifndef CHANNEL_VERSION
#define CHANNEL_VERSION 1
#endif

enum frame_type {
    FRAME_HELLO = 1,
    FRAME_CHANGE,
    FRAME_ANSWER,
    FRAME_EVENT,
    FRAME_WAIT,
    FRAME_JOB,
    FRAME_RESULT,
    FRAME_RETURNED,
    FRAME_SUSPECT,
    FRAME_WITHDRAW,
    FRAME_POSITION,
    FRAME_LOCAL,
    FRAME_TAKE_SLOT,
    FRAME_SLOT,
    FRAME_FREE_SLOT,
    FRAME_AUDITOR,
    FRAME_ENDED,
    FRAME_NOTICES,
    FRAME_TYPING,
    FRAME_COPY,
    FRAME_PIECE,
    FRAME_COPIED,
    FRAME_TYPES
};

#define CHANNEL_AUDITOR_MS 2000

#define FRAME_MAX_PAYLOAD (12u << 20) /* a sync of the largest documents is some 9 MB */

struct frame_head {
    uint32_t payload; /* bytes after this head */
    uint32_t type;    /* enum frame_type */
    uint64_t a, b;
};

struct frame {
    struct frame_head head;
    struct str payload; /* borrowed until the next channel_read */
};

struct tls_stream;

struct channel {
    int fd; /* -1: not connected */
    struct buf in, out;
    size_t in_at, out_at;   /* consumed so far */
    struct tls_stream *tls; /* NULL: frames go over the socket as they are */
};

/*
 * channel_init(c, fd): take over ${fd}, and make it non-blocking and close-on-exec.
 * channel_close(c): close it and free the buffers; a closed one may be closed again.
 */
void channel_init(struct channel *c, int fd);
void channel_close(struct channel *c);

/* channel_connect(path): a connected socket, or -1 with errno. */
int channel_connect(const char *path);

/* channel_listen(path): a listening socket of mode 0600 in place of the file; -1 with errno. */
int channel_listen(const char *path);

/* channel_put(c, type, a, b, payload): queue a frame; channel_flush sends it. */
void channel_put(struct channel *c, enum frame_type type, uint64_t a, uint64_t b,
                 struct str payload);

/*
 * channel_send_now(c, type, a): send a frame before what is queued, from a signal handler of a
 * dying process. Nothing is sent when the socket is full, a frame is half sent, or with TLS.
 */
void channel_send_now(const struct channel *c, enum frame_type type, uint64_t a);

/*
 * channel_flush(c): send. 0: all is sent, or waits for the other side's part of the handshake;
 * 1: the socket is full; -1: the other side is gone.
 */
int channel_flush(struct channel *c);

/*
 * channel_read(c): receive. 1: something arrived; 0: nothing; -1: the other side is gone, and
 * frames received before are still there.
 */
int channel_read(struct channel *c);

/* channel_next(c, out): the next whole frame. 1: one; 0: none yet; -1: it is not a valid frame. */
int channel_next(struct channel *c, struct frame *out);

/* tls_stream_unsent(t): bytes encrypted and not sent; for channel_pending. */
size_t tls_stream_unsent(const struct tls_stream *t);

/* channel_pending(c): bytes queued and not sent. */
static inline size_t channel_pending(const struct channel *c)
{
    return c->out.n - c->out_at + (c->tls == NULL ? 0 : tls_stream_unsent(c->tls));
}

#endif
