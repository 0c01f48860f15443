/*
 * The peer of the benchmarks: a bare libh2o-evloop handler that sends given bytes to whatever it is
 * asked.
 *
 *   run_bare PORT RESPONSE-FILE     the file: a response as it came over the wire; its headers (but
 *   for those the library makes) and body
 * are sent
 *   run_bare PORT -                 takes connections and never says a word
 *
 * PORT 0 takes a free one. Prints: ready PORT
 */
#include "t/bench/canned.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int on_req(h2o_handler_t *self, h2o_req_t *req)
{
    (void)self;
    canned_send(req);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: run_bare PORT RESPONSE-FILE|-\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    int fd = canned_listen(argv[1]);
    if (strcmp(argv[2], "-") == 0)
        for (;;)
            pause(); /* the kernel takes connections until its queue is full */
    canned_read(argv[2]);
    h2o_evloop_t *loop = canned_loop(fd, on_req);
    while (h2o_evloop_run(loop, INT32_MAX) == 0)
        ;
    return 0;
}
