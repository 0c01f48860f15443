/*
 * A server that SIGUSR2 upgrades (core/master/upgrade.h). It is started by a link, which an upgrade
 * starts again. There is one such server at a time. A function that fails fails the running test.
 */
#ifndef ASSAY_T_KIT_UPGRADES_H
#define ASSAY_T_KIT_UPGRADES_H

#include "t/kit/harness.h"

#define UPGRADES_LIMIT 8000000 /* of the only limiter, for each key, in a month */

extern struct server *server;
extern unsigned upgrades_slots; /* of the limiter's table; upgrades_configure writes it */
extern char *upgrades_assayd;   /* the program under test, an absolute path */

/*
 * upgrades_setup, upgrades_teardown: a fixture: two workers, upgrades_configure(""). The test
 * adopts the children of a master that has exited.
 * upgrades_configure(more): writes the configuration with more lines; it is in force after a reload
 * or an upgrade.
 * upgrades_point_at(target): what the next upgrade starts; it may be missing.
 */
void upgrades_setup(void);
void upgrades_teardown(void);
void upgrades_configure(const char *more);
void upgrades_point_at(const char *target);

/*
 * upgrades_master(): the pid in the pid file; 0: there is none.
 * upgrades_is_other_master(pid): for wait_until: it is another one.
 * upgrade(): SIGUSR2; another master then serves, and server->pid is its. Returns the pid of the
 * old one, which drains. expect_end(old): it ends with status 0.
 */
pid_t upgrades_master(void);
bool upgrades_is_other_master(void *pid);
pid_t upgrade(void);
void expect_end(pid_t old);
void expect_status_at_end(pid_t old, int status);

/*
 * expect_service(workers): it answers a read and a create, and has these workers, a writer and an
 * auditor. upgrades_has_children(count): for wait_until: it has that many (size_t) processes.
 * expect_logged(words, from, within_ms): the log has them after ${from} bytes.
 * links_begin_with(base): for wait_until: links in answers do.
 * upgrades_setting(name, otherwise): a number in the environment.
 */
void expect_service(unsigned workers);
bool upgrades_has_children(void *count);
void expect_logged(const char *words, size_t from, int within_ms);
bool links_begin_with(void *base);
unsigned upgrades_setting(const char *name, unsigned otherwise);

#endif
