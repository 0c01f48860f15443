#include "t/bench/canned.h"

#include <h2o/http1.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static h2o_globalconf_t config;
static h2o_context_t ctx;
static h2o_accept_ctx_t accept_ctx;

static int status = 200;
static struct {
    h2o_iovec_t name, value;
} headers[16];
static size_t headers_count;
static h2o_iovec_t body;

void canned_send(h2o_req_t *req)
{
    static h2o_generator_t generator;
    req->res.status = status;
    req->res.reason = "OK";
    req->res.content_length = body.len;
    for (size_t i = 0; i < headers_count; i++)
        h2o_add_header_by_str(&req->pool, &req->res.headers, headers[i].name.base,
                              headers[i].name.len, 0, NULL, headers[i].value.base,
                              headers[i].value.len);
    h2o_start_response(req, &generator);
    h2o_send(req, &body, 1, H2O_SEND_STATE_FINAL);
}

static void on_accept(h2o_socket_t *listener, const char *err)
{
    h2o_socket_t *sock;
    if (err == NULL)
        while ((sock = h2o_evloop_socket_accept(listener)) != NULL)
            h2o_accept(&accept_ctx, sock);
}

static int is(const char *line, const char *name)
{
    return strncasecmp(line, name, strlen(name)) == 0;
}

void canned_read(const char *path)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    size_t n = f == NULL ? 0 : fread(text, 1, sizeof(text) - 1, f);
    char *end = strstr(text, "\r\n\r\n");
    if (n == 0 || end == NULL) {
        fprintf(stderr, "%s: no response in it\n", path);
        exit(1);
    }
    fclose(f);
    status = atoi(text + strlen("HTTP/1.1 "));
    body = h2o_iovec_init(end + 4, n - (size_t)(end + 4 - text));
    *end = '\0';
    for (char *line = strstr(text, "\r\n"); line != NULL; line = strstr(line, "\r\n")) {
        line += 2;
        char *colon = strchr(line, ':');
        if (colon == NULL || is(line, "date:") || is(line, "connection:") ||
            is(line, "content-length:"))
            continue;
        char *eol = strstr(line, "\r\n");
        headers[headers_count].name = h2o_iovec_init(line, (size_t)(colon - line));
        headers[headers_count++].value =
            h2o_iovec_init(colon + 2, (eol == NULL ? strlen(line) : (size_t)(eol - line)) -
                                          (size_t)(colon + 2 - line));
    }
}

int canned_listen(const char *port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(port)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(sa);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&sa, &size) != 0) {
        perror("bind");
        exit(1);
    }
    printf("ready %u\n", ntohs(sa.sin_port));
    fflush(stdout);
    return fd;
}

h2o_evloop_t *canned_loop(int fd, int (*on_req)(h2o_handler_t *, h2o_req_t *))
{
    h2o_config_init(&config);
    config.server_name = h2o_iovec_init(NULL, 0);
    h2o_hostconf_t *host =
        h2o_config_register_host(&config, h2o_iovec_init(H2O_STRLIT("default")), 65535);
    h2o_create_handler(h2o_config_register_path(host, "/", 0), sizeof(h2o_handler_t))->on_req =
        on_req;
    h2o_context_init(&ctx, h2o_evloop_create(), &config);
    accept_ctx.ctx = &ctx;
    accept_ctx.hosts = config.hosts;
    h2o_socket_t *sock = h2o_evloop_socket_create(ctx.loop, fd, H2O_SOCKET_FLAG_DONT_READ);
    h2o_socket_read_start(sock, on_accept);
    return ctx.loop;
}
