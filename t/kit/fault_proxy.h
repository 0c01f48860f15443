/*
 * A TCP proxy on loopback whose faults a test switches at run time. It runs in a process of its own
 * and dies with the process that started it. Processes that are forked later share it; one of them
 * at a time may call these functions. Every function returns when its fault is in force. A function
 * that fails fails the running test.
 */
#ifndef ASSAY_T_KIT_FAULT_PROXY_H
#define ASSAY_T_KIT_FAULT_PROXY_H

#include <stddef.h>
#include <stdint.h>

struct fault_proxy;

/* fault_proxy_new(port): a proxy in front of this port of 127.0.0.1; fault_proxy_port: its own. */
struct fault_proxy *fault_proxy_new(uint16_t port);
void fault_proxy_free(struct fault_proxy *p);
uint16_t fault_proxy_port(const struct fault_proxy *p);

/* fault_proxy_pass(p): ends all faults. */
void fault_proxy_pass(struct fault_proxy *p);

/*
 * fault_proxy_drop(p): drops every packet that arrives, as a broken network does: nothing is
 * acknowledged, no connection is accepted, refused or closed. After fault_proxy_pass TCP sends
 * again what was lost.
 */
void fault_proxy_drop(struct fault_proxy *p);

/* fault_proxy_cut(p): resets all connections. New ones are accepted. */
void fault_proxy_cut(struct fault_proxy *p);

/*
 * fault_proxy_cut_after(p, side, bytes): passes this many more bytes in one direction, counted over
 * all connections, and then resets the connection that had the last of them.
 */
enum fault_side { TO_SERVER, TO_CLIENT };
void fault_proxy_cut_after(struct fault_proxy *p, enum fault_side side, size_t bytes);

/*
 * fault_proxy_cut_at(p, bytes, size, when): resets the connection on which these bytes (at most
 * 256) go to the server.
 *   CUT_BEFORE: the last of them does not reach the server.
 *   CUT_BEHIND: they reach the server with all that was received together with them.
 *   CUT_ANSWER: the connection goes on until the server answers; the answer does not pass.
 */
enum fault_when { CUT_BEFORE, CUT_BEHIND, CUT_ANSWER };
void fault_proxy_cut_at(struct fault_proxy *p, const void *bytes, size_t size,
                        enum fault_when when);

/* fault_proxy_cuts(p): how many connections cut_after and cut_at have reset; each does so once. */
unsigned fault_proxy_cuts(const struct fault_proxy *p);

/* fault_proxy_delay(p, side, ms): delays what is received from then on. */
void fault_proxy_delay(struct fault_proxy *p, enum fault_side side, int ms);

#endif
