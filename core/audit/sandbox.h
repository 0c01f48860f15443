/* The sandbox of a process that grades. */
#ifndef ASSAY_AUDIT_SANDBOX_H
#define ASSAY_AUDIT_SANDBOX_H

struct conf;

/*
 * audit_sandbox(conf, why):
 * Give up the privileges that grading does not need: no_new_privs, capabilities, seccomp, Landlock,
 * RLIMITs. Call once, after audit_new (audit.h), when all descriptors are open. Afterwards the
 * process cannot open files for writing, can read only files of the resolver, TLS and charsets,
 * cannot make Unix sockets (stream pairs excepted), start processes or signal others. A page that
 * hangs the parser then ends the process by SIGALRM. Returns 0, or -1 with a static ${why}. A
 * kernel without Landlock or seccomp is no error.
 */
int audit_sandbox(const struct conf *conf, const char **why);

#endif
