/*
 * Exact fixed-window counters in shared memory, for any number of processes: a file that each of them maps. The table is a leaf: it knows
 * no clock (every call takes the time, in seconds since the epoch, UTC), no HTTP and no configuration, and it logs nothing.
 *
 * ■ No more than ${limit} are admitted in one window of one key over all processes, and no fewer, while the key's slot lives.
 * ■ A process may die at any instruction: no lock is left behind (there is none), and what it had not published never was.
 * ■ A refused request writes to no slot. Of several windows it charges none; where another process takes the last of one while it charges,
 *   it gives back what it had taken of those before.
 * A key that is evicted from a full table loses its count. A request of it that was under way may then count for the key that took its place,
 * which so gets one fewer: see settle in ratelimit.c.
 *
 * Windows are aligned to the epoch: at ${now}, a window of ${seconds} ends at (now / seconds + 1) * seconds. A process whose clock lags
 * adopts a stored window that starts at most 2 s after its own time; one that starts later was written before the clock stepped back, and
 * a new window begins. So nobody is locked out for longer than a window and 2 s.
 *
 * The file lives as long as its directory: it outlives processes, reloads and upgrades of the same format. Its size never changes.
 */
#ifndef ASSAY_RATELIMIT_H
#define ASSAY_RATELIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RATELIMIT_KEY_MAX 64          /* bytes of a key */
#define RATELIMIT_COUNT_MAX 0x7fffff  /* the largest limit */
#define RATELIMIT_TAGS 64             /* what use and evictions can be told apart by */
#define RATELIMIT_WINDOWS_MAX 4       /* windows that one request may have to fit */
#define RATELIMIT_SECONDS_MAX 2678400 /* the longest window, 31 days */
#define RATELIMIT_LATE_SECONDS 2      /* how far a process's clock may lag behind another's */

struct ratelimit;

enum ratelimit_made {
    RATELIMIT_KEPT,   /* the file was there and is used on, with its counts */
    RATELIMIT_NEW,    /* there was none */
    RATELIMIT_REMADE, /* there was one of another geometry, or not whole; its counts are gone */
};

/*
 * ratelimit_open(dir, slots, made, out):
 * Map the table of ${dir} (a file there whose name holds the format's version), made with room for at least ${slots} keys, mode 0600,
 * where it is missing or other. For the master, before it forks: children inherit the mapping. A table that is remade is a new file:
 * whoever has mapped the old one goes on with that. 0, or an errno, *out untouched.
 * ratelimit_attach(dir, write, out): map the one that is there, for commands. 0, ENOENT: none; EPROTO: not this format; or another errno.
 * ratelimit_close(rl): unmap; NULL does nothing.
 */
int ratelimit_open(const char *dir, uint64_t slots, enum ratelimit_made *made, struct ratelimit **out) __attribute__((warn_unused_result));
int ratelimit_attach(const char *dir, bool write, struct ratelimit **out) __attribute__((warn_unused_result));
void ratelimit_close(struct ratelimit *rl);

/*
 * ratelimit_whole(rl): the file that is mapped still has its size. Where somebody cut it short, whoever touches what is gone is killed
 * (SIGBUS), and only another table helps: ratelimit_open, in every process.
 */
bool ratelimit_whole(const struct ratelimit *rl);

/* ratelimit_path(dir, out, size): where that file is, for a master that gives it to the user it drops to. 0, or ENAMETOOLONG. */
int ratelimit_path(const char *dir, char *out, size_t size) __attribute__((warn_unused_result));

/*
 * ratelimit_salt(rl, name): what tells the keys of the limiter ${name} from other limiters' keys; the same as long as the file lives. Ask
 * once for each limiter and keep it.
 */
uint64_t ratelimit_salt(const struct ratelimit *rl, const char *name);

/* One window that a request must fit. The key is hashed (with a secret of the file), not kept. */
struct ratelimit_window {
    uint64_t salt;
    uint32_t seconds; /* 1 … RATELIMIT_SECONDS_MAX */
    uint32_t limit;   /* 1 … RATELIMIT_COUNT_MAX */
    unsigned tag;     /* under RATELIMIT_TAGS: whose key it is in ratelimit_usage; no part of the key */
    const void *key;
    size_t key_size; /* at most RATELIMIT_KEY_MAX */
    uint64_t hash;   /* ratelimit_hash of all but the limit, where the caller kept it (the key is not read then); 0: made anew */
};

/* ratelimit_hash(rl, window): what ${window} is known by in this file; never 0. For callers that ask for the same key again and again. */
uint64_t ratelimit_hash(const struct ratelimit *rl, const struct ratelimit_window *window);

/*
 * ratelimit_expect(rl, window): fill in ${window}'s hash, and have its place in the table fetched from memory meanwhile: for callers that
 * know the key before they have to decide, and have other things to do in between. A decision mostly waits for that memory.
 */
void ratelimit_expect(const struct ratelimit *rl, struct ratelimit_window *window);

/*
 * A reading of the clock. The token comes first, then the clock is read: so the table can tell a clock that was stepped from a reading that
 * grew old in a process that slept meanwhile.
 */
struct ratelimit_time {
    uint64_t token; /* of ratelimit_token, asked for right before reading */
    int64_t now;
};
uint64_t ratelimit_token(const struct ratelimit *rl);

/* What headers tell. */
struct ratelimit_state {
    unsigned window;    /* index of the window told of: the one with the fewest remaining, or that refused (of several, the last to end) */
    uint32_t near;      /* bit i: this request took the use of windows[i] to half of its limit, or to all of it */
    uint32_t limit;     /* of the window told of */
    uint32_t remaining; /* 0 when refused */
    int64_t reset;      /* its end, seconds since the epoch */
};

/*
 * ratelimit_take(rl, windows, count, time, out):
 * Charge one request to all of ${windows} (1 … RATELIMIT_WINDOWS_MAX) or to none. Any process may call this; it never blocks. 0: admitted;
 * 1: refused; *out is filled either way. -1: the clock was stepped, or seconds went by, since ${time} was read: read it again and call
 * again, nothing is charged. List a key before those that it implies (address and agent before address): then a request that is refused by
 * the second never stands in the way of others that would be admitted.
 */
int ratelimit_take(struct ratelimit *rl, const struct ratelimit_window *windows, size_t count, struct ratelimit_time time,
                   struct ratelimit_state *out);

/*
 * ratelimit_peek: what ratelimit_take would find at ${now}, charging nothing: *out as of before such a request. 0: it would be admitted;
 * 1: refused.
 */
int ratelimit_peek(struct ratelimit *rl, const struct ratelimit_window *windows, size_t count, int64_t now, struct ratelimit_state *out);

/* ratelimit_reset(rl, window, now): forget what ${window}'s key has used of the present window. True: it had used something. */
bool ratelimit_reset(struct ratelimit *rl, const struct ratelimit_window *window, int64_t now);

struct ratelimit_usage {
    uint64_t slots;         /* that the file holds */
    uint64_t used;          /* with a window that has not ended; an estimate from a sample where the table is large */
    uint64_t evicted_alive; /* since the file was made: keys that lost their count to another while their window went on */
    uint64_t used_by[RATELIMIT_TAGS], evicted_by[RATELIMIT_TAGS]; /* the same by tag */
    uint64_t bytes;                                               /* of the file */
};
void ratelimit_usage(const struct ratelimit *rl, int64_t now, struct ratelimit_usage *out);

/*
 * Who is near a limit, in people's words: a hash cannot be read back, so callers note the text of keys that ratelimit_take finds
 * near. A small table in the same file; newer notes take the place of older ones, so it may have forgotten some.
 *
 * ratelimit_note(rl, window, now, text): ${text} (cut at RATELIMIT_TEXT_MAX bytes) is ${window}'s key, of the limiter with the salt.
 * ratelimit_notes(rl, now, each, arg): every note whose window goes on, in no order, with what it has used by now.
 */
#define RATELIMIT_TEXT_MAX 80
struct ratelimit_noted {
    uint64_t salt;
    uint32_t seconds, limit, used; /* limit: when it was noted; used: by now, more than that where it was raised */
    int64_t reset;
    char text[RATELIMIT_TEXT_MAX + 1];
};
typedef void ratelimit_note_fn(void *arg, const struct ratelimit_noted *noted);
void ratelimit_note(struct ratelimit *rl, const struct ratelimit_window *window, int64_t now, const char *text);
void ratelimit_notes(struct ratelimit *rl, int64_t now, ratelimit_note_fn *each, void *arg);

#endif
