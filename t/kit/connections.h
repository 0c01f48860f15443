/* For tests of limits of connections: a server, and connections that stay open. */
#ifndef ASSAY_T_KIT_CONNECTIONS_H
#define ASSAY_T_KIT_CONNECTIONS_H

#include "t/kit/raw.h"

#define HEALTHZ LINE HOST "\r\n"

/* A checked fixture: an origin, and a server that the test starts. */
extern struct origin *origin;
extern struct server *server;
void connections_setup(void);
void connections_teardown(void);

/* raw_from(address): like raw_open, from another address of loopback. */
struct raw *raw_from(const char *address);

/* ask(raw): sends a request and expects an answer. */
void ask(struct raw *raw);

/* How many of the connections the server has not closed. close_all: closes them. */
size_t still_open(struct raw **raws, size_t count);
void close_all(struct raw **raws, size_t count);

#endif
