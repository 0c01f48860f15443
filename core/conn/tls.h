/*
 * Certificates and keys of the listeners. The master reads the files while it may still read root's
 * keys, into memory that only workers inherit. It never makes keys of these bytes itself, and
 * neither does the writer or an auditor, so no key is in a process that reads hostile pages.
 */
#ifndef ASSAY_CONN_TLS_H
#define ASSAY_CONN_TLS_H

#include "core/conf/conf.h"

#include <openssl/ssl.h>

/* By index in conf->listen. */
struct tls {
    struct tls_secrets *secrets; /* NULL: no listener has TLS */
    size_t size;
    SSL_CTX *ctx[CONF_LISTEN_MAX]; /* in a worker; NULL without TLS */
};

/*
 * tls_load(conf, out, mistakes): read all files and try them in a child process. The number of
 * unusable files, with a sentence each in ${mistakes}; then nothing is kept. An expired certificate
 * gets a sentence, and is used.
 */
int tls_load(const struct conf *conf, struct tls *out, FILE *mistakes);
void tls_free(struct tls *t);

/*
 * tls_inherit(t, to_child): whether children that are forked from here on inherit the secrets; by
 * default they do not. False: madvise(2) failed.
 */
bool tls_inherit(struct tls *t, bool to_child);

/*
 * tls_open(conf, t, mistakes): make the contexts, in a worker. The number of failures, with a
 * sentence each in ${mistakes}.
 */
int tls_open(const struct conf *conf, struct tls *t, FILE *mistakes);

#endif
