/*
 * The command line's way to the store: a client of the running writer, or, where no server runs, the writer itself. Commands only;
 * single-threaded; stop signals are held back while a change is under way.
 */
#ifndef ASSAY_IPC_COMMAND_CLIENT_H
#define ASSAY_IPC_COMMAND_CLIENT_H

#include "core/conf/conf.h"
#include "core/base/holder.h"
#include "store/store.h"

struct client;

/*
 * client_open(conf, out, why, why_size):
 * Reach the writer at run_dir, or lock data_dir and open the store (made if missing). As root, become data_dir's owner first. Return 0, or
 * -1 with a sentence in ${why}.
 */
int client_open(const struct conf *conf, struct client **out, char *why, size_t why_size) __attribute__((warn_unused_result));

/* client_change(c, change, answer): carry out one change; durable when it returns 0. -1: the writer could not be reached for 30 s. */
int client_change(struct client *c, const struct store_change *change, struct store_answer *answer) __attribute__((warn_unused_result));

/* client_store(c): for reading; call store_read_end after. client_is_live(c): a server runs. */
struct store *client_store(struct client *c);
bool client_is_live(const struct client *c);

void client_close(struct client *c);

/* data_lock(dir): hold data_dir for this process until it ends: a descriptor, or -1 with errno EWOULDBLOCK when another Assay has it. */
int data_lock(const char *dir);

/* data_holder(dir, out): who holds it, in words. */
void data_holder(const char *dir, char out[HOLDER_TEXT]);

#endif
