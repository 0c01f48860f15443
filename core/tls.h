/*
 * Certificates and keys of the listeners. The master loads them before it forks, while it may still read a key that belongs to root; workers inherit what was loaded.
 */
#ifndef ASSAY_TLS_H
#define ASSAY_TLS_H

#include "conf.h"

#include <openssl/ssl.h>

/* The contexts of a configuration's listeners, by their place in conf->listen; NULL without TLS. */
struct tls {
    SSL_CTX *ctx[CONF_LISTEN_MAX];
};

/* tls_load(conf, out, mistakes): load them all; how many cannot be used, a sentence each to ${mistakes}. Nothing is kept then. tls_free(t) lets go of them. */
int tls_load(const struct conf *conf, struct tls *out, FILE *mistakes);
void tls_free(struct tls *t);

#endif
