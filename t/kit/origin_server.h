/* Fixtures of tests with a server and an origin whose pages it grades (origin_usual). */
#ifndef ASSAY_T_ORIGIN_SERVER_H
#define ASSAY_T_ORIGIN_SERVER_H

#include "t/kit/harness.h"

extern struct origin *origin;
extern struct server *server;

/* An unchecked fixture: one running server for all tests of a case. */
void shared_setup(void);
void shared_teardown(void);

/* A checked fixture: a server that the test starts, and that is killed. */
void own_setup(void);
void own_teardown(void);

#endif
