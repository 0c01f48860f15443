/*
 * Listeners: the sockets of the configured addresses. The master makes them before it forks and
 * keeps them open, so that no connection in an accept queue is lost with a worker.
 */
#ifndef ASSAY_MASTER_LISTENERS_H
#define ASSAY_MASTER_LISTENERS_H

#include "core/process/process.h"

struct listeners {
    struct listener list[LISTENERS_MAX];
    size_t count;
};

/*
 * A listener of the old master (upgrade.h) or of the service manager (systemd.h). It becomes the
 * configured listener of the same address.
 */
struct inherited_listener {
    char address[256]; /* as the old master's configuration has it; "": the socket's own */
    int *fds;          /* a socket for each slot, or one that is shared; NULL: it was taken */
    size_t count, listening;
    bool shared, bound, internal;
};

/*
 * listeners_open(l, conf, inherited, count, why, why_size): open every listener of ${conf}: one
 * SO_REUSEPORT socket for each worker slot, or one shared Unix socket. A probe without SO_REUSEPORT
 * comes first, so that a port of another server is refused. Port 0 becomes a free port, the same
 * for all slots. An inherited listener of the same address is taken instead; slots that it lacks
 * are bound and do not listen yet. 0, or -1 with a sentence; then all is closed but what was not
 * taken.
 */
int listeners_open(struct listeners *l, const struct conf *conf,
                   struct inherited_listener *inherited, size_t count, char *why, size_t why_size);

/*
 * listeners_configure(l, conf): set what a reload may change: TLS, and with it the URL.
 * listeners_open calls it.
 */
void listeners_configure(struct listeners *l, const struct conf *conf);

/*
 * listeners_close(l): close all. listeners_unlink(l, inherited): before it, remove the files of
 * Unix sockets, those of inherited ones only if ${inherited}.
 */
void listeners_close(struct listeners *l);
void listeners_unlink(const struct listeners *l, bool inherited);

/*
 * inherited_listeners_free(list, count, unlink): close and free what was not taken; ${unlink}: also
 * remove the files of Unix sockets.
 */
void inherited_listeners_free(struct inherited_listener *list, size_t count, bool unlink);

/*
 * listener_set_options(fd): TCP options that accepted sockets inherit; no effect on Unix sockets.
 */
void listener_set_options(int fd);

/* ---- slots ---- */

/*
 * listener_add_slots(l, slots): bind sockets up to so many; they get no connection before
 * listener_listen(l). Both: 0, or -1 with errno. listener_remove_slots(l, slots): close the sockets
 * above; connections that wait there are reset.
 */
int listener_add_slots(struct listener *l, size_t slots);
int listener_listen(struct listener *l);
void listener_remove_slots(struct listener *l, size_t slots);

/*
 * listener_steer(l, slots): new connections go only to the first ${slots} slots, until the next
 * call (SO_ATTACH_REUSEPORT_CBPF, Linux 4.5); a handshake under way ends where it began. 0, or -1
 * with errno, and they still go to all. listener_unsteer(l): to all slots.
 */
int listener_steer(const struct listener *l, size_t slots);
void listener_unsteer(const struct listener *l);

/*
 * listeners_handshake_ms(): after this time no handshake that began before a steering is under way.
 * listener_is_idle(l, from): no connection waits in slot ${from} and above.
 */
uint64_t listeners_handshake_ms(void);
bool listener_is_idle(const struct listener *l, size_t from);

#endif
