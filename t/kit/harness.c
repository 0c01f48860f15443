#include "t/kit/harness_internal.h"
#include "t/kit/wall_clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { READY_MS = 15000, STOP_MS = 20000 };

/*
 * A shared server that did not stop well: teardowns cannot fail a test any more, the program can.
 */
static bool shared_failed;

/*
 * Tests keep what they allocate until they end, so under AddressSanitizer only the programs they
 * start are searched for leaks.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "detect_leaks=0";
}

char *file_text(const char *path)
{
    FILE *file = fopen(path, "r");
    char *out = NULL;
    size_t size = 0;
    if (!file)
        return text("(no %s)", path);
    if (getdelim(&out, &size, '\0', file) < 0) {
        free(out);
        out = text("%s", "");
    }
    fclose(file);
    return out;
}

/* ---- configuration and directory ---- */

void server_configure(struct server *s, const char *yaml)
{
    char *next = text("%s.new", s->conf);
    FILE *file = fopen(next, "w");
    ck_assert_msg(file != NULL, "%s: %s", next, strerror(errno));
    fprintf(file, "listen:\n  - address: 127.0.0.1:0\nworkers: %u\nauditors: %u\n",
            s->options.workers ? s->options.workers : 2,
            s->options.auditors ? s->options.auditors : 1);
    fprintf(file, "data_dir: %s\nrun_dir: %s\nuser: \"\"\n", s->data, s->run);
    fprintf(file, "audit: { allow_private: [%s]", s->options.strict ? "" : "127.0.0.0/8");
    if (s->options.origin)
        fprintf(file, ", ports: [80, 443, %u]", origin_port(s->options.origin));
    fprintf(file, "%s%s }\n", s->options.audit ? ", " : "",
            s->options.audit ? s->options.audit : "");
    fprintf(file, "%s\n", yaml ? yaml : "");
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(rename(next, s->conf), 0);
    free(next);
}

struct server *server_new(const struct server_options *options)
{
    struct server *s = calloc(1, sizeof(*s));
    const char *parent = getenv("TMPDIR");
    if (!s)
        abort();
    s->options = *options;
    s->output = -1;
    s->dir = text("%s/assay-t-XXXXXX", parent && *parent ? parent : "/tmp");
    ck_assert_msg(mkdtemp(s->dir) != NULL, "%s: %s", s->dir, strerror(errno));
    s->conf = text("%s/assay.yaml", s->dir);
    s->log = text("%s/stderr.log", s->dir);
    s->data = text("%s/data", s->dir);
    s->run = text("%s/run", s->dir);
    ck_assert_int_eq(mkdir(s->data, 0700), 0);
    ck_assert_int_eq(mkdir(s->run, 0700), 0);
    server_configure(s, options->yaml);
    return s;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st;
    (void)flag;
    (void)ftw;
    return remove(path);
}

void server_free(struct server *s)
{
    if (!s)
        return;
    if (s->pid > 0)
        server_stop(s);
    if (s->output >= 0)
        close(s->output);
    nftw(s->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(s);
}

void server_discard(struct server *s)
{
    if (s->pid > 0) {
        kill(s->pid, SIGKILL);
        server_wait(s, 5000);
    }
    server_free(s);
}

/* ---- starting and stopping ---- */

void server_spawn(struct server *s, ...)
{
    char *argv[ARGS_MAX] = {(char *)assayd_path(), "-c", s->conf};
    int pipe_fds[2];
    va_list args;
    va_start(args, s);
    program_words(argv, 3, args);
    va_end(args);

    ck_assert_int_eq(s->pid, 0);
    if (s->output >= 0)
        close(s->output);
    ck_assert_int_eq(pipe2(pipe_fds, O_CLOEXEC), 0);
    int log = open(s->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(log, 0);
    pid_t self = getpid();
    s->pid = fork();
    ck_assert_int_ge(s->pid, 0);
    if (s->pid == 0 && s->options.clock)
        wall_clock_use(s->options.clock);
    if (s->pid == 0)
        program_become(self, pipe_fds[1], log, argv);
    close(pipe_fds[1]);
    close(log);
    s->output = pipe_fds[0];
}

/*
 * One line of the server's standard output, without its end; NULL when it ended or the deadline
 * passed.
 */
static char *output_line(const struct server *s, int64_t deadline)
{
    char line[512];
    size_t size = 0;
    while (size < sizeof(line) - 1) {
        struct pollfd p = {.fd = s->output, .events = POLLIN};
        int64_t left = deadline - now_ms();
        if (left <= 0 || poll(&p, 1, (int)left) <= 0)
            return NULL;
        if (read(s->output, line + size, 1) != 1)
            return NULL;
        if (line[size++] == '\n')
            return text("%.*s", (int)size - 1, line);
    }
    return text("%.*s", (int)size, line);
}

bool server_ready(struct server *s, int within_ms)
{
    int64_t deadline = now_ms() + within_ms;
    char host[128];
    unsigned port, workers, auditors;
    for (char *line; (line = output_line(s, deadline)) != NULL; free(line)) {
        if (sscanf(line, "ready http://%127[^: ]:%u workers=%u auditors=%u", host, &port, &workers,
                   &auditors) != 4)
            continue;
        s->ready = line;
        s->port = (uint16_t)port;
        s->address = text("%s:%u", host, port);
        s->url = text("http://%s", s->address);
        return true;
    }
    return false;
}

void server_start(struct server *s)
{
    server_spawn(s, NULL);
    ck_assert_msg(server_ready(s, READY_MS), "assayd was not ready in time:\n%s", server_log(s));
    if (s->options.no_key || s->key)
        return;
    assay_ok(s, "workspace", "create", "main", NULL);
    s->key = key_new(s, "main", NULL);
}

void server_start_with(struct server *s, const char *yaml)
{
    server_configure(s, yaml);
    server_start(s);
}

void server_signal(const struct server *s, int signal_number)
{
    ck_assert_int_gt(s->pid, 0);
    ck_assert_int_eq(kill(s->pid, signal_number), 0);
}

int server_wait(struct server *s, int within_ms)
{
    int status = program_wait(s->pid, within_ms);
    if (status >= 0)
        s->pid = 0;
    return status;
}

/*
 * What no server may ever write: a child that crashed is replaced so well that nothing else would
 * show it.
 */
static const char *crash_sign(const struct server *s)
{
    static const char *const signs[] = {"ERROR: AddressSanitizer",
                                        "ERROR: LeakSanitizer",
                                        "runtime error:",
                                        "Assertion",
                                        "signal 6 ",
                                        "signal 7 ",
                                        "signal 8 ",
                                        "signal 11 ",
                                        "signal 31 ",
                                        "ended with status"};
    char *log = server_log(s);
    const char *sign = NULL;
    for (size_t i = 0; i < COUNT(signs) && !sign; i++)
        sign = strstr(log, signs[i]) ? signs[i] : NULL;
    free(log);
    return sign;
}

void server_stop(struct server *s)
{
    server_signal(s, SIGTERM);
    pid_t pid = s->pid;
    int status = server_wait(s, STOP_MS);
    if (status < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        s->pid = 0;
    }
    ck_assert_msg(status == 0, "TERM: exit status %d (-1: none within %d ms)\n%s", status, STOP_MS,
                  server_log(s));
    ck_assert_msg(!crash_sign(s), "its log speaks of \"%s\":\n%s", crash_sign(s), server_log(s));
}

struct server *server_shared(const struct server_options *options)
{
    struct server *s = server_new(options);
    server_start(s);
    return s;
}

void server_shared_stop(struct server *s)
{
    if (!s)
        return;
    pid_t pid = s->pid;
    if (pid > 0) {
        kill(pid, SIGTERM);
        int status = server_wait(s, STOP_MS);
        if (status != 0) {
            fprintf(stderr, "the shared server ended with %d (-1: not within %d ms):\n%s\n", status,
                    STOP_MS, server_log(s));
            kill(pid, SIGKILL);
            shared_failed = true;
        }
        s->pid = 0;
    }
    if (crash_sign(s)) {
        fprintf(stderr, "the shared server's log speaks of \"%s\":\n%s\n", crash_sign(s),
                server_log(s));
        shared_failed = true;
    }
    server_free(s);
}

char *server_log(const struct server *s)
{
    return file_text(s->log);
}

struct said {
    const struct server *s;
    const char *words;
    size_t from;
};

static bool has_said(void *arg)
{
    struct said *said = arg;
    char *log = server_log(said->s);
    bool found = strlen(log) >= said->from && strstr(log + said->from, said->words);
    free(log);
    return found;
}

bool server_says(const struct server *s, const char *words, size_t from, int within_ms)
{
    return wait_until(has_said, &(struct said){s, words, from}, within_ms);
}

/* ---- processes ---- */

/* Its parent and state (0 when it is gone). */
static pid_t process_parent(pid_t pid, char *state)
{
    char *path = text("/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    char line[512] = "";
    int parent = 0;
    *state = 0;
    free(path);
    if (!file)
        return 0;
    const char *rest = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    if (!rest || sscanf(rest + 1, " %c %d", state, &parent) != 2)
        *state = 0;
    fclose(file);
    return parent;
}

double process_seconds(pid_t pid)
{
    unsigned long user = 0, system = 0;
    char *path = text("/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    free(path);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file,
                            "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                            &user, &system),
                     2);
    fclose(file);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

bool process_alive(pid_t pid)
{
    char state;
    process_parent(pid, &state);
    return state && state != 'Z' && state != 'X';
}

char *process_title(pid_t pid)
{
    char *path = text("/proc/%d/cmdline", (int)pid);
    char *title = file_text(path);
    free(path);
    for (size_t size = strlen(title); size && title[size - 1] == ' '; size--)
        title[size - 1] = '\0';
    return title;
}

size_t server_children(const struct server *s, pid_t *pids, size_t max)
{
    DIR *proc = opendir("/proc");
    size_t count = 0;
    ck_assert_ptr_nonnull(proc);
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        char state;
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid <= 0 || process_parent(pid, &state) != s->pid || !state || state == 'Z' ||
            state == 'X')
            continue;
        if (pids && count < max)
            pids[count] = pid;
        count++;
    }
    closedir(proc);
    return count;
}

struct processes server_processes(const struct server *s)
{
    struct processes all;
    all.count = server_children(s, all.pids, COUNT(all.pids));
    return all;
}

bool processes_exited(void *processes)
{
    const struct processes *all = processes;
    for (size_t i = 0; i < all->count; i++)
        if (process_alive(all->pids[i]))
            return false;
    return true;
}

pid_t server_process(const struct server *s, const char *title)
{
    pid_t pids[64], found = 0;
    size_t count = server_children(s, pids, COUNT(pids));
    for (size_t i = 0; i < count && i < COUNT(pids) && !found; i++) {
        char *have = process_title(pids[i]);
        if (!strcmp(have, title))
            found = pids[i];
        free(have);
    }
    return found;
}

struct successor {
    const struct server *s;
    const char *title;
    pid_t old;
};

static bool is_replaced(void *arg)
{
    const struct successor *w = arg;
    pid_t now = server_process(w->s, w->title);
    return now && now != w->old;
}

bool server_replaces(const struct server *s, const char *title, pid_t old, int within_ms)
{
    return wait_until(is_replaced, &(struct successor){s, title, old}, within_ms);
}

/* ---- the program ---- */

static const char *case_names[64];
static size_t case_count;

TCase *harness_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);
    tcase_set_timeout(tcase, 35);
    suite_add_tcase(suite, tcase);
    if (case_count == COUNT(case_names))
        abort();
    case_names[case_count++] = name;
    return tcase;
}

/* ${name}: of the one case to run, or NULL */
static int run_suite(Suite *suite, const char *name)
{
    signal(SIGPIPE, SIG_IGN);
    check_set_max_msg_size(64 * 1024);
    SRunner *runner = srunner_create(suite);
    if (name)
        srunner_run(runner, NULL, name, CK_ENV);
    else
        srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed || shared_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int harness_main(Suite *suite)
{
    return run_suite(suite, NULL);
}

int harness_main_at_once(Suite *suite)
{
    pid_t pids[COUNT(case_names)], self = getpid();
    bool failed = false;
    if (getenv("CK_RUN_CASE"))
        return harness_main(suite);
    for (size_t i = 0; i < case_count; i++) {
        fflush(NULL);
        pids[i] = fork();
        if (pids[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGTERM); /* Check's runner ends its test then */
            exit(getppid() == self ? run_suite(suite, case_names[i]) : EXIT_FAILURE);
        }
        failed |= pids[i] < 0;
    }
    for (size_t i = 0; i < case_count; i++) {
        int status = -1;
        if (pids[i] > 0)
            waitpid(pids[i], &status, 0);
        failed |= status != 0;
    }
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
