/* An unchecked fixture of tests that send exact bytes: a server with short timeouts, an origin. */
#ifndef ASSAY_T_RAW_SERVER_H
#define ASSAY_T_RAW_SERVER_H

#include "t/kit/raw.h"

extern struct origin *origin;
extern struct server *server;

void raw_setup(void);
void raw_teardown(void);

#endif
