/* What assay key and assay token share: they are one kind of record, told apart by their scopes. */
#ifndef ASSAY_CMD_KEY_H
#define ASSAY_CMD_KEY_H

#include "cmd/cmd_store.h"
#include "core/auth/credential.h"

/* Each is the whole command for a credential of ${kind}, by the options and words of ${cmd}; ${scopes} are enum scope bits. */
int cmd_credential_create(struct cmd *cmd, enum credential_kind kind, uint32_t scopes);
int cmd_credential_rotate(struct cmd *cmd, enum credential_kind kind);
int cmd_credential_revoke(struct cmd *cmd, enum credential_kind kind);
int cmd_credential_list(struct cmd *cmd, enum credential_kind kind);

#endif
