/*
 * Runs one server of another project for a test, in a directory of its own. The server is the child
 * of a supervisor, a process in a session of its own. When the test ends, however it ends, the
 * supervisor kills the server with all its descendants and removes the directory.
 *
 * Every process that is forked after supervisor_new shares the supervisor: a test may stop and
 * start a server that a fixture started. A function that fails fails the running test.
 */
#ifndef ASSAY_T_KIT_SUPERVISOR_H
#define ASSAY_T_KIT_SUPERVISOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* In shared memory. ${dir}, ${uid} and ${gid} are for reading; the rest is private. */
struct supervisor {
    char dir[256]; /* belongs to ${uid} */
    uid_t uid;
    gid_t gid;
    pid_t self;
    int commands;
    void (*before_removal)(const char *dir);
    char program[2048]; /* words that end with NUL; an empty word ends them */
    atomic_uint starts;
    atomic_int status;
    _Atomic pid_t server;
};

/*
 * supervisor_new(name, user, before_removal): a private directory with this word in its name, and a
 * supervisor. Where the test is run by root, directory and server belong to ${user}, or to nobody
 * where that user is missing. ${before_removal} (or NULL) is called when no process is left, just
 * before the directory is removed. supervisor_free: kills the server and removes the directory.
 */
struct supervisor *supervisor_new(const char *name, const char *user,
                                  void (*before_removal)(const char *dir));
void supervisor_free(struct supervisor *s);

/*
 * supervisor_start(s, path, …): starts the server and does not wait until it is ready; arguments,
 * ended by NULL. Its output goes to the end of the file `log` in the directory.
 * supervisor_log: what that file holds.
 */
void supervisor_start(struct supervisor *s, const char *path, ...);
char *supervisor_log(const struct supervisor *s);

/* supervisor_server(s): the pid of the server; 0: it does not run. */
pid_t supervisor_server(const struct supervisor *s);

/*
 * supervisor_signal(s, signal): sends a signal to the server. supervisor_wait: waits for the end of
 * the server; its exit status or 128 + signal, or -1 after ${within_ms}.
 */
void supervisor_signal(const struct supervisor *s, int signal);
int supervisor_wait(const struct supervisor *s, int within_ms);

/*
 * supervisor_signal_all(s, signal): sends SIGKILL, SIGSTOP or SIGCONT to the server and all its
 * descendants, also to those whose parent has ended. Returns when each has ended or stopped.
 */
void supervisor_signal_all(const struct supervisor *s, int signal);

/* process_stop(pid): sends SIGSTOP and waits until the process has stopped. */
void process_stop(pid_t pid);

/*
 * supervisor_run(s, in, out, path, …): runs a program to its end, as the user of the server; the
 * exit status must be 0. ${in} is its input, -1: none. ${out} is its output, -1: the log.
 */
void supervisor_run(struct supervisor *s, int in, int out, const char *path, ...);

/*
 * loopback_port(): a TCP port that nobody listens on, outside the range from which the kernel takes
 * the ports of outgoing connections. No other test gets it until this process ends.
 */
uint16_t loopback_port(void);

#endif
