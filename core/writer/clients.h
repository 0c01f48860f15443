/*
 * The processes connected to the writer: workers, auditors and commands. A client's role is the
 * role that the scoreboard has for the pid that the kernel names.
 */
#ifndef ASSAY_WRITER_CLIENTS_H
#define ASSAY_WRITER_CLIENTS_H

#include "core/ipc/channel.h"
#include "core/process/process.h"
#include "store/store.h"

struct client {
    struct channel channel;
    enum role role;
    unsigned index; /* of an auditor */
    bool has_hello; /* HELLO was received */
    bool draining;  /* an auditor that takes no more jobs */
    bool remote;    /* an auditor of another node */
    bool died;      /* a remote auditor whose node says that it died */
    bool gone;      /* disconnected; removed after the batch, which may point at it */
    bool blocked;   /* its socket is full */
    bool full;      /* so much waits to be sent that nothing more is read from it */
    /* a sender of changes: sequences.h */
    uint64_t id; /* 0: cannot send changes */
    bool loaded;
    uint64_t sequence, sequence_committed;
    unsigned unanswered; /* changes of this connection */
    struct frame_repeats repeats;
    struct relay *relay; /* of its frames to the leader; NULL: none */
    uint64_t connected_ms;
    bool awaits_position;   /* it wants to know when the turn is not ${position_turn} */
    uint64_t position_turn; /* of core/shm/cluster_score.h */
    uint64_t heard_ms;      /* a remote auditor: when it sent something */
    uint64_t retry_ms;      /* a local auditor: when it may get a relay */
    bool wants_notices;     /* another node's connection for typing notices */
    unsigned notices;       /* that it sent since ${notices_since_ms} */
    uint64_t notices_since_ms;
    struct buf unconfirmed; /* struct unconfirmed_answer, oldest first */
    size_t unconfirmed_committed;
};

struct clients {
    struct process *process;
    int epoll; /* events carry the client, or NULL for the listening socket */
    struct client **list;
    size_t count, capacity;
};

/* clients_listen(c): watch the writer's listening socket. clients_accept(c): accept all waiting. */
bool clients_listen(struct clients *c);
void clients_accept(struct clients *c);

/*
 * clients_add(c, channel, role): a new client, which takes over the channel; when memory is short,
 * the channel is closed.
 */
void clients_add(struct clients *c, const struct channel *channel, enum role role);

/*
 * client_answer(client, sequence, entry, answer): queue the answer to a change; ${entry}: its entry
 * of the log, or 0.
 */
void client_answer(struct client *client, uint64_t sequence, uint64_t entry,
                   const struct store_answer *answer);

/* client_flush(c, client), clients_flush(c): send what is queued for one, for all. */
void client_flush(struct clients *c, struct client *client);
void clients_flush(struct clients *c);

/* clients_notify(c, event): queue an event for every worker. */
void clients_notify(struct clients *c, const struct store_event *event);

/* clients_tell_position(c, turn): queue an event for clients that wait for another turn. */
void clients_tell_position(struct clients *c, uint64_t turn);

/* clients_has(c, id): is the sender of this id connected? */
bool clients_has(const struct clients *c, uint64_t id);

/* clients_auditor(c, index): the auditor that takes jobs there; NULL: none. */
struct client *clients_auditor(struct clients *c, unsigned index);

/* clients_remove(c, i): close and free list[i]; the last one takes its place. */
void clients_remove(struct clients *c, size_t i);
void clients_free(struct clients *c);

#endif
