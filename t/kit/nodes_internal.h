/* Shared by the files of the kit of nodes. */
#ifndef ASSAY_T_NODES_INTERNAL_H
#define ASSAY_T_NODES_INTERNAL_H

#include "t/kit/nodes.h"

/* nodes_logs(n): the logs of all nodes, for messages. */
char *nodes_logs(const struct nodes *n);

#endif
