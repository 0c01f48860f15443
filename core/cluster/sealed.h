/*
 * Sealing: encryption of the signing keys in the store, so that a backup or the database of the log
 * does not have them. AES-256-GCM; its key is derived from that of cluster.key_file.
 */
#ifndef ASSAY_CLUSTER_SEALED_H
#define ASSAY_CLUSTER_SEALED_H

#include "core/ipc/channel_tls.h"

/*
 * seal(key, plain, out): append the sealed text. unseal(key, sealed, out): append the plain one,
 * which the caller wipes; false: it was altered or sealed with another key. Both: false without
 * memory or random bytes, too.
 */
bool seal(const struct channel_tls_key *key, struct str plain, struct buf *out)
    __attribute__((warn_unused_result));
bool unseal(const struct channel_tls_key *key, struct str sealed, struct buf *out)
    __attribute__((warn_unused_result));

#endif
