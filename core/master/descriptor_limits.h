/*
 * How many connections the descriptors of a process allow. Each worker is a process of its own, with
 * RLIMIT_NOFILE descriptors, of which some are its listeners', the store's and the log's. Master only.
 */
#ifndef ASSAY_MASTER_DESCRIPTOR_LIMITS_H
#define ASSAY_MASTER_DESCRIPTOR_LIMITS_H

#include "core/conf/conf.h"

/*
 * descriptors_fit(conf, doors): raise the limit as far as it may be, as far as ${conf} needs it; set
 * conf->worker_connections and conf->lingering_connections, and lower conf->max_connections to what all workers can have, which the
 * log says. ${doors}: listening sockets that a worker may serve; they are open already. 0; -1 where
 * the limit leaves no worker any connection, which the log says, too.
 */
int descriptors_fit(struct conf *conf, size_t acceptor);

#endif
