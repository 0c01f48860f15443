/*
 * The typing table: who is typing in which conversation. It is in memory that the master maps
 * before it forks; nothing of it is stored. Each word is atomic, so a killed process leaves nothing
 * half-written. When two conversations need the same slot, the one that typed longer ago loses it.
 * Times are milliseconds of CLOCK_MONOTONIC.
 */
#ifndef ASSAY_SHM_TYPING_TABLE_H
#define ASSAY_SHM_TYPING_TABLE_H

#include "store/ulid.h"

#define TYPING_MS 5000 /* how long a ping lasts */

enum typist { TYPIST_VISITOR, TYPIST_OPERATOR, TYPISTS };

struct typing_table;

/* typing_table_new(): map it; the master's call; NULL with errno. typing_table_free: unmap. */
struct typing_table *typing_table_new(void);
void typing_table_free(struct typing_table *t);

/* typing_table_set(t, conversation, who, until_ms, now_ms): ${who} types until then; 0: no more. */
void typing_table_set(struct typing_table *t, const struct ulid *conversation, enum typist who,
                      uint64_t until_ms, uint64_t now_ms);

/* typing_table_is_typing(t, conversation, who, now_ms): whether they are typing. */
bool typing_table_is_typing(const struct typing_table *t, const struct ulid *conversation,
                            enum typist who, uint64_t now_ms);

#endif
