#include "config.h"

#include "core/audit/sandbox.h"
#include "core/audit/crash_note_internal.h"
#include "core/audit/sandbox_internal.h"
#include "core/conf/conf.h"
#include "core/base/sanitizer.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define THREAD_STACK_BYTES ((size_t)512 * 1024)
/* for parser, facts, TLS and the like, beyond what is already mapped */
#define BASE_BYTES ((rlim_t)512 * 1024 * 1024)
#define PAGE_COPIES 4 /* of a body: received, growing, as UTF-8, as text */
/* The largest window that zstd's decoder accepts. Only used pages of it are touched. */
#define ZSTD_WINDOW_BYTES ((rlim_t)128 * 1024 * 1024)
/* beyond all tasks that run: RLIMIT_NPROC counts all processes of the user */
#define SPARE_TASKS 1024
#define OUTPUT_BYTES ((rlim_t)1 << 30) /* growth allowed for a log or a file of reports */

/* ---- limits ---- */

static rlim_t mapped_bytes(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL || fscanf(f, "%lu", &pages) != 1)
        pages = 0;
    if (f != NULL)
        fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static bool set_limit(__rlimit_resource_t what, rlim_t value)
{
    struct rlimit now;
    if (getrlimit(what, &now) != 0)
        return false;
    if (now.rlim_max != RLIM_INFINITY && now.rlim_max < value)
        value = now.rlim_max;
    struct rlimit hard = {value, value}, soft = {value, now.rlim_max};
    /* a debugger may keep the hard limit */
    return setrlimit(what, &hard) == 0 || setrlimit(what, &soft) == 0;
}

/* libcurl's resolver threads would each map an arena of 64 MiB and a stack of 8 MiB. */
static bool bound_threads(void)
{
    pthread_attr_t attr;
    mallopt(M_ARENA_MAX, 2);
    if (pthread_attr_init(&attr) != 0)
        return false;
    bool ok = pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES) == 0 &&
              pthread_setattr_default_np(&attr) == 0;
    pthread_attr_destroy(&attr);
    return ok;
}

/*
 * The process opens no file for writing; its output and log may be open files. SIGXFSZ is ignored:
 * a write beyond the limit fails and does not end the process.
 */
static bool limit_files(void)
{
    rlim_t most = 0;
    for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
        struct stat st;
        if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (rlim_t)st.st_size + OUTPUT_BYTES > most)
            most = (rlim_t)st.st_size + OUTPUT_BYTES;
    }
    return signal(SIGXFSZ, SIG_IGN) != SIG_ERR && set_limit(RLIMIT_FSIZE, most);
}

static bool limit_resources(const struct conf *conf)
{
    rlim_t files = 64 + 8 * (rlim_t)conf->audit_concurrency;
    struct sysinfo now = {.procs = 0};
    if (!set_limit(RLIMIT_CORE, 0) || !set_limit(RLIMIT_NOFILE, files) || !limit_files() ||
        sysinfo(&now) != 0 ||
        !set_limit(RLIMIT_NPROC, (rlim_t)now.procs + conf->audit_concurrency + SPARE_TASKS))
        return false;
    if (SANITIZED)
        return true; /* shadow memory alone takes terabytes of address space */
    rlim_t per_page =
        PAGE_COPIES * (rlim_t)conf->audit_max_bytes + 2 * THREAD_STACK_BYTES + ZSTD_WINDOW_BYTES;
    return bound_threads() &&
           set_limit(RLIMIT_AS, mapped_bytes() + BASE_BYTES + conf->audit_concurrency * per_page);
}

/* ---- capabilities ---- */

static bool drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    /*
     * Dropping from the bounding set needs a capability. Without it, no_new_privs prevents gaining
     * any by an exec.
     */
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return syscall(SYS_capset, &header, none) == 0;
}

/*
 * ---- Landlock: read-only access to the files that resolving, TLS and charsets need ----
 *
 * A rule holds the inode it was made for. If resolv.conf is replaced and its folder is not listed,
 * the process keeps the old name servers until it restarts.
 */

static const char *const readable_paths[] = {
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/protocols",
    "/etc/ld.so.cache",
    "/etc/localtime",
    /* certificates and configuration of TLS, no folder with keys */
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf",
    "/etc/crypto-policies",
    "/etc/ca-certificates",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    "/usr/share/pki",
    "/usr/share/crypto-policies",
    "/run/systemd/resolve",
    "/run/NetworkManager",
    /* charset converters, and libraries loaded for resolving */
    "/usr/lib",
    "/usr/lib64",
    "/lib",
    "/lib64",
    "/dev/urandom",
    "/dev/null",
    "/proc/sys/vm",
    "/sys/devices/system/cpu",
#if SANITIZED
    "/proc/self",
#endif
};

/*
 * Rights of Landlock's first version, and later ones that this kernel knows. A handled right is
 * denied unless a rule allows it.
 */
static uint64_t handled_rights(long version)
{
    uint64_t rights = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
    if (version >= 2)
        rights |= 1ULL << 13; /* REFER */
    if (version >= 3)
        rights |= 1ULL << 14; /* TRUNCATE */
    if (version >= 5)
        rights |= 1ULL << 15; /* IOCTL_DEV */
    return rights;
}

static bool allow_path(int ruleset, const char *path)
{
    struct landlock_path_beneath_attr rule = {.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE};
    struct stat st;
    rule.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (rule.parent_fd < 0)
        return true; /* not on this system */
    if (fstat(rule.parent_fd, &st) == 0 && S_ISDIR(st.st_mode))
        rule.allowed_access |= LANDLOCK_ACCESS_FS_READ_DIR;
    bool ok = syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
    close(rule.parent_fd);
    return ok;
}

static bool restrict_files(void)
{
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (version < 1)
        return true; /* no Landlock in this kernel; file modes and seccomp still apply */
    struct landlock_ruleset_attr attr = {.handled_access_fs = handled_rights(version)};
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
    if (ruleset < 0)
        return false;
    bool ok = true;
    for (size_t i = 0; ok && i < sizeof(readable_paths) / sizeof(*readable_paths); i++)
        ok = allow_path(ruleset, readable_paths[i]);
    ok = ok && syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
    close(ruleset);
    return ok;
}

/*
 * ---- seccomp: the calls of libcurl, its resolver threads, TLS and the parser ----
 *
 * Any other call fails with ENOSYS; calls that only an intruder makes kill the process.
 */

static const int allowed_calls[] = {
    /* memory, threads, time */
    SCMP_SYS(brk),
    SCMP_SYS(mmap),
    SCMP_SYS(munmap),
    SCMP_SYS(mremap),
    SCMP_SYS(madvise),
    SCMP_SYS(mprotect),
    SCMP_SYS(futex),
    SCMP_SYS(set_robust_list),
    SCMP_SYS(get_robust_list),
    SCMP_SYS(rseq),
    SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity),
    SCMP_SYS(getcpu),
    SCMP_SYS(gettid),
    SCMP_SYS(getpid),
    SCMP_SYS(getppid),
    SCMP_SYS(getuid),
    SCMP_SYS(geteuid),
    SCMP_SYS(getgid),
    SCMP_SYS(getegid),
    SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_getres),
    SCMP_SYS(clock_nanosleep),
    SCMP_SYS(nanosleep),
    SCMP_SYS(gettimeofday),
    SCMP_SYS(time),
    SCMP_SYS(getrandom),
    SCMP_SYS(uname),
    SCMP_SYS(sysinfo),
    SCMP_SYS(getrusage),
    SCMP_SYS(times),
    SCMP_SYS(exit),
    SCMP_SYS(exit_group),
    SCMP_SYS(restart_syscall),
    SCMP_SYS(arch_prctl),
    SCMP_SYS(membarrier),
    /* signals; to itself only, see below */
    SCMP_SYS(rt_sigaction),
    SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),
    SCMP_SYS(rt_sigpending),
    SCMP_SYS(rt_sigtimedwait),
    SCMP_SYS(sigaltstack),
    SCMP_SYS(signalfd4),
    SCMP_SYS(alarm),
    SCMP_SYS(setitimer),
    SCMP_SYS(getitimer),
    SCMP_SYS(timerfd_create),
    SCMP_SYS(timerfd_settime),
    SCMP_SYS(timerfd_gettime),
    /* descriptors */
    SCMP_SYS(read),
    SCMP_SYS(readv),
    SCMP_SYS(pread64),
    SCMP_SYS(write),
    SCMP_SYS(writev),
    SCMP_SYS(close),
    SCMP_SYS(close_range),
    SCMP_SYS(dup),
    SCMP_SYS(dup2),
    SCMP_SYS(dup3),
    SCMP_SYS(fcntl),
    SCMP_SYS(lseek),
    SCMP_SYS(poll),
    SCMP_SYS(ppoll),
    SCMP_SYS(select),
    SCMP_SYS(pselect6),
    SCMP_SYS(epoll_create1),
    SCMP_SYS(epoll_ctl),
    SCMP_SYS(epoll_wait),
    SCMP_SYS(epoll_pwait),
    SCMP_SYS(eventfd2),
    SCMP_SYS(pipe2),
    /* file metadata; opening is restricted below and by Landlock */
    SCMP_SYS(stat),
    SCMP_SYS(fstat),
    SCMP_SYS(lstat),
    SCMP_SYS(newfstatat),
    SCMP_SYS(statx),
    SCMP_SYS(statfs),
    SCMP_SYS(fstatfs),
    SCMP_SYS(access),
    SCMP_SYS(faccessat),
    SCMP_SYS(faccessat2),
    SCMP_SYS(readlink),
    SCMP_SYS(readlinkat),
    SCMP_SYS(getdents64),
    SCMP_SYS(getcwd),
    SCMP_SYS(flock),
    /* sockets; creating one is restricted below */
    SCMP_SYS(connect),
    SCMP_SYS(bind),
    SCMP_SYS(getsockname),
    SCMP_SYS(getpeername),
    SCMP_SYS(getsockopt),
    SCMP_SYS(setsockopt),
    SCMP_SYS(sendto),
    SCMP_SYS(recvfrom),
    SCMP_SYS(sendmsg),
    SCMP_SYS(recvmsg),
    SCMP_SYS(sendmmsg),
    SCMP_SYS(recvmmsg),
    SCMP_SYS(shutdown),
    SCMP_SYS(getrlimit),
};

/* Calls that nothing here makes: they are a sign of an intruder. */
static const int killing_calls[] = {
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(fork),
    SCMP_SYS(vfork),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    SCMP_SYS(bpf),
    SCMP_SYS(init_module),
    SCMP_SYS(finit_module),
    SCMP_SYS(kexec_load),
    SCMP_SYS(keyctl),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(open_by_handle_at),
    SCMP_SYS(setuid),
    SCMP_SYS(setgid),
    SCMP_SYS(setresuid),
    SCMP_SYS(setresgid),
    SCMP_SYS(personality),
    SCMP_SYS(unlink),
    SCMP_SYS(unlinkat),
    SCMP_SYS(rename),
    SCMP_SYS(renameat),
    SCMP_SYS(renameat2),
    SCMP_SYS(ptrace),
};

/* The leak checker, which runs when a sanitized process ends, traces it from a clone. */
static const int sanitizer_calls[] = {
    SCMP_SYS(ptrace), SCMP_SYS(clone), SCMP_SYS(wait4), SCMP_SYS(prctl),     SCMP_SYS(prlimit64),
    SCMP_SYS(tgkill), SCMP_SYS(tkill), SCMP_SYS(open),  SCMP_SYS(setrlimit),
};

static bool add_list(scmp_filter_ctx filter, uint32_t action, const int *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int code = seccomp_rule_add(filter, action, calls[i], 0);
        /* EDOM: no call of this architecture; EEXIST, EACCES: already listed */
        if (code != 0 && code != -EDOM && code != -EEXIST && code != -EACCES)
            return false;
    }
    return true;
}

#define ADD_LIST(filter, action, list)                                                             \
    add_list(filter, action, list, sizeof(list) / sizeof(*(list)))

static bool add_conditional_rules(scmp_filter_ctx filter)
{
    /* no AF_UNIX: the writer's socket is one */
    static const int families[] = {AF_INET, AF_INET6, AF_NETLINK};
    static const unsigned long controls[] = {FIONBIO, FIONREAD, TCGETS};
    const uint64_t writes =
        O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY);
    const uint64_t self = (uint64_t)getpid();
    bool ok = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
                               SCMP_A2(SCMP_CMP_MASKED_EQ, writes, 0)) == 0;
    /*
     * A stream pair reaches only its other end. A datagram socket could be connected to another
     * process's socket.
     */
    ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 1,
                                SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM)) == 0;
    for (size_t i = 0; ok && i < sizeof(families) / sizeof(*families); i++)
        ok = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                              SCMP_A0(SCMP_CMP_EQ, (uint64_t)families[i], 0)) == 0;
    if (!SANITIZED) {
        /*
         * Threads, but no processes. clone3 hides its flags from the filter; without it, libc uses
         * clone.
         */
        ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                                    SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)) == 0;
        ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1,
                                    SCMP_A0(SCMP_CMP_EQ, self, 0)) == 0;
        ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
                                    SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME, 0)) == 0;
        ok = ok && seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 1,
                                    SCMP_A2(SCMP_CMP_EQ, 0, 0)) == 0;
    }
    for (size_t i = 0; ok && i < sizeof(controls) / sizeof(*controls); i++)
        ok = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                              SCMP_A1(SCMP_CMP_EQ, controls[i], 0)) == 0;
    return ok;
}

static bool restrict_calls(void)
{
    if (seccomp_api_get() == 0)
        return true; /* no seccomp filters in this kernel */
    /* before Linux 4.14 */
    uint32_t kill_action = seccomp_api_get() >= 3 ? SCMP_ACT_KILL_PROCESS : SCMP_ACT_KILL_THREAD;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    if (filter == NULL)
        return false;
    bool ok = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, kill_action) == 0 &&
              (!SANITIZED || ADD_LIST(filter, SCMP_ACT_ALLOW, sanitizer_calls)) &&
              ADD_LIST(filter, SCMP_ACT_ALLOW, allowed_calls);
    for (size_t i = 0; ok && i < sizeof(killing_calls) / sizeof(*killing_calls); i++)
        if (!(SANITIZED && killing_calls[i] == SCMP_SYS(ptrace)))
            ok = add_list(filter, kill_action, &killing_calls[i], 1);
    ok = ok && add_conditional_rules(filter) &&
         seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1) == 0;
    int loaded = ok ? seccomp_load(filter) : -1;
    seccomp_release(filter);
    return ok && (loaded == 0 || loaded == -ENOSYS ||
                  loaded == -EINVAL); /* no filters in this kernel, or valgrind */
}

/*
 * SIGALRM must end the process, even if the parent ignored or blocked it. With a crash note its
 * handler does.
 */
static bool unblock_alarm(void)
{
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    bool ends = crash_note_installed() || signal(SIGALRM, SIG_DFL) != SIG_ERR;
    return ends && sigprocmask(SIG_UNBLOCK, &alarm_only, NULL) == 0;
}

static bool is_on;

bool sandbox_is_on(void)
{
    return is_on;
}

int audit_sandbox(const struct conf *conf, const char **why)
{
    *why = NULL;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        *why = "setting no_new_privs failed";
    else if (!unblock_alarm())
        *why = "unblocking SIGALRM failed";
    else if (!limit_resources(conf))
        *why = "setting resource limits failed";
    else if (!restrict_files())
        *why = "Landlock rejected the rules for files";
    else if (!drop_capabilities())
        *why = "dropping capabilities failed";
    else if (!SANITIZED && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        *why = "hiding the process from debuggers failed";
    else if (!restrict_calls())
        *why = "seccomp rejected the filter";
    is_on = *why == NULL;
    return is_on ? 0 : -1;
}
