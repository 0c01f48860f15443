/*
 * What the service manager is told, sd_notify(3): a datagram to the socket it names in the environment, nothing where there is none. The master's alone.
 */
#ifndef ASSAY_SYSTEMD_H
#define ASSAY_SYSTEMD_H

#include <stdint.h>

/* systemd_tell(state): such as "READY=1". systemd_reloading(now_ms): a reload begins (on CLOCK_MONOTONIC); it ends with READY=1. */
void systemd_tell(const char *state);
void systemd_reloading(uint64_t now_ms);

/*
 * systemd_watchdog_ms(): how often the service manager wants to hear that all is well, WATCHDOG_USEC; 0: it does not ask this process.
 * It is told twice as often.
 */
uint64_t systemd_watchdog_ms(void);

#endif
