/*
 * A channel: frames over a Unix stream socket between the writer and everybody else (workers, auditors, commands). Non-blocking on both
 * sides; a frame is sent whole or stays in the buffer. One channel belongs to one process; nothing here is shared.
 *
 *   HELLO    →writer   a: channel id (0: none), b: 0         first frame of every connection
 *   CHANGE   →writer   a: sequence, b: highest answered      payload: change_encode
 *   ANSWER   writer→   a: sequence                           payload: struct store_answer
 *   EVENT    writer→                                         payload: struct store_event
 *   WAIT     →writer   a: report                             somebody waits for this job: it goes first
 *   JOB      writer→   a: report, b: attempt                 payload: URL; to auditors only
 *   FINDINGS →writer   a: report, b: attempt                 payload: change_encode of a CHANGE_REPORT_FINISH; from auditors only
 *   WITHDRAW writer→   a: report, b: attempt                 cancel this job and give it back; to auditors only
 *   BACK     →writer   a: report, b: attempt                 a job given back; a = 0: the auditor takes no more
 *   SUSPECT  →writer   a: report                             an auditor's last words: it dies while it reads this one
 */
#ifndef ASSAY_IPC_CHANNEL_H
#define ASSAY_IPC_CHANNEL_H

#include "store/bytes.h"

/*
 * Of the frames and what they carry. Workers of the version before speak with the writer of the next one while a binary upgrade goes on, so
 * whoever changes what is in a frame raises it: then that upgrade needs a restart, and says so.
 */
#ifndef CHANNEL_VERSION
#define CHANNEL_VERSION 2
#endif

enum frame_type {
    FRAME_HELLO = 1,
    FRAME_CHANGE,
    FRAME_ANSWER,
    FRAME_EVENT,
    FRAME_WAIT,
    FRAME_JOB,
    FRAME_FINDINGS,
    FRAME_BACK,
    FRAME_SUSPECT,
    FRAME_WITHDRAW,
    FRAME_TYPES
};

#define FRAME_MAX_PAYLOAD (12u << 20) /* a batch of the largest documents is some 9 MB */

struct frame_head {
    uint32_t payload; /* bytes after this head */
    uint32_t type;    /* enum frame_type */
    uint64_t a, b;
};

struct frame {
    struct frame_head head;
    struct str payload; /* borrowed until the next channel_read */
};

struct channel {
    int fd; /* -1: not connected */
    struct buf in, out;
    size_t in_at, out_at; /* consumed so far */
};

/*
 * channel_init(c, fd): take over ${fd}, made non-blocking and close-on-exec. channel_close(c): close it and free the buffers; fine on a
 * closed one.
 */
void channel_init(struct channel *c, int fd);
void channel_close(struct channel *c);

/* channel_connect(path): a connected socket, or -1 with errno. */
int channel_connect(const char *path);
/* channel_listen(path): a listening socket of mode 0600 in place of whatever is at ${path}; -1 with errno. */
int channel_listen(const char *path);

/* channel_put(c, type, a, b, payload): queue a frame; nothing is sent before channel_flush. */
void channel_put(struct channel *c, enum frame_type type, uint64_t a, uint64_t b, struct str payload);

/*
 * channel_last_word(c, type, a): send a frame at once, past what is queued, from a signal's handler of a process that dies; nothing where the
 * socket is full or a frame is half sent.
 */
void channel_last_word(const struct channel *c, enum frame_type type, uint64_t a);

/* channel_flush(c): send what can be sent. 0: all gone; 1: the socket is full, wait until it is writable; -1: the peer is gone. */
int channel_flush(struct channel *c);

/*
 * channel_read(c): take in what has arrived. 1: something did; 0: nothing now; -1: the peer is gone (frames taken in before are still
 * there).
 */
int channel_read(struct channel *c);

/* channel_next(c, out): the next whole frame. 1: one; 0: none yet; -1: the peer does not speak our protocol. */
int channel_next(struct channel *c, struct frame *out);

/* channel_pending(c): bytes queued and not sent. */
static inline size_t channel_pending(const struct channel *c)
{
    return c->out.n - c->out_at;
}

#endif
