/*
 * Following: applies the entries that the log thread reads, sends their events to the workers, and
 * begins to lead when the log thread says so.
 */
#ifndef ASSAY_WRITER_FOLLOWING_H
#define ASSAY_WRITER_FOLLOWING_H

#include "core/writer/change_feed.h"
#include "core/writer/leading.h"
#include "core/writer/verifier.h"

struct following {
    struct process *process;
    struct store *store;
    struct leading *leading;
    struct change_feed *change_feed;
    struct clients *clients;
    struct sequences *sequences;
    struct verifier *verifier;
    bool told; /* the state of the log thread has changed */
    struct log_view view;
    char full_node[NODE_TEXT]; /* as last seen */
    uint64_t noted_ms, looked_ms;
};

/* following_watch(f, epoll): events carry &f->told. */
bool following_watch(struct following *f, int epoll);

/*
 * following_step(f): does what the log thread requests; call it once a turn. True: this node leads
 * from here on. Exits with EXIT_RETRY when the lead is lost.
 */
bool following_step(struct following *f);

#endif
