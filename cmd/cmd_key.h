/* The commands of API keys and workspace tokens: the same kind of record with other scopes. */
#ifndef ASSAY_CMD_KEY_H
#define ASSAY_CMD_KEY_H

#include "cmd/cmd_store.h"
#include "core/auth/credential.h"

/* The commands for a credential of ${kind}. ${scopes} are bits of enum scope. */
int cmd_credential_create(struct cmd *cmd, enum credential_kind kind, uint32_t scopes);
int cmd_credential_rotate(struct cmd *cmd, enum credential_kind kind);
int cmd_credential_revoke(struct cmd *cmd, enum credential_kind kind);
int cmd_credential_list(struct cmd *cmd, enum credential_kind kind);

#endif
