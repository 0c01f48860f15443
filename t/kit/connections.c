#include "t/kit/connections.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

struct origin *origin;
struct server *server;

void connections_setup(void)
{
    origin = origin_start();
    server = server_new(&(struct server_options){.origin = origin});
}

void connections_teardown(void)
{
    server_free(server);
    origin_stop(origin);
}

struct raw *raw_from(const char *address)
{
    struct raw *raw = calloc(1, sizeof(*raw));
    struct sockaddr_in from = {.sin_family = AF_INET},
                       to = {.sin_family = AF_INET,
                             .sin_port = htons(server->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ck_assert_ptr_nonnull(raw);
    ck_assert_int_eq(inet_pton(AF_INET, address, &from.sin_addr), 1);
    raw->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    /* the server stops sending an answer that is not read */
    setsockopt(raw->fd, SOL_SOCKET, SO_RCVBUF, &(int){4096}, sizeof(int));
    ck_assert(raw->fd >= 0 && bind(raw->fd, (struct sockaddr *)&from, sizeof(from)) == 0);
    ck_assert_msg(connect(raw->fd, (struct sockaddr *)&to, sizeof(to)) == 0, "connect: %s",
                  strerror(errno));
    return raw;
}

void ask(struct raw *raw)
{
    raw_text(raw, HEALTHZ);
    expect_status(raw_response(raw, false, 5000), 200);
}

size_t still_open(struct raw **raws, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += !raw_closed(raws[i], 0);
    return sum;
}

void close_all(struct raw **raws, size_t count)
{
    for (size_t i = 0; i < count; i++)
        raw_close(raws[i]);
}
