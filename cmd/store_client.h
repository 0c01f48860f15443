/*
 * Access of a command to the store. While a server runs, changes go to its writer; otherwise the
 * command opens the store for writing. For commands only, which have a single thread. INT, TERM and
 * HUP are blocked during a change.
 */
#ifndef ASSAY_CMD_STORE_CLIENT_H
#define ASSAY_CMD_STORE_CLIENT_H

#include "core/conf/conf.h"
#include "store/store.h"

struct client;

/*
 * client_open(conf, out, why, why_size): connect to the writer at run_dir, or lock data_dir, and
 * open the store, which is created if missing. Root first switches to the owner of data_dir.
 * Returns 0, or -1 with a sentence in ${why}.
 */
int client_open(const struct conf *conf, struct client **out, char *why, size_t why_size)
    __attribute__((warn_unused_result));

/*
 * client_become_owner(conf, why, why_size): the part of client_open that makes data_dir if it is
 * missing, and switches root to its owner.
 */
int client_become_owner(const struct conf *conf, char *why, size_t why_size);

/*
 * client_change(c, change, answer): 0: answered, and durable. -1: the outcome is unknown: no writer
 * answered for 30 s, or a writer that had the change ended and no node of the cluster leads since.
 */
int client_change(struct client *c, const struct store_change *change, struct store_answer *answer)
    __attribute__((warn_unused_result));

/*
 * client_send_local(c, change): send a change of the store of this node (store_change_is_local) to
 * the server's writer, which gives no answer. False: there is none.
 */
bool client_send_local(struct client *c, const struct store_change *change);

/* client_store(c): the store, for reading; call store_read_end after reading. */
struct store *client_store(struct client *c);

/* client_is_live(c): whether a server runs. */
bool client_is_live(const struct client *c);

void client_close(struct client *c);

#endif
