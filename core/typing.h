/*
 * Who is typing: a small table in memory that the master maps before it forks, shared by all workers. Nothing of it is ever stored, and a
 * ping costs no more than a few words written. Each word is atomic, so a process killed at any instruction leaves nothing half-written;
 * where two conversations want one slot, the one that typed longer ago is forgotten: it lasts seconds anyway. Times are milliseconds of
 * CLOCK_MONOTONIC.
 */
#ifndef ASSAY_TYPING_H
#define ASSAY_TYPING_H

#include "store/ulid.h"

#define TYPING_MS 5000 /* how long a ping lasts */

enum typist { TYPIST_VISITOR, TYPIST_OPERATOR, TYPISTS };

struct typing;

/* typing_new(): map it; the master's call; NULL with errno. typing_free: unmap. */
struct typing *typing_new(void);
void typing_free(struct typing *t);

/* typing_set(t, conversation, who, until_ms, now_ms): ${who} types until then; 0: no more. */
void typing_set(struct typing *t, const struct ulid *conversation, enum typist who, uint64_t until_ms, uint64_t now_ms);

/* typing_now(t, conversation, who, now_ms): whether they are typing. */
bool typing_now(const struct typing *t, const struct ulid *conversation, enum typist who, uint64_t now_ms);

/* typing_changes(t): grows with every typing_set. */
uint64_t typing_changes(const struct typing *t);

#endif
