#include "core/master/listeners.h"

#include "core/base/holder.h"

#include <errno.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* bytes that the kernel takes before the client reads them: it would be megabytes by default */
#define UNSENT_MAX (128 << 10)
#define BACKLOG 4096

static int refuse(char *why, size_t size, const char *address, const char *reason)
{
    snprintf(why, size, "listen %s: %s", address, reason);
    return -1;
}

/* the option with its address */
static const char *option_of(const struct listener *l, char out[32])
{
    snprintf(out, 32, l->internal ? "internal_listen" : "listen.%zu.address", l->conf_index);
    return out;
}

static int refuse_holder(char *why, size_t size, const struct listener *l, const char *address,
                         pid_t holder)
{
    char option[32], who[HOLDER_TEXT];
    if (holder == getpid()) {
        snprintf(why, size,
                 "%s %s: the address is in use by another listener of this configuration: change "
                 "one of them",
                 option_of(l, option), address);
        return -1;
    }
    holder_text(holder, who);
    snprintf(
        why, size,
        "%s %s: the address is in use by %s%s: stop that process, or set %s to another address",
        option_of(l, option), address, who, holder == 0 ? " (as root, ss -ltnp names it)" : "",
        option);
    return -1;
}

/* with errno of the bind */
static int refuse_bind(char *why, size_t size, const struct listener *l, const char *address,
                       const struct sockaddr_storage *sa)
{
    if (errno != EADDRINUSE)
        return refuse(why, size, address, strerror(errno));
    return refuse_holder(why, size, l, address, holder_of_address((const struct sockaddr *)sa));
}

/* "host:port" or "[v6]:port" → one address */
static int resolve(const char *address, struct sockaddr_storage *sa, socklen_t *len,
                   const char **reason)
{
    char host[256];
    const char *colon = strrchr(address, ':');
    size_t n = colon == NULL ? 0 : (size_t)(colon - address);
    if (n == 0 || n >= sizeof(host)) {
        *reason = "write it as host:port, [v6]:port or unix:/path";
        return -1;
    }
    bool bracketed = address[0] == '[' && address[n - 1] == ']';
    memcpy(host, address + bracketed, n - (bracketed ? 2 : 0));
    host[n - (bracketed ? 2 : 0)] = '\0';
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *found;
    int failed = getaddrinfo(host, colon + 1, &hints, &found);
    if (failed != 0) {
        *reason = gai_strerror(failed);
        return -1;
    }
    memcpy(sa, found->ai_addr, found->ai_addrlen);
    *len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

void listener_set_options(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &(int){UNSENT_MAX}, sizeof(int));
}

static int bind_one(const struct sockaddr_storage *sa, socklen_t len, bool shared_port)
{
    int one = 1, fd = socket(sa->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    listener_set_options(fd);
    if (shared_port)
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
    if (bind(fd, (const struct sockaddr *)sa, len) == 0)
        return fd;
    int kept = errno;
    close(fd);
    errno = kept;
    return -1;
}

static int add_slot(struct listener *l, const struct sockaddr_storage *sa, socklen_t len)
{
    int *fds = realloc(l->fds, (l->count + 1) * sizeof(*fds));
    if (fds == NULL)
        return -1;
    l->fds = fds;
    int fd = bind_one(sa, len, true);
    if (fd < 0)
        return -1;
    l->fds[l->count++] = fd;
    return 0;
}

/* in the order of slots, since the kernel numbers the sockets of a port in this order */
int listener_listen(struct listener *l)
{
    for (; l->listening < l->count; l->listening++)
        if (listen(l->fds[l->listening], BACKLOG) != 0)
            return -1;
    return 0;
}

static void name_tcp(struct listener *l, const struct sockaddr_storage *sa, socklen_t len)
{
    char host[INET6_ADDRSTRLEN + 16] = "?", port[8] = "?";
    getnameinfo((const struct sockaddr *)sa, len, host, sizeof(host), port, sizeof(port),
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(l->url, sizeof(l->url), sa->ss_family == AF_INET6 ? "%s://[%s]:%s" : "%s://%s:%s",
             l->tls ? "https" : "http", host, port);
}

static int open_tcp(struct listener *l, const char *address, size_t slots, char *why,
                    size_t why_size)
{
    struct sockaddr_storage sa;
    socklen_t len;
    const char *reason;
    if (resolve(address, &sa, &len, &reason) != 0)
        return refuse(why, why_size, address, reason);
    /* with SO_REUSEPORT, we would share the port of another server that also sets it */
    int probe = bind_one(&sa, len, false);
    if (probe < 0)
        return refuse_bind(why, why_size, l, address, &sa);
    len = sizeof(sa);
    getsockname(probe, (struct sockaddr *)&sa, &len); /* the port that 0 became */
    close(probe);
    while (l->count < slots)
        if (add_slot(l, &sa, len) != 0)
            return refuse_bind(why, why_size, l, address, &sa);
    return listener_listen(l) != 0 ? refuse_bind(why, why_size, l, address, &sa) : 0;
}

static int open_unix(struct listener *l, const char *address, char *why, size_t why_size)
{
    const char *path = address + strlen("unix:");
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    if (strlen(path) == 0 || strlen(path) >= sizeof(sa.sun_path))
        return refuse(why, why_size, address, "the path is empty or longer than 107 bytes");
    strcpy(sa.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    l->fds = malloc(sizeof(*l->fds));
    if (fd < 0 || l->fds == NULL)
        return refuse(why, why_size, address, strerror(errno));
    l->fds[l->count++] = fd;
    l->shared = true;
    if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
        return refuse_holder(why, why_size, l, address, holder_of_unix(fd));
    struct stat st;
    if (lstat(path, &st) == 0 && (!S_ISSOCK(st.st_mode) || unlink(path) != 0))
        return refuse(why, why_size, address,
                      S_ISSOCK(st.st_mode) ? strerror(errno)
                                           : "a file that is not a socket is there");
    l->bound = bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;
    if (!l->bound || chmod(path, 0666) != 0 || listener_listen(l) != 0)
        return refuse(why, why_size, address, strerror(errno));
    snprintf(l->url, sizeof(l->url), "unix:%s", path);
    return 0;
}

/* ---- inherited listeners ---- */

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
    const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
    if (a->ss_family != b->ss_family)
        return false;
    if (a->ss_family == AF_INET)
        return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    return a->ss_family == AF_INET6 && a6->sin6_port == b6->sin6_port &&
           memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

static bool is_of_address(const struct inherited_listener *g, const char *address)
{
    struct sockaddr_storage its = {0}, wanted = {0};
    socklen_t len = sizeof(its);
    const char *reason;
    if (getsockname(g->fds[0], (struct sockaddr *)&its, &len) != 0)
        return false;
    if (strncmp(address, "unix:", 5) == 0)
        return its.ss_family == AF_UNIX &&
               strcmp(((const struct sockaddr_un *)(const void *)&its)->sun_path, address + 5) == 0;
    return its.ss_family != AF_UNIX && resolve(address, &wanted, &len, &reason) == 0 &&
           same_address(&its, &wanted);
}

static struct inherited_listener *find_inherited(struct inherited_listener *list, size_t count,
                                                 const char *address, bool internal)
{
    for (size_t i = 0; i < count; i++) {
        struct inherited_listener *g = &list[i];
        bool named =
            g->address[0] != '\0' && g->internal == internal && strcmp(g->address, address) == 0;
        if (g->fds != NULL && (named || (g->address[0] == '\0' && is_of_address(g, address))))
            return g;
    }
    return NULL;
}

static int adopt(struct listener *l, struct inherited_listener *g, const char *address,
                 size_t slots, char *why, size_t why_size)
{
    struct sockaddr_storage sa = {0};
    socklen_t len = sizeof(sa);
    l->fds = g->fds;
    l->count = g->count;
    l->listening = g->listening;
    l->shared = g->shared;
    l->bound = g->bound;
    l->inherited = true;
    g->fds = NULL;
    if (getsockname(l->fds[0], (struct sockaddr *)&sa, &len) != 0)
        return refuse(why, why_size, address, strerror(errno));
    if (sa.ss_family == AF_UNIX)
        snprintf(l->url, sizeof(l->url), "%s", address);
    if (!l->shared && listener_add_slots(l, slots) != 0)
        return refuse(why, why_size, address, strerror(errno));
    return 0;
}

static void unlink_socket(const struct listener *l)
{
    struct sockaddr_un sa;
    socklen_t len = sizeof(sa);
    if (l->bound && getsockname(l->fds[0], (struct sockaddr *)&sa, &len) == 0)
        unlink(sa.sun_path);
}

static void close_sockets(const struct listener *l)
{
    for (size_t i = l->count; i-- > 0;)
        close(l->fds[i]);
    free(l->fds);
}

void inherited_listeners_free(struct inherited_listener *list, size_t count, bool unlink)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].fds == NULL)
            continue;
        const struct listener left = {
            .fds = list[i].fds, .count = list[i].count, .bound = list[i].bound};
        if (unlink)
            unlink_socket(&left);
        close_sockets(&left);
    }
    free(list);
}

/* open it, or take ${inherited} */
static int open_one(struct listener *l, struct inherited_listener *inherited, const char *address,
                    size_t slots, char *why, size_t why_size)
{
    if (inherited != NULL)
        return adopt(l, inherited, address, slots, why, why_size);
    if (strncmp(address, "unix:", 5) == 0)
        return open_unix(l, address, why, why_size);
    return open_tcp(l, address, slots, why, why_size);
}

int listeners_open(struct listeners *all, const struct conf *conf,
                   struct inherited_listener *inherited, size_t count, char *why, size_t why_size)
{
    int result = 0;
    all->count = 0;
    for (size_t i = 0; i < conf->listen_count && result == 0; i++) {
        struct listener *l = &all->list[all->count++];
        *l = (struct listener){.conf_index = i};
        const char *address = conf->listen[i].address;
        result = open_one(l, find_inherited(inherited, count, address, false), address,
                          conf->workers, why, why_size);
    }
    if (result == 0 && conf->internal_listen[0] != '\0') {
        struct listener *l = &all->list[all->count++];
        *l = (struct listener){.internal = true};
        const char *address = conf->internal_listen;
        result =
            open_one(l, find_inherited(inherited, count, address, true), address, 1, why, why_size);
        l->shared = true;
    }
    if (result != 0) {
        listeners_unlink(all, false);
        listeners_close(all);
        all->count = 0;
    }
    listeners_configure(all, conf);
    return result;
}

void listeners_configure(struct listeners *all, const struct conf *conf)
{
    for (size_t i = 0; i < all->count; i++) {
        struct listener *l = &all->list[i];
        struct sockaddr_storage sa = {0};
        socklen_t len = sizeof(sa);
        l->tls = !l->internal && conf->listen[l->conf_index].tls_certificate[0] != '\0';
        if (getsockname(l->fds[0], (struct sockaddr *)&sa, &len) == 0 && sa.ss_family != AF_UNIX)
            name_tcp(l, &sa, len);
    }
}

int listener_add_slots(struct listener *l, size_t slots)
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof(sa);
    if (l->shared || getsockname(l->fds[0], (struct sockaddr *)&sa, &len) != 0)
        return l->shared ? 0 : -1;
    while (l->count < slots)
        if (add_slot(l, &sa, len) != 0)
            return -1;
    return 0;
}

/* the last first, so that the kernel keeps its numbers of the others */
void listener_remove_slots(struct listener *l, size_t slots)
{
    while (l->count > slots)
        close(l->fds[--l->count]);
    if (l->listening > l->count)
        l->listening = l->count;
}

/* at random: some network cards give no hash of the packet */
int listener_steer(const struct listener *l, size_t slots)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_RANDOM)),
        BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, (uint32_t)slots),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    struct sock_fprog filter = {.len = sizeof(program) / sizeof(program[0]), .filter = program};
    return setsockopt(l->fds[0], SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &filter, sizeof(filter));
}

void listener_unsteer(const struct listener *l)
{
    int none = 0;
    setsockopt(l->fds[0], SOL_SOCKET, SO_DETACH_REUSEPORT_BPF, &none, sizeof(none));
}

/*
 * The kernel repeats a SYN-ACK after 1, 2, 4, ... s (at most 120), net.ipv4.tcp_synack_retries
 * times. Twice that, since a repeated SYN restarts the wait.
 */
uint64_t listeners_handshake_ms(void)
{
    unsigned retries = 5, ms = 0;
    FILE *file = fopen("/proc/sys/net/ipv4/tcp_synack_retries", "re");
    if (file != NULL && fscanf(file, "%u", &retries) != 1)
        retries = 5;
    if (file != NULL)
        fclose(file);
    for (unsigned i = 0; i <= retries && i < 256; i++)
        ms += i < 7 ? 1000u << i : 120000;
    return 2 * (uint64_t)ms;
}

bool listener_is_idle(const struct listener *l, size_t from)
{
    for (size_t i = from; i < l->listening; i++) {
        struct tcp_info info = {0};
        socklen_t size = sizeof(info);
        /* of a listening socket, tcpi_unacked is the length of its accept queue */
        if (getsockopt(l->fds[i], IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
            info.tcpi_unacked != 0)
            return false;
    }
    return true;
}

void listeners_close(struct listeners *all)
{
    for (size_t i = 0; i < all->count; i++) {
        close_sockets(&all->list[i]);
        all->list[i].fds = NULL;
        all->list[i].count = all->list[i].listening = 0;
    }
}

void listeners_unlink(const struct listeners *all, bool inherited)
{
    for (size_t i = 0; i < all->count; i++)
        if (inherited || !all->list[i].inherited)
            unlink_socket(&all->list[i]);
}
