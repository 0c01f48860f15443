#include "t/kit/fault_proxy.h"
#include "t/kit/wait.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINKS = 256, STRING = 256, PIECE = 65536, QUEUED_MAX = 1 << 20, APPLY_MS = 10000 };

enum command_kind { PASS, DROP, CUT, CUT_BYTES, CUT_STRING, DELAY };

struct command {
    enum command_kind kind;
    enum fault_side side;
    enum fault_when when;
    size_t size; /* bytes to pass, or of ${bytes} */
    int ms;
    char bytes[STRING];
};

/* Shared by the proxy and every test. A test writes a command and waits until it is done. */
struct fault_proxy {
    pid_t pid;
    uint16_t port, server_port;
    int wake;
    struct command command;
    atomic_uint asked, done, cuts;
};

/* ---- connections ---- */

/* What happens once the bytes of a chunk are sent. */
enum then { GO_ON, END_OF_FILE, RESET, RESET_ON_ANSWER };

struct chunk {
    struct chunk *next;
    int64_t due_ms;
    enum then then;
    size_t size, sent;
    char data[];
};

/* One direction of a connection. */
struct way {
    struct chunk *first;
    size_t queued;
    bool ended; /* nothing more is read */
    bool shut;  /* the end of file has been sent */
    char tail[STRING];
    size_t tail_size; /* the last bytes, with which the string may begin */
};

/* ${fds} and ${ways} by enum fault_side: to whom they lead. */
struct link {
    bool used, reset_on_answer;
    int fds[2];
    struct way ways[2];
};

static struct link links[LINKS];
static struct fault_proxy *proxy;
static int listener;

static bool dropping;
static struct {
    int delay_ms[2];
    struct command bytes, string; /* PASS: not set */
} faults;

static void check(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "fault proxy: %s: %s\n", what, strerror(errno));
    _exit(1);
}

static void link_close(struct link *l)
{
    for (int side = 0; side < 2; side++) {
        close(l->fds[side]);
        for (struct chunk *c; (c = l->ways[side].first) != NULL;) {
            l->ways[side].first = c->next;
            free(c);
        }
    }
    memset(l, 0, sizeof(*l));
}

static void link_reset(struct link *l)
{
    const struct linger now = {.l_onoff = 1};
    for (int side = 0; side < 2; side++)
        setsockopt(l->fds[side], SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    link_close(l);
}

/* A reset discards what is not acknowledged yet. */
static void link_reset_after(struct link *l, int fd)
{
    int left = 0;
    for (int i = 0; i < 1000 && ioctl(fd, SIOCOUTQ, &left) == 0 && left > 0; i++)
        poll(NULL, 0, 1);
    proxy->cuts++;
    link_reset(l);
}

/* With a filter that takes no byte, the kernel drops packets before TCP sees them. */
static void set_filter(int fd, bool drop)
{
    struct sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = {.len = 1, .filter = &none};
    int unused = 0;
    if (drop)
        check(!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), "filter");
    else
        setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof(unused));
}

static void set_drop(bool drop)
{
    if (dropping == drop)
        return;
    dropping = drop;
    set_filter(listener, drop);
    for (size_t i = 0; i < LINKS; i++)
        for (int side = 0; links[i].used && side < 2; side++)
            set_filter(links[i].fds[side], drop);
}

static void link_open(struct link *l)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = htons(proxy->server_port)};
    const int on = 1;
    int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0)
        return;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    check(server >= 0, "socket");
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    *l = (struct link){.used = true, .fds = {[TO_SERVER] = server, [TO_CLIENT] = client}};
    if (connect(server, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS)
        link_reset(l);
}

/* ---- receiving ---- */

static void enqueue(struct link *l, enum fault_side side, const char *data, size_t size,
                    enum then then)
{
    struct way *way = &l->ways[side];
    struct chunk *c = malloc(sizeof(*c) + size), **last = &way->first;
    check(c != NULL, "malloc");
    *c = (struct chunk){.due_ms = now_ms() + faults.delay_ms[side], .then = then, .size = size};
    memcpy(c->data, data, size);
    while (*last)
        last = &(*last)->next;
    *last = c;
    way->queued += size;
    way->ended = then == RESET || then == END_OF_FILE;
}

static size_t count_bytes(enum fault_side side, size_t size, enum then *then)
{
    if (faults.bytes.kind == PASS || faults.bytes.side != side)
        return size;
    if (faults.bytes.size > size) {
        faults.bytes.size -= size;
        return size;
    }
    faults.bytes.kind = PASS;
    *then = RESET;
    return faults.bytes.size;
}

static void keep_tail(struct way *way, const char *data, size_t size)
{
    way->tail_size = size < faults.string.size - 1 ? size : faults.string.size - 1;
    memcpy(way->tail, data + size - way->tail_size, way->tail_size);
}

/* ${data} has room for the tail in front of it. */
static size_t search_string(struct way *way, char *data, size_t size, enum then *then)
{
    if (faults.string.kind == PASS)
        return size;
    char *from = data - way->tail_size;
    size_t all = way->tail_size + size;
    memcpy(from, way->tail, way->tail_size);
    const char *at = memmem(from, all, faults.string.bytes, faults.string.size);
    if (!at) {
        keep_tail(way, from, all);
        return size;
    }
    faults.string.kind = PASS;
    *then = faults.string.when == CUT_ANSWER ? RESET_ON_ANSWER : RESET;
    if (faults.string.when == CUT_BEFORE)
        return at > data ? (size_t)(at - data) : 0;
    return size;
}

static void receive(struct link *l, enum fault_side side)
{
    static char buffer[STRING + PIECE];
    char *data = buffer + STRING;
    enum then then = GO_ON;
    ssize_t got = recv(l->fds[!side], data, PIECE, 0);
    if (got < 0 && errno == EAGAIN)
        return;
    if (got < 0) {
        link_reset(l);
        return;
    }
    if (got == 0) {
        enqueue(l, side, data, 0, END_OF_FILE);
        return;
    }
    if (side == TO_CLIENT && l->reset_on_answer) {
        proxy->cuts++;
        link_reset(l);
        return;
    }
    size_t size = count_bytes(side, (size_t)got, &then);
    if (side == TO_SERVER && then == GO_ON)
        size = search_string(&l->ways[side], data, size, &then);
    enqueue(l, side, data, size, then);
}

/* ---- sending ---- */

/* The bytes of the first chunk are sent. False: the connection has ended. */
static bool chunk_done(struct link *l, enum fault_side side)
{
    struct way *way = &l->ways[side];
    struct chunk *c = way->first;
    enum then then = c->then;
    way->first = c->next;
    way->queued -= c->size;
    free(c);
    if (then == RESET)
        link_reset_after(l, l->fds[side]);
    if (then == RESET_ON_ANSWER)
        l->reset_on_answer = true;
    if (then == END_OF_FILE) {
        shutdown(l->fds[side], SHUT_WR);
        way->shut = true;
        if (l->ways[!side].shut)
            link_close(l);
    }
    return l->used;
}

/* False: the connection has ended. */
static bool flush_way(struct link *l, enum fault_side side)
{
    for (struct chunk *c; (c = l->ways[side].first) != NULL && c->due_ms <= now_ms();) {
        if (c->sent < c->size) {
            ssize_t put = send(l->fds[side], c->data + c->sent, c->size - c->sent, MSG_NOSIGNAL);
            if (put < 0 && errno != EAGAIN)
                link_reset(l);
            if (put < 0)
                return l->used;
            c->sent += (size_t)put;
        }
        if (c->sent == c->size && !chunk_done(l, side))
            return false;
    }
    return true;
}

/* ---- the process ---- */

static void apply_command(void)
{
    const struct command *c = &proxy->command;
    uint64_t count;
    check(read(proxy->wake, &count, sizeof(count)) == sizeof(count), "eventfd");
    if (c->kind == PASS)
        memset(&faults, 0, sizeof(faults));
    if (c->kind == PASS || c->kind == DROP)
        set_drop(c->kind == DROP);
    if (c->kind == CUT_BYTES)
        faults.bytes = *c;
    if (c->kind == CUT_STRING)
        faults.string = *c;
    if (c->kind == DELAY)
        faults.delay_ms[c->side] = c->ms;
    for (size_t i = 0; i < LINKS; i++) {
        links[i].ways[TO_SERVER].tail_size = 0;
        if (c->kind == CUT && links[i].used)
            link_reset(&links[i]);
    }
    proxy->done = proxy->asked;
}

/* What to poll for on fds[side]: bytes to send there, bytes to read for the other side. */
static short events_of(const struct link *l, int side, int64_t now, int64_t *due_ms)
{
    const struct way *out = &l->ways[side], *in = &l->ways[!side];
    short events = in->ended || in->queued >= QUEUED_MAX ? 0 : POLLIN;
    if (out->first && out->first->due_ms <= now)
        events |= POLLOUT;
    else if (out->first && out->first->due_ms < *due_ms)
        *due_ms = out->first->due_ms;
    return events;
}

static int prepare(struct pollfd *polls, struct link **spare)
{
    int64_t now = now_ms(), due_ms = INT64_MAX;
    *spare = NULL;
    for (size_t i = 0; i < LINKS; i++) {
        struct link *l = &links[i];
        for (int side = 0; side < 2; side++) {
            short events = l->used && !dropping ? events_of(l, side, now, &due_ms) : 0;
            polls[2 * i + side] =
                (struct pollfd){.fd = events ? l->fds[side] : -1, .events = events};
        }
        *spare = l->used ? *spare : l;
    }
    polls[2 * LINKS] = (struct pollfd){.fd = *spare && !dropping ? listener : -1, .events = POLLIN};
    polls[2 * LINKS + 1] = (struct pollfd){.fd = proxy->wake, .events = POLLIN};
    return due_ms == INT64_MAX ? -1 : (int)(due_ms - now);
}

/* Where nothing was delayed, bytes go on at once. */
static void serve_link(struct link *l, const struct pollfd *polls)
{
    for (int side = 0; side < 2; side++)
        if (l->used && polls[!side].revents & (POLLIN | POLLERR | POLLHUP) &&
            polls[!side].events & POLLIN)
            receive(l, side);
    if (l->used && flush_way(l, TO_SERVER))
        flush_way(l, TO_CLIENT);
}

_Noreturn static void serve(void)
{
    static struct pollfd polls[2 * LINKS + 2];
    struct link *spare;
    for (;;) {
        int timeout_ms = prepare(polls, &spare);
        poll(polls, 2 * LINKS + 2, timeout_ms);
        for (size_t i = 0; i < LINKS && !dropping; i++)
            if (links[i].used)
                serve_link(&links[i], &polls[2 * i]);
        if (polls[2 * LINKS].revents)
            link_open(spare);
        if (polls[2 * LINKS + 1].revents)
            apply_command();
    }
}

/* ---- for the tests ---- */

static int listen_on_free_port(uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    ck_assert_int_eq(listen(fd, 128), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

struct fault_proxy *fault_proxy_new(uint16_t port)
{
    struct fault_proxy *p =
        mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(p != MAP_FAILED);
    p->server_port = port;
    p->wake = eventfd(0, EFD_CLOEXEC);
    ck_assert_int_ge(p->wake, 0);
    int fd = listen_on_free_port(&p->port);
    pid_t pid = fork_child();
    if (pid == 0) {
        listener = fd;
        proxy = p;
        serve();
    }
    p->pid = pid;
    close(fd);
    return p;
}

void fault_proxy_free(struct fault_proxy *p)
{
    if (!p)
        return;
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    close(p->wake);
    munmap(p, sizeof(*p));
}

uint16_t fault_proxy_port(const struct fault_proxy *p)
{
    return p->port;
}

unsigned fault_proxy_cuts(const struct fault_proxy *p)
{
    return p->cuts;
}

static bool is_done(void *arg)
{
    const struct fault_proxy *p = arg;
    return p->done == p->asked;
}

static void command(struct fault_proxy *p, const struct command *c)
{
    const uint64_t one = 1;
    p->command = *c;
    p->asked++;
    ck_assert_int_eq(write(p->wake, &one, sizeof(one)), sizeof(one));
    ck_assert_msg(wait_until(is_done, p, APPLY_MS), "the fault proxy does not answer");
}

void fault_proxy_pass(struct fault_proxy *p)
{
    command(p, &(struct command){.kind = PASS});
}

void fault_proxy_drop(struct fault_proxy *p)
{
    command(p, &(struct command){.kind = DROP});
}

void fault_proxy_cut(struct fault_proxy *p)
{
    command(p, &(struct command){.kind = CUT});
}

void fault_proxy_cut_after(struct fault_proxy *p, enum fault_side side, size_t bytes)
{
    command(p, &(struct command){.kind = CUT_BYTES, .side = side, .size = bytes});
}

void fault_proxy_cut_at(struct fault_proxy *p, const void *bytes, size_t size, enum fault_when when)
{
    struct command c = {.kind = CUT_STRING, .when = when, .size = size};
    ck_assert(size > 0 && size <= STRING);
    memcpy(c.bytes, bytes, size);
    command(p, &c);
}

void fault_proxy_delay(struct fault_proxy *p, enum fault_side side, int ms)
{
    command(p, &(struct command){.kind = DELAY, .side = side, .ms = ms});
}
