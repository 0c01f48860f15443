#include "t/kit/harness_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

enum { RUN_MS = 20000 };

const char *assayd_path(void)
{
    const char *path = getenv("ASSAYD");
    return path && *path ? path : "./assayd";
}

const char *assay_path(void)
{
    const char *path = getenv("ASSAY");
    return path && *path ? path : "./assay";
}

_Noreturn void program_become(pid_t parent, int out, int err, char *const *argv)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    signal(SIGPIPE, SIG_DFL);
    int in = open("/dev/null", O_RDONLY);
    if (in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(err, 2) < 0)
        _exit(127);
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    execv(argv[0], argv);
    dprintf(2, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

size_t program_words(char **argv, size_t count, va_list args)
{
    for (char *arg; (arg = va_arg(args, char *)) != NULL;) {
        ck_assert_uint_lt(count, ARGS_MAX - 1);
        argv[count++] = arg;
    }
    argv[count] = NULL;
    return count;
}

int program_wait(pid_t pid, int within_ms)
{
    int64_t deadline = now_ms() + within_ms;
    const struct timespec pause = {.tv_nsec = 2000000};
    for (;;) {
        int status;
        pid_t got = waitpid(pid, &status, WNOHANG);
        if (got == pid)
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        if (got < 0 && errno != EINTR)
            return -1;
        if (now_ms() > deadline)
            return -1;
        nanosleep(&pause, NULL);
    }
}

static char *stream_text(FILE *file)
{
    char *out = NULL;
    size_t size = 0;
    rewind(file);
    if (getdelim(&out, &size, '\0', file) < 0) {
        free(out);
        out = text("%s", "");
    }
    fclose(file);
    return out;
}

static struct run run_argv(char *const *argv)
{
    FILE *out = tmpfile(), *err = tmpfile();
    ck_assert_msg(out && err, "tmpfile: %s", strerror(errno));
    pid_t self = getpid(), pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0)
        program_become(self, fileno(out), fileno(err), argv);

    struct run run = {.status = program_wait(pid, RUN_MS)};
    char *command = text("%s", "");
    for (size_t i = 0; argv[i]; i++) {
        char *longer = text("%s%s%s", command, i ? " " : "", argv[i]);
        free(command);
        command = longer;
    }
    run.command = command;
    if (run.status < 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    run.out = stream_text(out);
    run.err = stream_text(err);
    ck_assert_msg(run.status >= 0, "%s did not end within %d ms:\n%s%s", run.command, RUN_MS,
                  run.out, run.err);
    return run;
}

struct run run_program(const char *path, ...)
{
    char *argv[ARGS_MAX] = {(char *)path};
    va_list args;
    va_start(args, path);
    program_words(argv, 1, args);
    va_end(args);
    return run_argv(argv);
}

struct run assay(const struct server *s, ...)
{
    char *argv[ARGS_MAX] = {(char *)assay_path(), "-c", s->conf};
    va_list args;
    va_start(args, s);
    program_words(argv, 3, args);
    va_end(args);
    return run_argv(argv);
}

static char *succeed(char *const *argv)
{
    struct run run = run_argv(argv);
    ck_assert_msg(run.status == 0, "%s: exit status %d\n%s%s", run.command, run.status, run.out,
                  run.err);
    size_t size = strlen(run.out);
    if (size && run.out[size - 1] == '\n')
        run.out[size - 1] = '\0';
    free(run.err);
    return run.out;
}

char *assay_ok(const struct server *s, ...)
{
    char *argv[ARGS_MAX] = {(char *)assay_path(), "-c", s->conf};
    va_list args;
    va_start(args, s);
    program_words(argv, 3, args);
    va_end(args);
    return succeed(argv);
}

struct json_object *assay_list(const struct server *s, ...)
{
    char *argv[ARGS_MAX] = {(char *)assay_path(), "-c", s->conf};
    va_list args;
    va_start(args, s);
    size_t count = program_words(argv, 3, args);
    va_end(args);
    ck_assert_uint_lt(count, ARGS_MAX - 1);
    argv[count] = "--json";
    char *out = succeed(argv), *rest = out;
    struct json_object *list = json_object_new_array();
    for (char *line; (line = strsep(&rest, "\n")) != NULL && *line;) {
        struct json_object *record = json_tokener_parse(line);
        ck_assert_msg(json_object_is_type(record, json_type_object), "not a JSON object: %s", line);
        json_object_array_add(list, record);
    }
    free(out);
    return list;
}

const char *record_text(struct json_object *record, const char *name)
{
    struct json_object *value = NULL;
    ck_assert_msg(json_object_object_get_ex(record, name, &value), "no %s in %s", name,
                  json_object_to_json_string(record));
    return json_object_get_string(value);
}

struct json_object *record_find(struct json_object *list, const char *name, const char *value)
{
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        struct json_object *record = json_object_array_get_idx(list, i);
        const char *have = record_text(record, name);
        if (have && !strcmp(have, value))
            return record;
    }
    return NULL;
}

char *key_new(const struct server *s, const char *workspace, ...)
{
    static const char *const all[] = {"reports:read", "reports:write", "projects:read",
                                      "projects:write"};
    char *argv[ARGS_MAX] = {(char *)assay_path(), "-c", s->conf, "key", "create", "--workspace",
                            (char *)workspace};
    size_t count = 7;
    va_list args;
    va_start(args, workspace);
    for (char *scope; (scope = va_arg(args, char *)) != NULL;) {
        argv[count++] = "--scope";
        argv[count++] = scope;
    }
    va_end(args);
    for (size_t i = 0; count == 7 + 2 * i && i < COUNT(all); i++) {
        argv[count++] = "--scope";
        argv[count++] = (char *)all[i];
    }
    char *secret = succeed(argv);
    ck_assert_msg(!strncmp(secret, "asy_key_", 8), "key create printed %s", secret);
    return secret;
}
