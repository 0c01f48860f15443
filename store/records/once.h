/*
 * Keys that a visitor or an operator sends so that a repeated request has no second effect:
 * client_message_id and Idempotency-Key. Deleted with the conversation. message.c
 */
#ifndef ASSAY_STORE_RECORDS_ONCE_H
#define ASSAY_STORE_RECORDS_ONCE_H

#include "store/engine/txn.h"

enum once_kind { ONCE_CLIENT_ID = 1, ONCE_IDEMPOTENCY = 2 };

/*
 * once_look(t, c, kind, answer): STORE_NOT_FOUND: a new key; otherwise the first answer again, or
 * STORE_KEY_REUSED. once_put(t, c, kind, answer): remember the key.
 */
enum store_status once_look(struct store_txn *t, const struct store_change *c, enum once_kind kind,
                            struct store_answer *answer);
void once_put(struct store_txn *t, const struct store_change *c, enum once_kind kind,
              const struct store_answer *answer);

#endif
