/*
 * Visitors of a chat widget, many of them, on loopback.
 *
 *   run_visitors PORT COUNT init AGENT              begins COUNT conversations; a line each: token
 *   conversation
 *   run_visitors PORT COUNT stream KEY VISITORS     opens an event stream for each line of the file
 *   VISITORS and says "open". After a line on
 *                                                   standard input an operator with the API key KEY
 *                                                   answers COUNT of them, one after the
 *                                                   other, RATE a second at most, and it prints:
 *                                                   median, 99th percentile and longest time
 *                                                   from the answer's sending to its coming out of
 *                                                   the visitor's stream, in milliseconds
 */
#include "t/bench/client.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RATE 100
#define WAIT_MS 10000
#define TOKEN 1024
#define ID 64

struct visitor {
    int fd; /* of its stream */
    char token[TOKEN], conversation[ID];
};

static uint16_t port;
static char in[1 << 20], out[4096];

/* with what the server said last */
static void die(const char *what)
{
    fprintf(stderr, "%.400s\n", in);
    client_die(what);
}

static void send_all(int fd, int n)
{
    if (n <= 0 || (size_t)n >= sizeof(out) || write(fd, out, (size_t)n) != n)
        die("write");
}

/* one read of what has come within the time; it is added at ${have} */
static size_t more(int fd, size_t have)
{
    struct pollfd p = {fd, POLLIN, 0};
    ssize_t n = poll(&p, 1, WAIT_MS) == 1 && have < sizeof(in) - 1
                    ? read(fd, in + have, sizeof(in) - 1 - have)
                    : -1;
    if (n <= 0)
        die("no answer, or the connection was closed");
    in[have + (size_t)n] = '\0';
    return have + (size_t)n;
}

/* a whole response with Content-Length into ${in}; its status must be ${status} */
static void response(int fd, int status)
{
    size_t have = 0;
    const char *end, *length;
    do {
        have = more(fd, have);
        end = strstr(in, "\r\n\r\n");
        length = end == NULL ? NULL : strcasestr(in, "\r\ncontent-length: ");
    } while (length == NULL || have < (size_t)(end + 4 - in) + strtoul(length + 18, NULL, 10));
    if (atoi(in + 9) != status)
        die("an answer was another than it should be");
}

static void member(const char *name, char *to, size_t size)
{
    char *at = strstr(in, name), *end = at == NULL ? NULL : strchr(at + strlen(name), '"');
    if (end == NULL || (size_t)(end - at) - strlen(name) >= size)
        die(name);
    at += strlen(name);
    memcpy(to, at, (size_t)(end - at));
    to[end - at] = '\0';
}

static int init(size_t count, const char *agent)
{
    static struct visitor v;
    int fd = client_dial(port);
    for (size_t i = 0; i < count; i++) {
        send_all(fd, snprintf(out, sizeof(out),
                              "POST /api/v1/widget/init HTTP/1.1\r\nHost: a\r\nContent-Type: "
                              "application/json\r\nContent-Length: %zu\r\n\r\n"
                              "{\"agent_id\":\"%s\"}",
                              strlen(agent) + 15, agent));
        response(fd, 200);
        member("\"jwt\":\"", v.token, sizeof(v.token));
        member("\"conversation_id\":\"", v.conversation, sizeof(v.conversation));
        printf("%s %s\n", v.token, v.conversation);
    }
    return 0;
}

static struct visitor *read_visitors(const char *path, size_t *count)
{
    struct visitor *all = NULL, v = {.fd = -1};
    FILE *f = fopen(path, "r");
    if (f == NULL)
        die(path);
    for (*count = 0; fscanf(f, "%1023s %63s", v.token, v.conversation) == 2; ++*count) {
        if ((*count & (*count - 1)) == 0 &&
            (all = realloc(all, (*count * 2 + 1) * sizeof(v))) == NULL)
            die("memory");
        all[*count] = v;
    }
    fclose(f);
    return all;
}

static void open_stream(struct visitor *v)
{
    size_t have = 0;
    v->fd = client_dial(port);
    send_all(v->fd, snprintf(out, sizeof(out),
                             "GET /api/v1/widget/conversation/stream HTTP/1.1\r\nHost: "
                             "a\r\nAuthorization: Bearer %s\r\n"
                             "Accept: text/event-stream\r\n\r\n",
                             v->token));
    do
        have = more(v->fd, have);
    while (strstr(in, ": here") == NULL);
}

/*
 * the operator's answer, until it came out of the visitor's stream; ${operators} is the operator's
 * connection
 */
static double answer(int operators, const char *key, const struct visitor *v, unsigned number)
{
    char body[64], wanted[64];
    size_t have = 0;
    double began = client_now();
    snprintf(body, sizeof(body), "{\"message\":\"answer %08u\"}", number);
    snprintf(wanted, sizeof(wanted), "\"content\":\"answer %08u\"", number);
    send_all(operators, snprintf(out, sizeof(out),
                                 "POST /api/v1/conversations/%s/messages HTTP/1.1\r\nHost: "
                                 "a\r\nAuthorization: Bearer %s\r\n"
                                 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                                 v->conversation, key, strlen(body), body));
    do
        have = more(v->fd, have);
    while (strstr(in, wanted) == NULL);
    double took = client_now() - began;
    response(operators, 201);
    return took * 1000;
}

static int stream(size_t answers, const char *key, const char *path)
{
    size_t count;
    struct visitor *all = read_visitors(path, &count);
    double *took = calloc(answers + 1, sizeof(*took));
    if (count == 0 || took == NULL)
        die(path);
    client_most_files();
    for (size_t i = 0; i < count; i++)
        open_stream(&all[i]);
    puts("open");
    fflush(stdout);
    if (getchar() == EOF)
        return 0;
    int operators = client_dial(port);
    double began = client_now();
    for (size_t i = 0; i < answers; i++) {
        client_wait_till(began + (double)i / RATE);
        took[i] = answer(operators, key, &all[(i * 2654435761u) % count], (unsigned)i);
    }
    client_sort(took, answers);
    printf("%.2f %.2f %.2f\n", took[answers / 2], took[answers * 99 / 100], took[answers - 1]);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[3], "init") == 0) {
        port = (uint16_t)atoi(argv[1]);
        return init(strtoul(argv[2], NULL, 10), argv[4]);
    }
    if (argc == 6 && strcmp(argv[3], "stream") == 0 && atoi(argv[2]) > 0) {
        port = (uint16_t)atoi(argv[1]);
        return stream(strtoul(argv[2], NULL, 10), argv[4], argv[5]);
    }
    fprintf(stderr, "usage: run_visitors PORT COUNT init AGENT | PORT COUNT stream KEY VISITORS\n");
    return 2;
}
