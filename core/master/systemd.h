/*
 * What the service manager is told, sd_notify(3): a datagram to the socket it names in the environment, nothing where there is none. The master's alone.
 */
#ifndef ASSAY_MASTER_SYSTEMD_H
#define ASSAY_MASTER_SYSTEMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* systemd_tell(state): such as "READY=1". systemd_reloading(now_ms): a reload begins (on CLOCK_MONOTONIC); it ends with READY=1. */
void systemd_tell(const char *state);
void systemd_reloading(uint64_t now_ms);

/* systemd_hush(hush): nothing is told meanwhile: another master is the service's main process. systemd_hushed(): so it is now. */
void systemd_hush(bool hush);
bool systemd_hushed(void);

/*
 * systemd_listeners(out, count): the listening sockets that the service manager made for us, LISTEN_FDS (sd_listen_fds(3)), one shared
 * socket each; none where it made none for this process. The environment forgets them. False: out of memory. listen_drop frees them.
 */
struct listen_given;
bool systemd_listeners(struct listen_given **out, size_t *count);

/*
 * systemd_watchdog_ms(pid): how often the service manager wants to hear that all is well, WATCHDOG_USEC; 0: it does not ask that process.
 * It is told twice as often.
 */
uint64_t systemd_watchdog_ms(pid_t pid);

#endif
