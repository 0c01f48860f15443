/*
 * Certificates and keys of the listeners. The master reads the files before it forks, while it may still read a key that belongs to root, into
 * memory that only workers inherit: neither it, nor the writer, nor an auditor ever makes a key of them, so that no trace of one is left
 * where hostile pages are read.
 */
#ifndef ASSAY_CONN_TLS_H
#define ASSAY_CONN_TLS_H

#include "core/conf/conf.h"

#include <openssl/ssl.h>

/* The listeners of a configuration, by their place in conf->listen. */
struct tls {
    struct tls_secrets *secrets; /* NULL: no listener has TLS */
    size_t size;
    SSL_CTX *ctx[CONF_LISTEN_MAX]; /* a worker's; NULL without TLS */
};

/*
 * tls_load(conf, out, mistakes): read them all, and have a child try them; how many cannot be used, a sentence each to ${mistakes}. Nothing
 * is kept then. An expired certificate gets a sentence, and is used. tls_free(t) lets go of them.
 */
int tls_load(const struct conf *conf, struct tls *out, FILE *mistakes);
void tls_free(struct tls *t);

/* tls_lend(t, to_child): whether the children forked from now on inherit the secrets; they do not unless told. False: the kernel refused. */
bool tls_lend(struct tls *t, bool to_child);

/* tls_open(conf, t, mistakes): in a worker: make the contexts. How many cannot be made, a sentence each to ${mistakes}. */
int tls_open(const struct conf *conf, struct tls *t, FILE *mistakes);

#endif
