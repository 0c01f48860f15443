/*
 * Following: what the log thread brings. Entries are applied and fed to the workers; and this node
 * may begin to lead.
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
    bool told; /* the log thread has something new */
    struct log_view view;
    char full_node[NODE_TEXT]; /* as last seen */
    uint64_t noted_ms, looked_ms;
};

/* following_watch(f, epoll): events carry &f->told. */
bool following_watch(struct following *f, int epoll);

/*
 * following_step(f): do what the log thread asks for; once a turn. True: this node leads from now
 * on. Exits EXIT_RETRY when it no longer leads.
 */
bool following_step(struct following *f);

#endif
