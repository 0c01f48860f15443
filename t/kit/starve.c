#include "t/kit/starve.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { THREADS = 4, UNDER_WAY = 200, UPDATED = 16, PAUSE_MS = 5 };

/* ---- hosts that never answer ---- */

/* Shared by its process and the tests. */
struct tar {
    pid_t pid;
    uint16_t port;
    atomic_uint open, total;
};

static _Noreturn void swallow(struct tar *tar, int listener)
{
    int epoll = epoll_create1(0);
    struct epoll_event ready[64], watch = {.events = EPOLLIN, .data.fd = listener};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &watch);
    for (;;) {
        int n = epoll_wait(epoll, ready, 64, -1);
        for (int i = 0; i < n; i++) {
            char unread[4096];
            int fd = ready[i].data.fd;
            if (fd == listener) {
                watch.data.fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
                if (watch.data.fd < 0 ||
                    epoll_ctl(epoll, EPOLL_CTL_ADD, watch.data.fd, &watch) != 0)
                    _exit(1);
                tar->open++;
                tar->total++;
            } else if (recv(fd, unread, sizeof(unread), 0) <= 0) {
                close(fd);
                tar->open--;
            }
        }
    }
}

struct tar *tar_start(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t size = sizeof(any);
    struct tar *tar =
        mmap(NULL, sizeof(*tar), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(tar != MAP_FAILED);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&any, sizeof(any)), 0);
    ck_assert_int_eq(listen(listener, 1024), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&any, &size), 0);
    tar->port = ntohs(any.sin_port);
    pid_t pid = fork_child();
    if (pid == 0)
        swallow(tar, listener);
    tar->pid = pid;
    close(listener);
    return tar;
}

void tar_stop(struct tar *tar)
{
    kill(tar->pid, SIGKILL);
    waitpid(tar->pid, NULL, 0);
    munmap(tar, sizeof(*tar));
}

uint16_t tar_port(const struct tar *tar)
{
    return tar->port;
}

char *tar_host(unsigned number)
{
    return text("127.%u.%u.%u", 9 + number / 62500 % 240, number / 250 % 250, 1 + number % 250);
}

char *tar_url(const struct tar *tar, unsigned number)
{
    char *host = tar_host(number), *url = text("http://%s:%u/", host, tar->port);
    free(host);
    return url;
}

unsigned tar_open(const struct tar *tar)
{
    return tar->open;
}

unsigned tar_total(const struct tar *tar)
{
    return tar->total;
}

/* ---- the tenant ---- */

const char *const attack_names[ATTACKS] = {
    [ATTACK_PAIRS] = "create and delete",      [ATTACK_BACKLOG] = "10,000 slow hosts",
    [ATTACK_ONE_HOST] = "one slow host",       [ATTACK_HELD] = "slow hosts, waited for",
    [ATTACK_UPDATES] = "update=1 without end", [ATTACK_PROJECTS] = "projects deleted",
};

struct attacker {
    const struct server *server;
    enum attack attack;
    const struct tar *tar;
    const char *quick;
    char *key;
    pthread_t threads[THREADS];
    atomic_bool ends;
    atomic_uint next, done;
    int64_t updated[UPDATED];
};

static char *form_of(char *url)
{
    char *encoded = encode(url), *body = text("url=%s", encoded);
    free(encoded);
    free(url);
    return body;
}

/* One request, and a pause unless it is answered 2xx. The id of the report it made, 0: none. */
static int64_t send_one(struct attacker *a, struct client *client, const char *method, char *path,
                        char *body, const char *prefer)
{
    int64_t id = 0;
    struct response *r =
        http_kept(client, .method = method, .path = path, .key = a->key, .body = body,
                  .headers = {prefer}, .may_fail = true, .timeout_ms = 5000);
    if (r->status == 202)
        id = int_at(r, "data.id");
    if (r->status / 100 != 2)
        poll(NULL, 0, PAUSE_MS);
    response_free(r);
    free(body);
    free(path);
    a->done++;
    return id;
}

static int64_t post(struct attacker *a, struct client *client, unsigned host)
{
    return send_one(a, client, "POST", text("/api/v1/reports"), form_of(tar_url(a->tar, host)),
                    "Prefer: respond-async");
}

static void send_pair(struct attacker *a, struct client *client)
{
    int64_t id = post(a, client, a->next++);
    if (id != 0)
        send_one(a, client, "DELETE", report_path(id), NULL, NULL);
}

static void send_slow(struct attacker *a, struct client *client)
{
    post(a, client, a->next++);
}

static void send_same(struct attacker *a, struct client *client)
{
    post(a, client, 0);
}

static void send_held(struct attacker *a, struct client *client)
{
    enum { HELD = 32 };
    struct raw *raws[HELD];
    (void)client;
    for (size_t i = 0; i < HELD; i++) {
        char *body = form_of(tar_url(a->tar, a->next++));
        raws[i] = raw_open(a->server);
        raw_post(raws[i], a->key, "Prefer: wait=30\r\n", body);
        free(body);
    }
    a->done += UNDER_WAY;
    for (int i = 0; i < 1000 && !a->ends; i++)
        poll(NULL, 0, PAUSE_MS);
    for (size_t i = 0; i < HELD; i++)
        raw_close(raws[i]);
}

static void send_update(struct attacker *a, struct client *client)
{
    send_one(a, client, "PUT", report_path(a->updated[a->next++ % UPDATED]), text("update=1"),
             NULL);
}

static void send_project(struct attacker *a, struct client *client)
{
    unsigned host = a->next++;
    char *name = tar_host(host);
    for (int i = 0; i < 4; i++)
        post(a, client, host);
    send_one(a, client, "DELETE", text("/api/v1/projects/%s", name), NULL, NULL);
    free(name);
}

static void (*const senders[ATTACKS])(struct attacker *a, struct client *client) = {
    [ATTACK_PAIRS] = send_pair, [ATTACK_BACKLOG] = send_slow,   [ATTACK_ONE_HOST] = send_same,
    [ATTACK_HELD] = send_held,  [ATTACK_UPDATES] = send_update, [ATTACK_PROJECTS] = send_project,
};

static void *attack_run(void *arg)
{
    struct attacker *a = arg;
    struct client *client = client_new(a->server);
    while (!a->ends)
        senders[a->attack](a, client);
    client_free(client);
    return NULL;
}

static bool is_under_way(void *arg)
{
    const struct attacker *a = arg;
    return a->done >= UNDER_WAY && (a->attack == ATTACK_UPDATES || tar_total(a->tar) > 0);
}

struct attacker *attack_start(const struct server *s, enum attack attack, const struct tar *tar,
                              const char *quick)
{
    struct attacker *a = calloc(1, sizeof(*a));
    ck_assert_ptr_nonnull(a);
    assay_ok(s, "workspace", "create", "attacker", NULL);
    *a = (struct attacker){.server = s,
                           .attack = attack,
                           .tar = tar,
                           .quick = quick,
                           .key = key_new(s, "attacker", NULL)};
    for (size_t i = 0; attack == ATTACK_UPDATES && i < UPDATED; i++) {
        struct response *r = http(s, .method = "POST", .path = "/api/v1/reports", .key = a->key,
                                  .body = form("url", quick, NULL));
        expect_status(r, 201);
        a->updated[i] = int_at(r, "data.id");
    }
    for (size_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&a->threads[i], NULL, attack_run, a), 0);
    ck_assert_msg(wait_until(is_under_way, a, 30000), "the attack does not begin: %u requests\n%s",
                  (unsigned)a->done, server_log(s));
    return a;
}

void attack_stop(struct attacker *a)
{
    a->ends = true;
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(a->threads[i], NULL);
    free(a);
}

void attack_forgiven(const struct server *s)
{
    assay_ok(s, "workspace", "delete", "attacker", NULL);
}
