/*
 * The binary upgrade (USR2): the master in office, the elder, starts the new binary as its heir, which is given its listeners, its
 * locks and the writer's socket, and takes over while nobody waits. The master's alone.
 *
 *   elder                                   heir
 *   starts the binary, with a manifest  →   reads it, starts workers whose doors stay shut
 *   and descriptors (upgrade_channel.h)
 *                                       ←   PREPARED
 *   ends its writer and auditors, TAKE  →   starts its own (they wait for the store's lock), then opens the doors
 *                                       ←   SERVES
 *   names it to systemd, GO, drains     →   says that it is ready, and is the server
 *   ends
 *
 * Until SERVES the elder can go on as if nothing had happened, and does so when the heir fails, dies, or takes too long: its workers have
 * answered all the time, only changes have waited. Whichever of the two dies, its children die with it, and no two writers ever have the
 * store (startup.c). An heir whose elder dies goes on alone.
 */
#ifndef ASSAY_MASTER_UPGRADE_H
#define ASSAY_MASTER_UPGRADE_H

#include "core/master/listeners.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct master;

/* descriptors that the one gives to the other; inherited_state.h */
struct passed {
    int *fds;
    size_t count;
};

/* what the elder knows of its heir */
enum new_master_state {
    NEW_MASTER_NONE,
    NEW_MASTER_STARTS,
    NEW_MASTER_PREPARED,
    NEW_MASTER_TAKES,
    NEW_MASTER_SERVES
};
struct new_master {
    enum new_master_state state;
    pid_t pid;
    int fd, far; /* to it; and its end, while what lies there may have to be taken back */
    struct passed passed;
    uint64_t deadline_ms;
    bool wanted;     /* USR2 came, and waits for what is under way */
    bool stop_waits; /* TERM came while the writers change places */
};

/* what the heir knows of its elder */
enum old_master_state {
    OLD_MASTER_NONE,
    OLD_MASTER_SERVES,
    OLD_MASTER_YIELDS,
    OLD_MASTER_YIELDED,
    OLD_MASTER_ENDS
};
struct old_master {
    enum old_master_state state;
    int fd;     /* to it; -1: it is gone */
    bool open;  /* our doors are */
    bool heard; /* GO: we are the server for everybody */
    unsigned slots, steered, generation;
    struct listen_given *given;
    size_t given_count;
    pid_t *
        workers; /* its, as they were when it yielded: they go on with our writer until they have drained */
    size_t workers_count;
};

/* ---- both ---- */

/*
 * upgrade_tick(m): in the master's loop. upgrade_fd(m): what it is to wake for, -1: nothing. upgrade_close(m): in a child: close what is
 * the two masters'. upgrade_end(m): at the master's end, which is also that of an heir that does not serve yet.
 */
void upgrade_tick(struct master *m);
int upgrade_fd(const struct master *m);
void upgrade_close(struct master *m);
void upgrade_end(struct master *m);

/* upgrade_holds(m, role): seats of that role are not filled now: the other master's sit there, or its writer would not know who does. */
bool upgrade_holds(const struct master *m, enum role role);

/* upgrade_is_going_on(m): between its first step and its last: no reload, and the slots' sockets stay as they are. */
bool upgrade_is_going_on(const struct master *m);

/*
 * A stop while the elder drains is the heir's to carry out: its writer and auditors stay until the elder, whose workers need them, has
 * gone. An elder that is told to stop waits for its heir in turn, once its own children have gone and the heir knows it, so that whoever
 * waits for either has waited for both.
 *
 * upgrade_elder_drains(m): the heir's. upgrade_keeps(m): one that stops is not to end yet though it has no children; for as long as a
 * stop may take.
 */
bool upgrade_elder_drains(const struct master *m);
bool upgrade_keeps(struct master *m);

/* ---- the elder's ---- */

/* upgrade_want(m): USR2. It begins when nothing else is under way. */
void upgrade_want(struct master *m);

/* upgrade_stop_waits(m, again): TERM. True: it is carried out when it is known who is the server; not if it came ${again}. */
bool upgrade_stop_waits(struct master *m, bool again);
/* upgrade_stops_now(m): such a TERM is due: the attempt has failed, and the writer is back. Once. */
bool upgrade_stops_now(struct master *m);

/* upgrade_pass_on(m, number): a signal for the server; true if that is the heir by now. USR1 it gets as soon as there is one. */
bool upgrade_pass_on(struct master *m, int number);

/* upgrade_buried(m, pid, status): whether the dead child was the heir. If it was the server by then, we stop, and m->exit_status tells. */
bool upgrade_buried(struct master *m, pid_t pid, int status);

/* ---- the heir's ---- */

/*
 * upgrade_inherit(m): at the start: take over what an elder has passed on, m->elder.given, locks and the writer's socket; nothing where
 * there is none. 0, or -1 with the reason logged: the elder goes on.
 */
int upgrade_inherit(struct master *m);

/* upgrade_is_trial(m): the elder can still go on: whoever dies now ends the attempt, and nothing of the elder's is removed. */
bool upgrade_is_trial(const struct master *m);

/* upgrade_path(m, name, out, size): where a file of run_dir is made: beside the elder's until we take over. */
void upgrade_path(const struct master *m, const char *name, char *out, size_t size);

#endif
