#include "t/kit/upgrades.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

struct server *server;
unsigned upgrades_slots;
char *upgrades_assayd;
static char *program; /* the link */

void upgrades_point_at(const char *target)
{
    char *next = text("%s.next", program), *real = realpath(target, NULL);
    unlink(next);
    ck_assert_int_eq(symlink(real != NULL ? real : target, next), 0);
    ck_assert_int_eq(rename(next, program), 0);
    free(real);
}

void upgrades_configure(const char *more)
{
    server_configure(server, text("limits: { slots: %u, limiters: { api: { windows: [ { limit: %d, "
                                  "seconds: 2678400, key: api_key } ] } } }\n"
                                  "timeouts: { drain: 20s, upgrade: 15s }\n%s",
                                  upgrades_slots, UPGRADES_LIMIT, more));
}

void upgrades_setup(void)
{
    /* the new master is the old one's child, and then the test's */
    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    server = server_new(&(struct server_options){.workers = 2});
    upgrades_slots = 65536;
    upgrades_assayd = realpath(assayd_path(), NULL);
    program = text("%s/assayd", server->dir);
    upgrades_point_at(upgrades_assayd);
    setenv("ASSAYD", program, 1);
    upgrades_configure("");
    server_start(server);
}

void upgrades_teardown(void)
{
    server_discard(server);
}

pid_t upgrades_master(void)
{
    char line[32] = "";
    FILE *file = fopen(text("%s/assayd.pid", server->run), "r");
    if (file != NULL && fgets(line, sizeof(line), file) == NULL)
        line[0] = '\0';
    if (file != NULL)
        fclose(file);
    return (pid_t)atoi(line);
}

bool upgrades_is_other_master(void *pid)
{
    pid_t now = upgrades_master();
    return now > 0 && now != *(pid_t *)pid;
}

void expect_logged(const char *words, size_t from, int within_ms)
{
    ck_assert_msg(server_says(server, words, from, within_ms), "the log lacks \"%s\"\n%s", words,
                  server_log(server));
}

struct ending {
    pid_t pid;
    int status;
};

static bool has_ended(void *arg)
{
    struct ending *e = arg;
    int status;
    return waitpid(e->pid, &status, WNOHANG) == e->pid && WIFEXITED(status) &&
           WEXITSTATUS(status) == e->status;
}

pid_t upgrade(void)
{
    pid_t old = server->pid;
    server_signal(server, SIGUSR2);
    ck_assert_msg(wait_until(upgrades_is_other_master, &old, 20000), "no new master\n%s",
                  server_log(server));
    server->pid = upgrades_master();
    return old;
}

void expect_status_at_end(pid_t old, int status)
{
    ck_assert_msg(wait_until(has_ended, &(struct ending){old, status}, 30000),
                  "the old master (%d) did not exit with status %d\n%s", (int)old, status,
                  server_log(server));
}

void expect_end(pid_t old)
{
    expect_status_at_end(old, 0);
}

static struct response *create(void)
{
    return http(server, .method = "POST", .path = "/api/v1/reports",
                .headers = {"Prefer: respond-async"}, .body = "url=http://x.test/");
}

bool upgrades_has_children(void *count)
{
    return server_children(server, NULL, 0) == *(size_t *)count;
}

/* A process that has just started may not have written its statistics. */
static bool stats_have(void *count)
{
    struct json_object *stats = assay_list(server, "stats", NULL);
    return json_object_array_length(stats) >= *(size_t *)count;
}

void expect_service(unsigned workers)
{
    size_t count = 2 + workers;
    expect_status(http_get(server, "/api/v1/reports"), 200);
    expect_status(create(), 202);
    ck_assert_msg(wait_until(upgrades_has_children, &count, 30000), "%zu children\n%s",
                  server_children(server, NULL, 0), server_log(server));
    ck_assert(wait_until(stats_have, &count, 30000));
}

bool links_begin_with(void *base)
{
    struct response *r = http_get(server, "/api/v1/reports");
    bool same = !strncmp(str_at(r, "meta.path"), base, strlen(base));
    response_free(r);
    return same;
}

unsigned upgrades_setting(const char *name, unsigned otherwise)
{
    const char *value = getenv(name);
    return value ? (unsigned)atoi(value) : otherwise;
}
