/*
 * Exact fixed-window counters in shared memory: a file that any number of processes map. The
 * library knows no clock (each call takes the time, in seconds since the epoch, UTC), no HTTP and
 * no configuration, and it logs nothing. README.md explains the table.
 *
 * - In one window of one key, all processes together admit exactly ${limit} requests, while the
 *   key's slot exists.
 * - There are no locks: a process may die at any instruction. What it had not published never
 *   happened.
 * - A refused request writes to no slot. With several windows, it charges none; if another process
 *   takes the last of one window meanwhile, it takes back what it charged to the others.
 * - A key evicted from a full table loses its count. A request of it in progress may then be
 *   charged to the key that got its slot (try_fast in ratelimit.c).
 *
 * Windows are aligned to the epoch: at ${now}, a window of ${seconds} ends at (now / seconds + 1) *
 * seconds. A process whose clock lags uses a stored window that starts at most 2 s after its own
 * time. A window that starts later was written before the clock was set back; a new one begins. So
 * nobody is locked out for longer than a window and 2 s.
 */
#ifndef ASSAY_RATELIMIT_H
#define ASSAY_RATELIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RATELIMIT_KEY_MAX 64          /* bytes of a key */
#define RATELIMIT_COUNT_MAX 0x7fffff  /* the largest limit */
#define RATELIMIT_TAGS 64             /* number of tags for usage and evictions */
#define RATELIMIT_WINDOWS_MAX 4       /* most windows in one decision */
#define RATELIMIT_SECONDS_MAX 2678400 /* the longest window, 31 days */
#define RATELIMIT_LATE_SECONDS 2      /* most that one process's clock may lag behind another's */

struct ratelimit;

enum ratelimit_made {
    RATELIMIT_KEPT,   /* the file existed; its counts are kept */
    RATELIMIT_NEW,    /* there was no file */
    RATELIMIT_REMADE, /* the file was damaged or of another geometry; its counts are lost */
};

/*
 * ratelimit_open(dir, slots, made, out):
 * Map the table of ${dir}. Makes the file (mode 0600, the format's version in its name), with space
 * for at least ${slots} keys, if it is missing, damaged or of another geometry. For the master,
 * before it forks; children inherit the mapping. A remade table is a new file; processes that
 * mapped the old one continue with that. Returns 0, or an errno with *out unchanged.
 *
 * ratelimit_attach(dir, write, out): map the existing file, for commands. Returns 0, ENOENT: none,
 * EPROTO: another format, or another errno.
 *
 * ratelimit_close(rl): unmap; NULL is allowed.
 */
int ratelimit_open(const char *dir, uint64_t slots, enum ratelimit_made *made,
                   struct ratelimit **out) __attribute__((warn_unused_result));
int ratelimit_attach(const char *dir, bool write, struct ratelimit **out)
    __attribute__((warn_unused_result));
void ratelimit_close(struct ratelimit *rl);

/*
 * ratelimit_whole(rl): the mapped file still has its full size. If it was truncated, an access
 * beyond the end raises SIGBUS; every process must call ratelimit_open again.
 */
bool ratelimit_whole(const struct ratelimit *rl);

/*
 * ratelimit_path(dir, out, size): path of the file, for a master that changes its owner. 0, or
 * ENAMETOOLONG.
 */
int ratelimit_path(const char *dir, char *out, size_t size) __attribute__((warn_unused_result));

/*
 * ratelimit_salt(rl, name): separates the keys of limiter ${name} from those of others; constant
 * while the file exists. Call once per limiter and keep the result.
 */
uint64_t ratelimit_salt(const struct ratelimit *rl, const char *name);

/* One window that a request must fit. The key is stored as a hash with a secret of the file. */
struct ratelimit_window {
    uint64_t salt;
    uint32_t seconds; /* 1 … RATELIMIT_SECONDS_MAX */
    uint32_t limit;   /* 1 … RATELIMIT_COUNT_MAX */
    unsigned tag; /* below RATELIMIT_TAGS: groups keys in ratelimit_usage; not part of the key */
    const void *key;
    size_t key_size; /* at most RATELIMIT_KEY_MAX */
    /* Result of ratelimit_hash, if the caller kept it: then the key is not read. 0: compute it. */
    uint64_t hash;
};

/*
 * ratelimit_hash(rl, window): hash of ${window}'s key; never 0; independent of the limit. For
 * callers that use a key repeatedly.
 */
uint64_t ratelimit_hash(const struct ratelimit *rl, const struct ratelimit_window *window);

/*
 * ratelimit_prefetch(rl, window): set ${window}'s hash and start loading its slot from memory. For
 * callers that know the key some time before the decision: most of a decision is waiting for
 * memory.
 */
void ratelimit_prefetch(const struct ratelimit *rl, struct ratelimit_window *window);

/*
 * A time reading. The token is taken before the clock is read, so that the table can tell a clock
 * that was set from a reading that is old because the process slept.
 */
struct ratelimit_time {
    uint64_t token; /* from ratelimit_token, right before reading the clock */
    int64_t now;
};
uint64_t ratelimit_token(const struct ratelimit *rl);

/* For response headers. */
struct ratelimit_state {
    /*
     * index of the reported window: the one with the fewest remaining, or the one that refused (of
     * several, the last to end)
     */
    unsigned window;
    /* bit i: this request brought the use of windows[i] to half or all of its limit */
    uint32_t near;
    uint32_t limit;     /* of the reported window */
    uint32_t remaining; /* 0 when refused */
    int64_t reset;      /* end of the window, seconds since the epoch */
};

/*
 * ratelimit_take(rl, windows, count, time, out):
 * Charge one request to all ${windows} (1 … RATELIMIT_WINDOWS_MAX) or to none. Any process may call
 * this; it never blocks. Returns 0: admitted, 1: refused; *out is set in both cases. Returns -1 if
 * the clock was set, or seconds passed, since ${time} was read: nothing is charged; read the time
 * and call again. List narrower keys first (address and agent before address): a request refused by
 * the second window then never blocks requests that would be admitted.
 */
int ratelimit_take(struct ratelimit *rl, const struct ratelimit_window *windows, size_t count,
                   struct ratelimit_time time, struct ratelimit_state *out);

/*
 * ratelimit_peek: the decision that ratelimit_take would make at ${now}, without charging; *out is
 * the state before such a request. 0: admitted, 1: refused.
 */
int ratelimit_peek(struct ratelimit *rl, const struct ratelimit_window *windows, size_t count,
                   int64_t now, struct ratelimit_state *out);

/*
 * ratelimit_report(windows, used, ends, count, charged, out): the state for counts that are kept
 * elsewhere: what each window had used, its end, and how many requests were charged to all.
 */
void ratelimit_report(const struct ratelimit_window *windows, const uint32_t *used,
                      const uint32_t *ends, size_t count, uint32_t charged,
                      struct ratelimit_state *out);

/*
 * ratelimit_reset(rl, window, now): clear the count of ${window}'s key in the current window. True:
 * it was not 0.
 */
bool ratelimit_reset(struct ratelimit *rl, const struct ratelimit_window *window, int64_t now);

struct ratelimit_usage {
    uint64_t slots; /* of the file */
    uint64_t used;  /* keys whose window has not ended; estimated from a sample in a large table */
    uint64_t evicted_alive; /* since the file was made: keys evicted during their window */
    uint64_t used_by[RATELIMIT_TAGS], evicted_by[RATELIMIT_TAGS]; /* by tag */
    uint64_t bytes;                                               /* size of the file */
};
void ratelimit_usage(const struct ratelimit *rl, int64_t now, struct ratelimit_usage *out);

/*
 * Texts of keys near their limit. A hash cannot be reversed, so callers note the text of keys that
 * ratelimit_take reports as near. A small table in the same file; new notes replace old ones, so
 * some may be missing.
 *
 * ratelimit_note(rl, window, now, text): note ${text} (cut at RATELIMIT_TEXT_MAX bytes) for
 * ${window}'s key.
 * ratelimit_notes(rl, now, each, arg): call ${each} for every note whose window has not ended, in
 * no order, with the current count.
 */
#define RATELIMIT_TEXT_MAX 80
struct ratelimit_noted {
    uint64_t salt;
    /* limit: when noted; used: now, above the limit if it was raised */
    uint32_t seconds, limit, used;
    int64_t reset;
    char text[RATELIMIT_TEXT_MAX + 1];
};
typedef void ratelimit_note_fn(void *arg, const struct ratelimit_noted *noted);
void ratelimit_note(struct ratelimit *rl, const struct ratelimit_window *window, int64_t now,
                    const char *text);
void ratelimit_notes(struct ratelimit *rl, int64_t now, ratelimit_note_fn *each, void *arg);

#endif
