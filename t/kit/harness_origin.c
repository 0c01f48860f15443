#include "t/kit/harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { CONNECTIONS = 128, REQUEST = 4096 };

struct page {
    char path[128];
    int status;
    char headers[512];
    char body[ORIGIN_BODY];
    size_t size; /* of the body */
    size_t pad;
    int delay_ms;
    bool hold;
    unsigned hits;
};

/* Shared by the origin's process and every test. */
struct origin {
    atomic_flag lock;
    pid_t pid;
    uint16_t port;
    size_t count;
    struct page pages[ORIGIN_PAGES];
    char watched[64]; /* a host */
    atomic_uint watched_now, watched_most;
};

struct connection {
    int fd; /* -1: free */
    char request[REQUEST];
    size_t size;
    char path[128]; /* set once the request is there */
    bool head, watched;
    int64_t due;
};

static void lock(struct origin *o)
{
    while (atomic_flag_test_and_set(&o->lock))
        poll(NULL, 0, 1);
}

static void unlock(struct origin *o)
{
    atomic_flag_clear(&o->lock);
}

static struct page *find(const struct origin *o, const char *path)
{
    for (size_t i = 0; i < o->count; i++)
        if (!strcmp(o->pages[i].path, path))
            return (struct page *)&o->pages[i];
    return NULL;
}

/* ---- the origin's process ---- */

static void drop(struct origin *o, struct connection *c)
{
    o->watched_now -= c->watched;
    c->watched = false;
    close(c->fd);
    c->fd = -1;
}

static void send_all(int fd, const char *data, size_t size)
{
    while (size > 0) {
        ssize_t put = send(fd, data, size, MSG_NOSIGNAL);
        if (put <= 0)
            return;
        data += put;
        size -= (size_t)put;
    }
}

static void answer(struct origin *o, struct connection *c, const struct page *page)
{
    const char *type = page && strcasestr(page->headers, "content-type:")
                           ? ""
                           : "Content-Type: text/html; charset=utf-8\r\n";
    size_t size = page ? page->size : 0, pad = page ? page->pad : 0;
    char *head = text("HTTP/1.1 %d Page\r\n%s%sContent-Length: %zu\r\nConnection: close\r\n\r\n",
                      page ? page->status : 404, type, page ? page->headers : "", size + pad);
    char *spaces = calloc(1, pad + 1);
    send_all(c->fd, head, strlen(head));
    if (page && !c->head && spaces) {
        memset(spaces, ' ', pad);
        send_all(c->fd, page->body, size);
        send_all(c->fd, spaces, pad);
    }
    free(spaces);
    free(head);
    shutdown(c->fd, SHUT_WR);
    drop(o, c);
}

static void watch(struct origin *o, struct connection *c)
{
    const char *host = strcasestr(c->request, "\nhost: ");
    size_t n = strlen(o->watched);
    c->watched = n > 0 && host && !strncmp(host + strlen("\nhost: "), o->watched, n);
    o->watched_now += c->watched;
    if (o->watched_now > o->watched_most)
        o->watched_most = o->watched_now;
}

static void request_came(struct origin *o, struct connection *c)
{
    char method[16] = "";
    c->request[c->size] = '\0';
    if (sscanf(c->request, "%15s %127[^? ]", method, c->path) != 2) {
        drop(o, c);
        return;
    }
    c->head = !strcmp(method, "HEAD");
    lock(o);
    struct page *page = find(o, c->path);
    c->due = now_ms() + (page ? page->delay_ms : 0);
    if (page)
        page->hits++;
    watch(o, c);
    unlock(o);
}

static void receive(struct origin *o, struct connection *c)
{
    ssize_t got = recv(c->fd, c->request + c->size, REQUEST - 1 - c->size, MSG_DONTWAIT);
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN)
            drop(o, c);
        return;
    }
    c->size += (size_t)got;
    if (c->request[0] < 'A' || c->request[0] > 'Z') { /* TLS, perhaps */
        drop(o, c);
        return;
    }
    if (!*c->path && memmem(c->request, c->size, "\r\n\r\n", 4))
        request_came(o, c);
}

static void maybe_answer(struct origin *o, struct connection *c)
{
    static struct page copy;
    lock(o);
    struct page *page = find(o, c->path);
    bool ready = now_ms() >= c->due && !(page && page->hold);
    if (page && ready)
        copy = *page;
    unlock(o);
    if (ready)
        answer(o, c, page ? &copy : NULL);
}

static _Noreturn void serve(struct origin *o, int listener)
{
    static struct connection all[CONNECTIONS];
    struct pollfd polls[CONNECTIONS + 1];
    for (size_t i = 0; i < CONNECTIONS; i++)
        all[i].fd = -1;
    for (;;) {
        bool waiting = false;
        size_t spare = CONNECTIONS;
        for (size_t i = 0; i < CONNECTIONS; i++) {
            polls[i] = (struct pollfd){.fd = all[i].fd, .events = POLLIN};
            waiting |= all[i].fd >= 0 && *all[i].path;
            if (all[i].fd < 0)
                spare = i;
        }
        polls[CONNECTIONS] =
            (struct pollfd){.fd = spare < CONNECTIONS ? listener : -1, .events = POLLIN};
        poll(polls, CONNECTIONS + 1, waiting ? 3 : -1);
        for (size_t i = 0; i < CONNECTIONS; i++) {
            if (all[i].fd >= 0 && polls[i].revents)
                receive(o, &all[i]);
            if (all[i].fd >= 0 && *all[i].path)
                maybe_answer(o, &all[i]);
        }
        if (polls[CONNECTIONS].revents) {
            memset(&all[spare], 0, sizeof(all[spare]));
            all[spare].fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        }
    }
}

/* ---- for the tests ---- */

struct origin *origin_start(void)
{
    struct sockaddr_in at_port = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at_port);
    struct origin *o =
        mmap(NULL, sizeof(*o), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(o != MAP_FAILED);
    atomic_flag_clear(&o->lock);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(listener, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&at_port, sizeof(at_port)), 0);
    ck_assert_int_eq(listen(listener, 128), 0);
    ck_assert_int_eq(getsockname(listener, (struct sockaddr *)&at_port, &size), 0);
    o->port = ntohs(at_port.sin_port);
    pid_t pid = fork_child();
    if (pid == 0)
        serve(o, listener);
    o->pid = pid; /* shared memory: the child must not write its zero there */
    close(listener);
    return o;
}

void origin_stop(struct origin *o)
{
    if (!o)
        return;
    kill(o->pid, SIGKILL);
    waitpid(o->pid, NULL, 0);
    munmap(o, sizeof(*o));
}

uint16_t origin_port(const struct origin *o)
{
    return o->port;
}

char *origin_url(const struct origin *o, const char *path)
{
    return text("http://127.0.0.1:%u%s", o->port, path);
}

static void set_page(struct origin *o, const char *path, int status, const char *headers,
                     const char *body, size_t size)
{
    ck_assert_uint_lt(strlen(path), sizeof(o->pages[0].path));
    ck_assert_uint_lt(strlen(headers), sizeof(o->pages[0].headers));
    ck_assert_uint_le(size, sizeof(o->pages[0].body));
    lock(o);
    struct page *page = find(o, path);
    if (!page && o->count < ORIGIN_PAGES) {
        page = &o->pages[o->count++];
        strcpy(page->path, path);
    }
    if (page) {
        page->status = status;
        strcpy(page->headers, headers);
        memcpy(page->body, body, size);
        page->size = size;
    }
    unlock(o);
    ck_assert_msg(page != NULL, "no room for the page %s", path);
}

void origin_page(struct origin *o, const char *path, int status, const char *headers,
                 const char *body)
{
    set_page(o, path, status, headers, body, strlen(body));
}

void origin_bytes(struct origin *o, const char *path, const char *headers, const char *body,
                  size_t size)
{
    set_page(o, path, 200, headers, body, size);
}

/* The page to change, locked. */
static struct page *change(struct origin *o, const char *path)
{
    lock(o);
    struct page *page = find(o, path);
    if (!page)
        unlock(o);
    ck_assert_msg(page != NULL, "no page %s", path);
    return page;
}

void origin_delay(struct origin *o, const char *path, int delay_ms)
{
    change(o, path)->delay_ms = delay_ms;
    unlock(o);
}

void origin_pad(struct origin *o, const char *path, size_t spaces)
{
    change(o, path)->pad = spaces;
    unlock(o);
}

void origin_hold(struct origin *o, const char *path)
{
    struct page *page = change(o, path);
    page->hold = true;
    page->hits = 0;
    unlock(o);
}

void origin_release(struct origin *o, const char *path)
{
    change(o, path)->hold = false;
    unlock(o);
}

unsigned origin_hits(const struct origin *o, const char *path)
{
    unsigned hits = change((struct origin *)o, path)->hits;
    unlock((struct origin *)o);
    return hits;
}

void origin_watch(struct origin *o, const char *host)
{
    lock(o);
    snprintf(o->watched, sizeof(o->watched), "%s", host);
    o->watched_most = 0;
    unlock(o);
}

unsigned origin_watched(const struct origin *o)
{
    return o->watched_most;
}

void origin_held(struct origin *o, const char *path)
{
    origin_page(o, path, 200, "", "<title>x</title>");
    origin_hold(o, path);
}

bool origin_asked(const struct origin *o, const char *path)
{
    int64_t deadline = now_ms() + 5000;
    while (!origin_hits(o, path) && now_ms() < deadline)
        poll(NULL, 0, 2);
    return origin_hits(o, path) > 0;
}

struct origin *origin_usual(void)
{
    struct origin *o = origin_start();
    origin_page(
        o, "/good", 200, "",
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>Hand-made teapots</title>"
        "<meta name=description content='Teapots thrown by hand in a small workshop, glazed and "
        "fired twice.'>"
        "<meta name=viewport content='width=device-width, initial-scale=1'>"
        "<meta property='og:title' content='Teapots'></head>"
        "<body><h1>Our teapots this spring</h1><p>Each one is different.</p><img src=/pot.png "
        "alt='A blue teapot'></body></html>");
    origin_page(
        o, "/decent", 200, "",
        "<!doctype html><html lang=en><head><meta charset=utf-8><title>Hand-made teapots</title>"
        "<meta name=viewport content='width=device-width, initial-scale=1'></head>"
        "<body><h2>Teapots</h2><p>Each one is different.</p><img src=/pot.png></body></html>");
    origin_page(o, "/bad", 200, "X-Robots-Tag: noindex\r\n",
                "<html><head></head><body><center><font>teapots</font></center><img "
                "src=/pot.png><img src=/lid.png></body></html>");
    return o;
}

/* ---- reports ---- */

char *report_path(int64_t id)
{
    return text("/api/v1/reports/%lld", (long long)id);
}

int64_t report_new(const struct server *s, const char *url)
{
    struct response *r =
        http(s, .method = "POST", .path = "/api/v1/reports", .body = form("url", url, NULL));
    expect_status(r, 201);
    int64_t id = int_at(r, "data.id");
    if (!strcmp(str_at(r, "data.status"), "pending"))
        report_wait(s, id);
    return id;
}

int64_t report_queued(const struct server *s, const char *url)
{
    struct response *r = http(s, .method = "POST", .path = "/api/v1/reports",
                              .body = form("url", url, NULL), .headers = {"Prefer: respond-async"});
    expect_status(r, 202);
    return int_at(r, "data.id");
}

struct waiting {
    const struct server *s;
    char *path;
    struct response *last;
};

static bool is_finished(void *arg)
{
    struct waiting *w = arg;
    response_free(w->last);
    w->last = http_get(w->s, w->path);
    expect_status(w->last, 200);
    return strcmp(str_at(w->last, "data.status"), "pending") != 0;
}

struct response *report_wait(const struct server *s, int64_t id)
{
    struct waiting w = {.s = s, .path = report_path(id)};
    bool finished = wait_until(is_finished, &w, 20000);
    ck_assert_msg(finished, "still pending\n%s", response_text(w.last));
    free(w.path);
    return w.last;
}

struct listing {
    const struct server *s;
    char *path;
    int64_t id;
};

static bool is_listed(void *arg)
{
    struct listing *l = arg;
    struct response *r = http_get(l->s, l->path);
    expect_status(r, 200);
    l->id = len_at(r, "data") > 0 ? int_at(r, "data.0.id") : 0;
    response_free(r);
    return l->id > 0;
}

int64_t report_listed(const struct server *s, const char *search)
{
    struct listing l = {.s = s, .path = text("/api/v1/reports?search=%s", search)};
    ck_assert_msg(wait_until(is_listed, &l, 5000), "no report of %s", search);
    free(l.path);
    return l.id;
}

struct raw *held_post(const struct server *s, struct origin *o, const char *path)
{
    struct raw *raw = raw_open(s);
    origin_held(o, path);
    char *body = form("url", origin_url(o, path), NULL);
    raw_post(raw, s->key, "Prefer: wait=25\r\n", body);
    free(body);
    ck_assert_msg(origin_asked(o, path), "nobody asks for %s", path);
    return raw;
}
