/*
 * The sandbox of an auditor: pages are fetched and graded, and every other operation is refused.
 * Each test is a process that enters the sandbox.
 */
#include "config.h"

#include "core/audit/audit.h"
#include "core/audit/sandbox.h"
#include "core/audit/crash_note_internal.h"
#include "t/kit/audit_origin.h"
#include "t/kit/suite.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define SANITIZED 1 /* a leak checker must be able to trace, to fork and to read its own maps */
#else
#define SANITIZED 0
#endif

enum { INSIDE_OK = 0, INSIDE_NOT_LOCKED = 90, INSIDE_ALLOWED = 91, INSIDE_FAILED = 92 };

static struct cidr loopback;
static struct conf conf;
static struct origin *origin;
static char dir[] = "/tmp/assay-sandbox-XXXXXX";
static char secret[64];
static struct sockaddr_un unix_socket = {.sun_family =
                                             AF_UNIX}; /* another process's datagram socket */
static int unix_fd;

static void answer(struct origin_answer *a, const char *path)
{
    if (strcmp(path, "/") == 0)
        origin_page(a, "Content-Type: text/html; charset=shift_jis\r\n",
                    "<!DOCTYPE html><html lang=ja><title>\x83\x52\x81\x5b\x83\x71\x81\x5b</title>");
    else
        origin_puts(a, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}

static void open_all(bool tls)
{
    ck_assert(cidr_parse("127.0.0.0/8", &loopback));
    origin = origin_open(answer, tls);
    conf = (struct conf){
        .audit_allow_private = {&loopback, 1},
        .audit_ports = {origin_port(origin)},
        .audit_ports_count = 1,
        .audit_concurrency = 4,
        .audit_timeout_ms = 20000,
        .audit_max_bytes = 1024 * 1024,
        .audit_max_redirects = 5,
    };
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(secret, sizeof(secret), "%s/secret", dir);
    snprintf(unix_socket.sun_path, sizeof(unix_socket.sun_path), "%s/socket", dir);
    unix_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(unix_fd, (struct sockaddr *)&unix_socket, sizeof(unix_socket)), 0);
    FILE *f = fopen(secret, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs("secret", f), 0);
    ck_assert_int_eq(fclose(f), 0);
}

static void close_all(void)
{
    close(unix_fd);
    unlink(unix_socket.sun_path);
    unlink(secret);
    rmdir(dir);
    origin_close(origin);
}

/* what an auditor does before it enters the sandbox; NULL: nothing */
static void (*before_lock)(void);

/* Run ${act} in a sandboxed process. Returns its exit status, or minus the signal that ended it. */
static int inside(int (*act)(struct audit *audit), bool tls)
{
    open_all(tls);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        const char *why = "no engine";
        struct audit *audit = audit_new(&conf);
        if (before_lock != NULL)
            before_lock();
        if (audit == NULL || audit_sandbox(&conf, &why) != 0) {
            fprintf(stderr, "not sandboxed: %s\n", why);
            _exit(INSIDE_NOT_LOCKED);
        }
        _exit(act(audit));
    }
    origin_start(origin);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    close_all();
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void keep_code(void *arg, const struct audit_findings *f)
{
    int *result = arg;
    bool graded = f->error_code == NULL &&
                  memmem(f->results.p, f->results.n,
                         "\xE3\x82\xB3\xE3\x83\xBC\xE3\x83\x92\xE3\x83\xBC", 12) != NULL;
    if (!graded)
        fprintf(stderr, "%s %s\n", f->error_code == NULL ? "graded" : f->error_code,
                f->error_message == NULL ? "" : f->error_message);
    *result = graded ? INSIDE_OK : INSIDE_FAILED;
}

static int grade(struct audit *audit)
{
    char url[64];
    int result = INSIDE_FAILED;
    /* localhost makes libcurl start a resolver thread; Shift_JIS makes iconv load a converter */
    snprintf(url, sizeof(url), "%s://localhost:%u/",
             strncmp(origin_url(origin, "/"), "https", 5) == 0 ? "https" : "http",
             origin_port(origin));
    audit_add(audit, 1, str_of(url), keep_code, &result);
    while (audit_pending(audit) > 0)
        if (audit_wait(audit, NULL, 0, 1000) != 0)
            return INSIDE_FAILED;
    audit_free(audit);
    return result;
}

static int read_secret(struct audit *audit)
{
    (void)audit;
    return open(secret, O_RDONLY) < 0 ? INSIDE_OK : INSIDE_ALLOWED;
}

static int list_directory(struct audit *audit)
{
    (void)audit;
    return open(dir, O_RDONLY | O_DIRECTORY) < 0 ? INSIDE_OK : INSIDE_ALLOWED;
}

static int write_secret(struct audit *audit)
{
    (void)audit;
    return open(secret, O_WRONLY) < 0 && open(secret, O_RDWR | O_CREAT, 0600) < 0 &&
                   open("/dev/null", O_WRONLY) < 0
               ? INSIDE_OK
               : INSIDE_ALLOWED;
}

static int open_unix_socket(struct audit *audit)
{
    (void)audit;
    return socket(AF_UNIX, SOCK_STREAM, 0) < 0 && socket(AF_PACKET, SOCK_RAW, 0) < 0
               ? INSIDE_OK
               : INSIDE_ALLOWED;
}

static int read_key(struct audit *audit)
{
    (void)audit;
    return open("/etc/ssl/private", O_RDONLY | O_DIRECTORY) < 0 &&
                   open("/etc/passwd", O_RDONLY) < 0 &&
                   (SANITIZED || open("/proc/self/mem", O_RDONLY) < 0)
               ? INSIDE_OK
               : INSIDE_ALLOWED;
}

/* A socket pair can be created, but it connects to nothing else. */
static int reach_unix_socket(struct audit *audit)
{
    static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
    (void)audit;
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        int pair[2];
        if (socketpair(AF_UNIX, types[i], 0, pair) == 0 &&
            connect(pair[0], (struct sockaddr *)&unix_socket, sizeof(unix_socket)) == 0)
            return INSIDE_ALLOWED;
    }
    return INSIDE_OK;
}

static int trace_parent(struct audit *audit)
{
    (void)audit;
    ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
    return INSIDE_ALLOWED;
}

static int read_parents_memory(struct audit *audit)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {&conf, 1};
    (void)audit;
    process_vm_readv(getppid(), &to, 1, &from, 1, 0);
    return INSIDE_ALLOWED;
}

/* columns: limit, its maximum */
static int have_limits(struct audit *audit)
{
    static const struct {
        __rlimit_resource_t limit;
        rlim_t most;
    } limits[] = {
        {RLIMIT_CORE, 0},
        {RLIMIT_NOFILE, 1024},
        {RLIMIT_NPROC, 100000},
        {RLIMIT_FSIZE, (rlim_t)1 << 40},
#if !SANITIZED
        {RLIMIT_AS, (rlim_t)2 << 30},
#endif
    };
    (void)audit;
    for (size_t i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
        struct rlimit now;
        if (getrlimit(limits[i].limit, &now) != 0 || now.rlim_cur > limits[i].most ||
            now.rlim_max > limits[i].most)
            return INSIDE_ALLOWED;
    }
    return INSIDE_OK;
}

static int signal_parent(struct audit *audit)
{
    (void)audit;
    return kill(getppid(), 0) < 0 ? INSIDE_OK : INSIDE_ALLOWED;
}

static int listen_on_port(struct audit *audit)
{
    (void)audit;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && listen(fd, 1) < 0 ? INSIDE_OK : INSIDE_ALLOWED;
}

static int run_program(struct audit *audit)
{
    (void)audit;
    execl("/bin/true", "true", (char *)NULL);
    return INSIDE_ALLOWED;
}

static int become_root(struct audit *audit)
{
    (void)audit;
    return setuid(0) == 0 ? INSIDE_ALLOWED : INSIDE_FAILED;
}

static int remove_secret(struct audit *audit)
{
    (void)audit;
    unlink(secret);
    return INSIDE_ALLOWED;
}

static int hang(struct audit *audit)
{
    (void)audit;
    alarm(1); /* as the engine does around the parser */
    while (poll(NULL, 0, -1) <= 0)
        ;
    return INSIDE_ALLOWED;
}

static int try_fork(struct audit *audit)
{
    (void)audit;
    return fork() < 0 ? INSIDE_OK : INSIDE_ALLOWED;
}

static const struct {
    const char *what;
    int (*act)(struct audit *audit);
    int end;
} acts[] = {
    {"grade a page", grade, INSIDE_OK},
    {"read a private file", read_secret, INSIDE_OK},
    {"list a private directory", list_directory, INSIDE_OK},
    {"write a file", write_secret, INSIDE_OK},
    {"read a key, a user's file or memory by its file", read_key, INSIDE_OK},
    {"reach a Unix socket over a pair", reach_unix_socket, INSIDE_OK},
    {"trace another process", trace_parent, SANITIZED ? INSIDE_ALLOWED : -SIGSYS},
    {"read another's memory", read_parents_memory, -SIGSYS},
    {"be without limits", have_limits, INSIDE_OK},
    {"make a Unix or raw socket", open_unix_socket, INSIDE_OK},
    {"signal another process", signal_parent, INSIDE_OK},
    {"listen", listen_on_port, INSIDE_OK},
    {"run a program", run_program, -SIGSYS},
    {"change its user", become_root, -SIGSYS},
    {"remove a file", remove_secret, -SIGSYS},
    {"outlive its watchdog", hang, -SIGALRM},
    {"make a process", try_fork, SANITIZED ? INSIDE_ALLOWED : INSIDE_OK},
};

START_TEST(the_sandbox_allows_grading_and_nothing_else)
{
    int end = inside(acts[_i].act, false);
    ck_assert_msg(end == acts[_i].end, "%s: %d, not %d", acts[_i].what, end, acts[_i].end);
}
END_TEST

START_TEST(the_sandbox_allows_checking_a_certificate)
{
    ck_assert_int_eq(inside(grade, true), INSIDE_OK);
}
END_TEST

/* ---- the crash note of a process that a page kills ---- */

static int words[2];

static void send_text(uint64_t id)
{
    if (write(words[1], &id, sizeof(id)) != sizeof(id))
        _exit(INSIDE_FAILED);
}

static int fault(struct audit *audit)
{
    *(volatile int *)(uintptr_t)((uintptr_t)audit & 1) = 1;
    return INSIDE_ALLOWED;
}

static volatile bool deeper = true;

static int overflow(struct audit *audit)
{
    volatile char room[65536];
    room[0] = 1;
    return deeper ? overflow(audit) + room[0] : INSIDE_ALLOWED;
}

static int fail_with(struct audit *audit)
{
    (void)audit;
    abort();
}

static int end_well(struct audit *audit)
{
    (void)audit;
    return INSIDE_OK;
}

static const struct {
    int (*act)(struct audit *audit);
    int end;
    uint64_t page, received;
} deaths[] = {
    {fault, -SIGSEGV, 42, 42}, {overflow, -SIGSEGV, 42, 42}, {fail_with, -SIGABRT, 42, 42},
    {hang, -SIGALRM, 42, 42},  {fault, -SIGSEGV, 0, 0},      {end_well, INSIDE_OK, 42, 0},
};

static unsigned death; /* which of them */

static void receive(void)
{
    crash_note_install(send_text);
}

static int die(struct audit *audit)
{
    crash_note_set_page(deaths[death].page);
    return deaths[death].act(audit);
}

START_TEST(a_crash_note_names_the_page)
{
    uint64_t received = 0;
    ck_assert_int_eq(pipe2(words, O_NONBLOCK), 0);
    death = (unsigned)_i;
    before_lock = receive;
    ck_assert_int_eq(inside(die, false), deaths[_i].end);
    ssize_t n = read(words[0], &received, sizeof(received));
    ck_assert_uint_eq(n < 0 ? 0 : received, deaths[_i].received);
    close(words[0]);
    close(words[1]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit_sandbox");
    TCase *t = tcase_create("sandbox");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, the_sandbox_allows_grading_and_nothing_else, 0,
                        sizeof(acts) / sizeof(*acts));
    tcase_add_test(t, the_sandbox_allows_checking_a_certificate);
    tcase_add_loop_test(t, a_crash_note_names_the_page, 0,
                        SANITIZED ? 0 : sizeof(deaths) / sizeof(*deaths));
    suite_add_tcase(s, t);
    return suite_run(s);
}
