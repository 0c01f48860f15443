/*
 * The service manager: sd_notify(3), sd_listen_fds(3) and its watchdog. Without NOTIFY_SOCKET in
 * the environment nothing is sent.
 */
#ifndef ASSAY_MASTER_SYSTEMD_H
#define ASSAY_MASTER_SYSTEMD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * systemd_notify(state): such as "READY=1". systemd_reloading(now_ms): a reload begins (time of
 * CLOCK_MONOTONIC); it ends with READY=1.
 */
void systemd_notify(const char *state);
void systemd_reloading(uint64_t now_ms);

/* systemd_mute(mute): send nothing while another master is the service's main process. */
void systemd_mute(bool mute);
bool systemd_is_muted(void);

/*
 * systemd_listeners(out, count): the sockets of LISTEN_FDS, one shared socket each; none when they
 * are not for this process. The environment loses these variables. False: out of memory.
 * inherited_listeners_free frees them.
 */
struct inherited_listener;
bool systemd_listeners(struct inherited_listener **out, size_t *count);

/* systemd_watchdog_ms(pid): how often WATCHDOG=1 is due for this process; 0: not wanted. */
uint64_t systemd_watchdog_ms(pid_t pid);

#endif
