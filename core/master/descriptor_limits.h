/*
 * How many connections RLIMIT_NOFILE allows. It holds for each process, and a worker also needs
 * descriptors for the listeners, the store and the log.
 */
#ifndef ASSAY_MASTER_DESCRIPTOR_LIMITS_H
#define ASSAY_MASTER_DESCRIPTOR_LIMITS_H

#include "core/conf/conf.h"

/*
 * descriptors_fit(conf, sockets): raise the limit as far as ${conf} needs it and the system allows.
 * Set conf->worker_connections and conf->lingering_connections; lower conf->max_connections to what
 * all workers can have, and log it. ${sockets}: listening sockets that a worker may have, which are
 * open already. 0; -1: no worker could have a connection, which is logged.
 */
int descriptors_fit(struct conf *conf, size_t sockets);

#endif
