/* A small HTTP server on loopback: the demo's auditor and a browser read its pages. */
#include "cmd/demo.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define HEAD_MAX_BYTES 8192

bool demo_pending(void)
{
    sigset_t pending;
    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1);
}

int demo_port(unsigned *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)*port)};
    socklen_t size = sizeof(address);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    bool bound = bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 16) == 0;
    if (!bound && *port != 0) {
        close(fd);
        *port = 0;
        return demo_port(port);
    }
    if (!bound || getsockname(fd, (struct sockaddr *)&address, &size) != 0) {
        close(fd);
        return -1;
    }
    *port = ntohs(address.sin_port);
    return fd;
}

static void send_all(int fd, const void *p, size_t n)
{
    for (const char *at = p; n > 0;) {
        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return;
        at += sent;
        n -= (size_t)sent;
    }
}

static void answer(int fd, const char *status, const char *type, struct str more, struct str body)
{
    char head[512];
    int size = snprintf(head, sizeof(head),
                        "HTTP/1.1 %s\r\nServer: demo\r\nContent-Type: %s\r\n"
                        "Content-Length: %zu\r\nConnection: close\r\n",
                        status, type, body.n);
    send_all(fd, head, (size_t)size);
    send_all(fd, more.p, more.n);
    send_all(fd, "\r\n", 2);
    send_all(fd, body.p, body.n);
}

static void answer_path(int fd, const char *path, const struct demo_site *site)
{
    const struct str none = STR("");
    for (size_t i = 0; i < site->count; i++) {
        const struct demo_page *page = &site->pages[i];
        if (strcmp(path, page->path) == 0) {
            answer(fd, "200 OK", page->type, page->shop ? buf_view(&site->policy) : none,
                   buf_view(&page->body));
            return;
        }
    }
    answer(fd, "404 Not Found", "text/plain", none, STR("Not found\n"));
}

static void serve_one(int fd, const struct demo_site *site)
{
    char head[HEAD_MAX_BYTES + 1];
    size_t n = 0;
    struct timeval limit = {.tv_sec = 2};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    do {
        ssize_t got = recv(fd, head + n, HEAD_MAX_BYTES - n, 0);
        if (got <= 0)
            return;
        n += (size_t)got;
        head[n] = '\0';
    } while (strstr(head, "\r\n\r\n") == NULL && n < HEAD_MAX_BYTES);
    char method[8], path[256];
    if (sscanf(head, "%7s %255s", method, path) != 2)
        return;
    path[strcspn(path, "?")] = '\0';
    answer_path(fd, path, site);
}

/* A process per connection, since browsers open connections that send nothing. */
static void serve_apart(int fd, const struct demo_site *site)
{
    pid_t pid = fork();
    if (pid <= 0)
        serve_one(fd, site);
    if (pid == 0)
        _exit(0);
    close(fd);
}

pid_t demo_site_serve(int fd, const struct demo_site *site)
{
    pid_t parent = getpid(), pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_IGN);
    while (getppid() == parent) {
        int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
        if (connection < 0 && errno != EINTR && errno != ECONNABORTED)
            break;
        if (connection >= 0)
            serve_apart(connection, site);
    }
    _exit(0);
}
