#include "t/kit/redis_servers.h"

#include "t/kit/harness_internal.h"
#include "t/kit/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/stat.h>

#define SERVER "/usr/bin/redis-server"
#define SENTINEL "/usr/bin/redis-sentinel"
#define CLI "/usr/bin/redis-cli"
#define WITHIN_MS 20000

bool redis_installed(void)
{
    return access(SERVER, X_OK) == 0 && access(SENTINEL, X_OK) == 0 && access(CLI, X_OK) == 0;
}

static struct redis *redis_new(void)
{
    struct redis *r = calloc(1, sizeof(*r));
    ck_assert_ptr_nonnull(r);
    r->dir = text("/tmp/assay-redis-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(r->dir));
    r->port = loopback_port();
    r->conf = text("%s/redis.conf", r->dir);
    r->address = text("127.0.0.1:%u", r->port);
    return r;
}

static void configure(const struct redis *r, const char *lines)
{
    FILE *file = fopen(r->conf, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "bind 127.0.0.1\nport %u\ndir %s\n%s\n", r->port, r->dir, lines);
    ck_assert_int_eq(fclose(file), 0);
}

static void spawn(struct redis *r)
{
    char *argv[] = {r->is_sentinel ? SENTINEL : SERVER, r->conf, NULL};
    char *log = text("%s/log", r->dir);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    pid_t self = getpid();
    ck_assert_int_ge(fd, 0);
    r->pid = fork();
    ck_assert_int_ge(r->pid, 0);
    if (r->pid == 0)
        program_become(self, fd, fd, argv);
    close(fd);
    free(log);
}

char *redis_says(const struct redis *r, ...)
{
    char *argv[ARGS_MAX] = {CLI, "-p", text("%u", r->port)};
    size_t count = 3;
    if (r->password != NULL) {
        argv[count++] = "-a";
        argv[count++] = r->password;
        argv[count++] = "--no-auth-warning";
    }
    va_list args;
    va_start(args, r);
    program_words(argv, count, args);
    va_end(args);
    char *out = text("%s/out", r->dir);
    int fd = open(out, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    pid_t self = getpid(), pid = fork();
    if (pid == 0)
        program_become(self, fd, fd, argv);
    program_wait(pid, WITHIN_MS);
    close(fd);
    char *said = file_text(out);
    for (size_t n = strlen(said); n > 0 && said[n - 1] == '\n'; n--)
        said[n - 1] = '\0';
    free(out);
    return said;
}

static bool answers(void *arg)
{
    return !strcmp(redis_says(arg, "PING", NULL), "PONG");
}

void redis_start(struct redis *r)
{
    spawn(r);
    ck_assert_msg(wait_until(answers, r, WITHIN_MS), "Redis does not start: %s",
                  file_text(text("%s/log", r->dir)));
}

struct redis *redis_primary(const char *lines)
{
    struct redis *r = redis_new();
    configure(r, text("save \"\"\nappendonly no\nrepl-diskless-sync-delay 0\n%s", lines));
    const char *password = strstr(lines, "requirepass ");
    if (password != NULL)
        r->password = text("%.*s", (int)strcspn(password + 12, "\n"), password + 12);
    redis_start(r);
    return r;
}

static bool is_linked(void *arg)
{
    return strstr(redis_says(arg, "INFO", "replication", NULL), "master_link_status:up") != NULL;
}

struct redis *redis_replica(const struct redis *of)
{
    struct redis *r = redis_primary(text("replicaof 127.0.0.1 %u", of->port));
    ck_assert_msg(wait_until(is_linked, r, WITHIN_MS), "the replica does not follow");
    return r;
}

/* The sentinel knows two others and a replica, and says that the primary is up. */
static bool sees_all(void *arg)
{
    const char *said = redis_says(arg, "INFO", "sentinel", NULL);
    return strstr(said, "status=ok") != NULL && strstr(said, "slaves=1,sentinels=3") != NULL;
}

void redis_sentinels(const struct redis *of, struct redis **out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = redis_new();
        out[i]->is_sentinel = true;
        configure(out[i], text("sentinel monitor mymaster 127.0.0.1 %u %zu\n"
                               "sentinel down-after-milliseconds mymaster 500\n"
                               "sentinel failover-timeout mymaster 3000\n",
                               of->port, count / 2 + 1));
        redis_start(out[i]);
    }
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(wait_until(sees_all, out[i], WITHIN_MS), "a sentinel sees: %s",
                      redis_says(out[i], "INFO", "sentinel", NULL));
}

bool redis_is_primary(void *arg)
{
    return strstr(redis_says(arg, "INFO", "replication", NULL), "role:master") != NULL;
}

void redis_signal(const struct redis *r, int signal)
{
    ck_assert_int_eq(kill(r->pid, signal), 0);
}

void redis_kill(struct redis *r)
{
    redis_signal(r, SIGKILL);
    ck_assert_int_eq(program_wait(r->pid, WITHIN_MS), 128 + SIGKILL);
    r->pid = 0;
}

static int remove_entry(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

void redis_stop(struct redis *r)
{
    if (r == NULL)
        return;
    if (r->pid != 0)
        redis_kill(r);
    nftw(r->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(r);
}

char *redis_key_file(const char *dir)
{
    char *path = text("%s/redis.key", dir);
    uint8_t key[32];
    ck_assert_int_eq(getrandom(key, sizeof(key), 0), sizeof(key));
    FILE *file = fopen(path, "w");
    ck_assert(file != NULL && fchmod(fileno(file), 0600) == 0);
    for (size_t i = 0; i < sizeof(key); i++)
        fprintf(file, "%02x", key[i]);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}
