/*
 * What the benchmarks' servers share: a response that is always the same, and a port of loopback.
 * Whatever fails ends the program with a sentence.
 */
#ifndef ASSAY_BENCH_CANNED_H
#define ASSAY_BENCH_CANNED_H

#include <h2o.h>

/*
 * canned_read(path): the file is a response as it came over the wire; its headers (but for those
 * the library makes) and body are what canned_send sends.
 */
void canned_read(const char *path);
void canned_send(h2o_req_t *req);

/* canned_listen(port): a listening socket; 0 takes a free port. Prints: ready PORT */
int canned_listen(const char *port);

/* canned_loop(fd, on_req): a loop; the requests of connections to ${fd} go to ${on_req}. */
h2o_evloop_t *canned_loop(int fd, int (*on_req)(h2o_handler_t *, h2o_req_t *));

#endif
