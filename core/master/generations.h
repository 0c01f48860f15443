/*
 * Configuration generations. A reload makes a new one; an old one is kept while a child uses it.
 */
#ifndef ASSAY_MASTER_GENERATIONS_H
#define ASSAY_MASTER_GENERATIONS_H

#include "core/conf/conf.h"
#include "core/conn/tls.h"

struct generation {
    struct conf *conf;
    struct tls tls;
    unsigned number;
    unsigned children; /* that use it */
    struct generation *next;
};

struct generations {
    struct generation *newest;
};

/* generations_conf(g): the newest configuration. */
static inline struct conf *generations_conf(const struct generations *g)
{
    return g->newest->conf;
}

/*
 * generations_add(g, conf): make ${conf} the newest, and take it over. False: it cannot be used;
 * the log says why, and ${conf} is still the caller's.
 */
bool generations_add(struct generations *g, struct conf *conf);

/* generations_release(g, number): a child of this generation ended. */
void generations_release(struct generations *g, unsigned number);

/* generations_draining(g): old generations that still have children. */
unsigned generations_draining(const struct generations *g);

void generations_free(struct generations *g);

#endif
