#include "core/limits/connection.h"

#include "core/limits/address.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define OTHERS_MAX 8

struct redis_connection {
    struct loop *loop;
    const struct redis_connection_events *events;
    void *arg;
    h2o_hostinfo_getaddr_req_t *lookup; /* of the host's name, or NULL */
    /* addresses of the name that were not tried; the next one is last */
    struct sockaddr_storage others[OTHERS_MAX];
    size_t others_count;
    h2o_socket_t *socket; /* NULL: none yet */
    redisReader *reader;
    struct buf out;
    size_t sent;           /* of ${out} */
    bool connected;        /* ${socket} may be written to */
    bool writing;          /* the socket is full */
    bool in_event, closed; /* closed in an event: freed when it returns */
};

static void connection_free(struct redis_connection *c)
{
    if (c->lookup != NULL)
        h2o_hostinfo_getaddr_cancel(c->lookup);
    if (c->socket != NULL)
        h2o_socket_close(c->socket);
    if (c->reader != NULL)
        redisReaderFree(c->reader);
    buf_free(&c->out);
    free(c);
}

void redis_connection_close(struct redis_connection *c)
{
    if (c != NULL && c->in_event)
        c->closed = true;
    else if (c != NULL)
        connection_free(c);
}

static void end(struct redis_connection *c, const char *why)
{
    c->in_event = true;
    if (!c->closed)
        c->events->ended(c->arg, why);
    connection_free(c);
}

/* ---- reading ---- */

/* Handles the complete replies. False: the bytes are not Redis' protocol. */
static bool read_replies(struct redis_connection *c)
{
    void *reply = NULL;
    int got = REDIS_OK;
    while (!c->closed && (got = redisReaderGetReply(c->reader, &reply)) == REDIS_OK &&
           reply != NULL) {
        c->events->reply(c->arg, reply);
        freeReplyObject(reply);
    }
    return got == REDIS_OK;
}

static void on_readable(h2o_socket_t *socket, const char *err)
{
    struct redis_connection *c = socket->data;
    loop_read_clock(c->loop);
    if (err != NULL) {
        end(c, err == h2o_socket_error_closed ? "it closed the connection" : err);
        return;
    }
    bool good = redisReaderFeed(c->reader, socket->input->bytes, socket->input->size) == REDIS_OK;
    h2o_buffer_consume(&socket->input, socket->input->size);
    c->in_event = true;
    good = good && read_replies(c);
    c->in_event = false;
    if (c->closed)
        connection_free(c);
    else if (!good)
        end(c, "its answer is not Redis' protocol");
}

/* ---- writing ---- */

static void on_writable(h2o_socket_t *socket, const char *err)
{
    struct redis_connection *c = socket->data;
    c->writing = false;
    if (err != NULL)
        end(c, err);
    else
        redis_connection_flush(c);
}

bool redis_connection_is_sent(const struct redis_connection *c)
{
    return c->out.n == c->sent && buf_ok(&c->out);
}

void redis_connection_flush(struct redis_connection *c)
{
    if (!c->connected || c->writing || redis_connection_is_sent(c))
        return;
    if (!buf_ok(&c->out)) { /* a command is missing */
        shutdown(h2o_socket_get_fd(c->socket), SHUT_RDWR);
        return;
    }
    ssize_t n = send(h2o_socket_get_fd(c->socket), c->out.p + c->sent, c->out.n - c->sent,
                     MSG_NOSIGNAL | MSG_DONTWAIT);
    c->sent += n > 0 ? (size_t)n : 0;
    if (c->sent == c->out.n) {
        buf_reset(&c->out);
        c->sent = 0;
    } else if (n >= 0 || errno == EAGAIN || errno == EINTR) {
        c->writing = true;
        h2o_socket_notify_write(c->socket, on_writable);
    } /* otherwise on_readable gets the error */
}

/* redisFormatCommandArgv takes six times as many instructions: over half of a decision. */
void redis_connection_put(struct redis_connection *c, int argc, const char *const *argv,
                          const size_t *lengths)
{
    buf_adds(&c->out, "*");
    buf_u64(&c->out, (uint64_t)argc);
    for (int i = 0; i < argc; i++) {
        size_t n = lengths != NULL ? lengths[i] : strlen(argv[i]);
        buf_adds(&c->out, "\r\n$");
        buf_u64(&c->out, n);
        buf_adds(&c->out, "\r\n");
        buf_add(&c->out, argv[i], n);
    }
    buf_adds(&c->out, "\r\n");
}

/* ---- connecting ---- */

static bool connect_to(struct redis_connection *c, struct sockaddr *address, socklen_t size);

/* Connects to the next address of the name. False: all the others failed at once. */
static bool connect_other(struct redis_connection *c)
{
    bool begun = false;
    while (!begun && c->others_count > 0) {
        struct sockaddr_storage *next = &c->others[--c->others_count];
        begun = connect_to(c, (struct sockaddr *)next,
                           next->ss_family == AF_INET ? sizeof(struct sockaddr_in)
                                                      : sizeof(struct sockaddr_in6));
    }
    return begun;
}

static void on_connected(h2o_socket_t *socket, const char *err)
{
    struct redis_connection *c = socket->data;
    int yes = 1;
    if (err != NULL) {
        h2o_socket_close(socket);
        c->socket = NULL;
        if (!connect_other(c))
            end(c, "cannot connect");
        return;
    }
    setsockopt(h2o_socket_get_fd(socket), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    c->connected = true;
    h2o_socket_read_start(socket, on_readable);
    redis_connection_flush(c);
}

/* False: refused at once. */
static bool connect_to(struct redis_connection *c, struct sockaddr *address, socklen_t size)
{
    c->socket = h2o_socket_connect(c->loop->ctx.loop, address, size, on_connected);
    if (c->socket != NULL)
        c->socket->data = c;
    return c->socket != NULL;
}

static void on_resolved(h2o_hostinfo_getaddr_req_t *lookup, const char *err, struct addrinfo *found,
                        void *arg)
{
    struct redis_connection *c = arg;
    (void)lookup;
    c->lookup = NULL;
    for (size_t left = OTHERS_MAX; err == NULL && found != NULL && left > 0;
         found = found->ai_next) {
        memcpy(&c->others[--left], found->ai_addr, found->ai_addrlen);
        c->others_count++;
    }
    /* the first one found is tried first: it is the last */
    memmove(c->others, c->others + OTHERS_MAX - c->others_count,
            c->others_count * sizeof(c->others[0]));
    if (err != NULL)
        end(c, "its host name cannot be resolved");
    else if (!connect_other(c))
        end(c, "cannot connect");
}

static void connect_unix(struct redis_connection *c, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    connect_to(c, (struct sockaddr *)&address, sizeof(address));
}

/* A numeric address needs no thread. False: it is not numeric, or memory is exhausted. */
static bool connect_numeric(struct redis_connection *c, const char *host, const char *port)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return false;
    connect_to(c, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return true;
}

static void connect_host(struct redis_connection *c, const char *address)
{
    char host[REDIS_HOST_SIZE];
    const char *port = redis_address_split(address, host);
    if (connect_numeric(c, host, port))
        return;
    c->lookup =
        h2o_hostinfo_getaddr(&c->loop->ctx.receivers.hostinfo_getaddr,
                             h2o_iovec_init(host, strlen(host)), h2o_iovec_init(port, strlen(port)),
                             AF_UNSPEC, SOCK_STREAM, IPPROTO_TCP, AI_NUMERICSERV, on_resolved, c);
}

struct redis_connection *redis_connection_open(struct loop *loop, const char *address,
                                               const struct redis_connection_events *events,
                                               void *arg)
{
    struct redis_connection *c = calloc(1, sizeof(*c));
    if (c == NULL || (c->reader = redisReaderCreate()) == NULL) {
        free(c);
        return NULL;
    }
    c->loop = loop;
    c->events = events;
    c->arg = arg;
    if (strncmp(address, "unix:", 5) == 0)
        connect_unix(c, address + 5);
    else
        connect_host(c, address);
    if (c->socket != NULL || c->lookup != NULL)
        return c;
    connection_free(c);
    return NULL;
}
