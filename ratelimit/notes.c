/*
 * Notes: texts of keys that are near their limit. Words are written and read without locks. Each
 * note has a digest, so that a reader skips one that is being written, was written by two processes
 * at once, or whose writer died.
 */
#include "ratelimit/siphash.h"
#include "ratelimit/table_internal.h"
#include "ratelimit/window_internal.h"

#include <string.h>

#define WAYS 4

struct note {
    uint64_t digest, hash, salt;
    uint32_t seconds, limit, end, unused;
    char text[RATELIMIT_TEXT_MAX];
};
_Static_assert(sizeof(struct note) <= NOTE_WORDS * 8, "a note fits its words");

static void load_note(const uint64_t from[NOTE_WORDS], struct note *out)
{
    uint64_t words[NOTE_WORDS];
    for (unsigned i = 0; i < NOTE_WORDS; i++)
        words[i] = word_load(&from[i]);
    memcpy(out, words, sizeof(*out));
}

static uint64_t digest(const struct ratelimit *rl, const struct note *note)
{
    return siphash(SIPHASH_1_3, rl->header->seed, (const char *)note + 8, sizeof(*note) - 8);
}

static bool is_intact(const struct ratelimit *rl, const struct note *note)
{
    return note->hash != 0 && note->digest == digest(rl, note);
}

/* The key's own note, else one without a valid note, else the one whose window ends first. */
static uint64_t *find_place(const struct ratelimit *rl, uint64_t hash, int64_t now)
{
    uint64_t(*set)[NOTE_WORDS] = &rl->notes[(hash >> 8) % (NOTES / WAYS) * WAYS];
    unsigned best = 0;
    int64_t best_end = INT64_MAX;
    for (unsigned k = 0; k < WAYS; k++) {
        struct note note;
        unsigned i = (unsigned)(k + (hash >> 20)) % WAYS; /* random among equals */
        load_note(set[i], &note);
        if (note.hash == hash)
            return set[i];
        int64_t end = is_intact(rl, &note) && note.end > now ? note.end : 0;
        if (end < best_end) {
            best = i;
            best_end = end;
        }
    }
    return set[best];
}

void ratelimit_note(struct ratelimit *rl, const struct ratelimit_window *window, int64_t now,
                    const char *text)
{
    uint64_t words[NOTE_WORDS] = {0};
    struct note note = {.hash = ratelimit_hash(rl, window),
                        .salt = window->salt,
                        .seconds = window->seconds,
                        .limit = window->limit,
                        .end = window_end(now, window->seconds)};
    size_t n = strnlen(text, RATELIMIT_TEXT_MAX);
    memcpy(note.text, text, n);
    note.digest = digest(rl, &note);
    memcpy(words, &note, sizeof(note));
    uint64_t *to = find_place(rl, note.hash, now);
    for (unsigned i = 0; i < NOTE_WORDS; i++)
        __atomic_store_n(&to[i], words[i], __ATOMIC_RELAXED);
}

void ratelimit_notes(struct ratelimit *rl, int64_t now, ratelimit_note_fn *each, void *arg)
{
    for (unsigned i = 0; i < NOTES; i++) {
        struct note note;
        struct ratelimit_state state;
        load_note(rl->notes[i], &note);
        if (!is_intact(rl, &note))
            continue;
        /* as if there were no limit: it may have been raised since */
        struct ratelimit_window window = {.salt = note.salt,
                                          .seconds = note.seconds,
                                          .limit = RATELIMIT_COUNT_MAX,
                                          .hash = note.hash};
        ratelimit_peek(rl, &window, 1, now, &state);
        struct ratelimit_noted noted = {
            note.salt, note.seconds, note.limit, window.limit - state.remaining, state.reset, ""};
        memcpy(noted.text, note.text, RATELIMIT_TEXT_MAX);
        if (noted.used > 0)
            each(arg, &noted);
    }
}
