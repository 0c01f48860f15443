#include "core/cluster/store_copy.h"

#include "core/shm/scoreboard.h"
#include "store/backup.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define STEP_MS 100
#define HASH_BYTES 16

/* Of both sides. */
struct transfer {
    struct channel *channel;
    store_copy_step_fn *step;
    void *arg;
    char *why;
    uint64_t done, total, moved_ms;
    XXH3_state_t *hash;
};

static bool refuse(struct transfer *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(struct transfer *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(t->why, STORE_COPY_WHY, format, args);
    va_end(args);
    return false;
}

static bool begin(struct transfer *t)
{
    t->why[0] = '\0';
    t->moved_ms = clock_mono_ms();
    t->hash = XXH3_createState();
    return (t->hash != NULL && XXH3_128bits_reset(t->hash) == XXH_OK) || refuse(t, "out of memory");
}

static void hash_of(const struct transfer *t, uint8_t out[HASH_BYTES])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(t->hash));
    memcpy(out, &canonical, HASH_BYTES);
}

static bool lost(struct transfer *t)
{
    const char *reason = channel_tls_why(t->channel);
    return refuse(t, "the connection was lost%s%s", reason[0] == '\0' ? "" : ": ", reason);
}

/* Waits until the socket is ready, or STEP_MS have passed. */
static bool wait_for(struct transfer *t, bool blocked)
{
    struct pollfd ready = {t->channel->fd, (short)(POLLIN | (blocked ? POLLOUT : 0)), 0};
    if (!t->step(t->arg, t->done, t->total))
        return false;
    if (clock_mono_ms() - t->moved_ms > STORE_COPY_SILENCE_MS)
        return refuse(t, "the other node was silent for %d s", STORE_COPY_SILENCE_MS / 1000);
    return poll(&ready, 1, STEP_MS) >= 0 || errno == EINTR || refuse(t, "%s", strerror(errno));
}

/* ---- the source ---- */

/* Sends all that is queued. Input belongs to the TLS protocol: the joiner sends no more frames. */
static bool drain(struct transfer *t)
{
    struct frame f;
    for (size_t before = channel_pending(t->channel), left;; before = left) {
        if (channel_flush(t->channel) < 0)
            return lost(t);
        left = channel_pending(t->channel);
        if (left == 0)
            return true;
        if (left != before)
            t->moved_ms = clock_mono_ms();
        if (!wait_for(t, true))
            return false;
        if (channel_read(t->channel) < 0)
            return lost(t);
        if (channel_next(t->channel, &f) != 0)
            return refuse(t, "the joining node sent an invalid frame");
    }
}

static int put_piece(void *arg, const void *piece, size_t n)
{
    struct transfer *t = arg;
    t->moved_ms = clock_mono_ms();
    if (!t->step(t->arg, t->done, t->total) || XXH3_128bits_update(t->hash, piece, n) != XXH_OK)
        return ECANCELED;
    channel_put(t->channel, FRAME_PIECE, t->done, t->total, (struct str){piece, n});
    t->done += n;
    return drain(t) ? 0 : ECANCELED;
}

static uint64_t size_of(struct store *s)
{
    struct store_space space = {0};
    enum store_status status = store_space(s, &space);
    store_read_end(s);
    return status == STORE_OK ? space.used_bytes : 0;
}

void store_copy_refuse(struct channel *c, const char *why)
{
    channel_put(c, FRAME_COPIED, 0, 1, str_of(why));
    channel_flush(c);
}

static bool finish(struct transfer *t)
{
    uint8_t hash[HASH_BYTES];
    hash_of(t, hash);
    channel_put(t->channel, FRAME_COPIED, t->done, 0, (struct str){(const char *)hash, HASH_BYTES});
    return drain(t);
}

bool store_copy_send(struct channel *c, struct store *s, store_copy_step_fn *step, void *arg,
                     char why[STORE_COPY_WHY])
{
    struct transfer t = {.channel = c, .step = step, .arg = arg, .why = why, .total = size_of(s)};
    bool good = begin(&t);
    enum store_status status = good ? store_copy(s, put_piece, &t) : STORE_IO;
    if (status == STORE_OK)
        good = finish(&t);
    else if (good && why[0] == '\0' && step(arg, t.done, t.total)) {
        good = refuse(&t, "%s", store_why(s));
        store_copy_refuse(c, why);
    } else
        good = false;
    XXH3_freeState(t.hash);
    return good;
}

/* ---- the joiner ---- */

static bool write_all(struct transfer *t, int fd, struct str piece)
{
    while (piece.n > 0) {
        ssize_t n = write(fd, piece.p, piece.n);
        if (n < 0 && errno != EINTR)
            return refuse(t, "the copy cannot be written: %s", strerror(errno));
        piece.p += n > 0 ? n : 0;
        piece.n -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

static bool take_piece(struct transfer *t, int fd, const struct frame *f)
{
    if (f->head.a != t->done)
        return refuse(t, "a piece of the copy is missing at byte %" PRIu64, t->done);
    if (XXH3_128bits_update(t->hash, f->payload.p, f->payload.n) != XXH_OK)
        return refuse(t, "out of memory");
    t->done += f->payload.n;
    t->total = f->head.b > t->done ? f->head.b : t->done;
    return write_all(t, fd, f->payload);
}

static bool is_whole(struct transfer *t, int fd, const struct frame *f)
{
    uint8_t hash[HASH_BYTES];
    hash_of(t, hash);
    if (f->head.b != 0)
        return refuse(t, "%.*s", (int)f->payload.n, f->payload.p);
    if (f->head.a != t->done || f->payload.n != HASH_BYTES ||
        memcmp(f->payload.p, hash, HASH_BYTES) != 0)
        return refuse(t, "the copy differs from what the node sent");
    return fsync(fd) == 0 || refuse(t, "the copy cannot be written: %s", strerror(errno));
}

/* Handles what has arrived. 1: more follows; 0: the copy is complete; -1: it is refused. */
static int take(struct transfer *t, int fd)
{
    struct frame f;
    int next, got = channel_read(t->channel);
    while ((next = channel_next(t->channel, &f)) == 1) {
        t->moved_ms = clock_mono_ms();
        if (f.head.type == FRAME_COPIED)
            return is_whole(t, fd, &f) ? 0 : -1;
        if (f.head.type != FRAME_PIECE)
            break;
        if (!take_piece(t, fd, &f))
            return -1;
    }
    if (next != 0)
        refuse(t, "the node sent an invalid frame");
    else if (got < 0)
        lost(t);
    return next != 0 || got < 0 ? -1 : 1;
}

bool store_copy_receive(struct channel *c, int fd, store_copy_step_fn *step, void *arg,
                        char why[STORE_COPY_WHY])
{
    struct transfer t = {.channel = c, .step = step, .arg = arg, .why = why};
    int more = begin(&t) ? 1 : -1;
    channel_put(c, FRAME_COPY, 0, 0, (struct str){0});
    while (more == 1) {
        int left = channel_flush(c);
        if (left < 0)
            lost(&t);
        more = left < 0 || !wait_for(&t, left == 1) ? -1 : take(&t, fd);
    }
    XXH3_freeState(t.hash);
    return more == 0;
}
