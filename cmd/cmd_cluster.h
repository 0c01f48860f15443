/* What the commands of a cluster share. */
#ifndef ASSAY_CMD_CLUSTER_H
#define ASSAY_CMD_CLUSTER_H

#include "cmd/cmd.h"

#include "core/cluster/cluster_log.h"

/* free_bytes of a node that has joined, until its server says how much there is */
#define SPACE_UNKNOWN ((uint64_t)1 << 62)

/*
 * cmd_log_open(cmd): the log of the configuration, to free by its engine; NULL after an error.
 * cmd_log_problem(l, status): report a failed call. Returns CMD_REFUSED. cmd_log_refuse: the same,
 * and free ${l}.
 */
struct cluster_log *cmd_log_open(const struct cmd *cmd);
int cmd_log_problem(const struct cluster_log *l, enum cluster_log_status status);
int cmd_log_refuse(struct cluster_log *l, enum cluster_log_status status);

#endif
