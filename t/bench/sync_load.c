/*
 * A shop's full sync as load: 100-item product batches over some connections, each a process that
 * sends its next batch when its last was answered.
 *
 *   run_sync_load PORT TOKEN AGENT CONNECTIONS BATCHES SYNC-ID [complete]
 *       prints: seconds, items queued, unchanged, failed, and bytes sent an item. ${complete}: one
 *       more batch, without items, ends the sync.
 *       A batch that is not answered with 200 is sent again, for up to half a minute, as a plugin
 *       would: the server may be killed beside.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ITEMS 100
#define TRIES 300
#define PAUSE_US 100000

static uint16_t port;
static const char *token, *agent, *sync_id;

struct counts {
    unsigned long queued, unchanged, failed, bytes, refused;
};

static double now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int dial(void)
{
    const struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {.tv_sec = 30};
    int one = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    if (connect(fd, (const struct sockaddr *)&sa, sizeof(sa)) != 0) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    return fd;
}

/* A product as shops have them: some hundred bytes of text with a little markup. */
static size_t product(char *to, size_t room, unsigned long id)
{
    return (size_t)snprintf(
        to, room,
        "%s{\"wp_id\":%lu,\"sku\":\"SKU-%08lu\",\"name\":\"Product number %lu of the "
        "catalogue\",\"permalink\":\"https://shop.example/product/%lu\","
        "\"image_url\":\"https://shop.example/i/%lu.webp\",\"short_description\":\"A "
        "<strong>fine</strong> thing, number %lu\","
        "\"description\":\"<p>Made by hand of good material, it lasts for years &amp; is a joy to "
        "use.</p><p>Comes in %lu variants with a box.</p>\","
        "\"price\":\"%lu.95\",\"regular_price\":\"%lu.95\",\"currency\":\"EUR\",\"stock_status\":"
        "\"instock\",\"on_sale\":false,"
        "\"categories\":[\"Things\",\"Category "
        "%lu\"],\"attributes\":[{\"name\":\"Size\",\"options\":[\"S\",\"M\"]}],\"content_hash\":"
        "\"h%lu\"}",
        (id - 1) % ITEMS == 0 ? "" : ",", id, id, id, id, id, id, id % 9 + 1, id % 90 + 5,
        id % 90 + 9, id % 40, id);
}

static size_t request(char *to, size_t room, unsigned long batch, bool complete)
{
    static char body[256 * 1024];
    size_t n = (size_t)snprintf(
        body, sizeof(body),
        "{\"agent_id\":\"%s\",\"site_url\":\"https://"
        "shop.example\",\"plugin_version\":\"1\",\"sync_id\":\"%s\"%s,\"products\":[",
        agent, sync_id, complete ? ",\"complete\":true" : "");
    for (unsigned i = 0; i < ITEMS && !complete; i++)
        n += product(body + n, sizeof(body) - n, batch * ITEMS + i + 1);
    n += (size_t)snprintf(body + n, sizeof(body) - n, "]}");
    size_t head = (size_t)snprintf(
        to, room,
        "POST /v1/wp/products/sync HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer "
        "%s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
        token, n);
    memcpy(to + head, body, n);
    return head + n;
}

static bool send_all(int fd, const char *p, size_t n)
{
    while (n > 0) {
        ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        p += sent;
        n -= (size_t)sent;
    }
    return true;
}

/* The whole answer, zero-terminated; its status, 0 when none came. */
static int receive(int fd, char *in, size_t room)
{
    size_t have = 0, want = 0;
    while (have + 1 < room && (want == 0 || have < want)) {
        ssize_t got = recv(fd, in + have, room - 1 - have, 0);
        if (got <= 0)
            return 0;
        in[have += (size_t)got] = '\0';
        const char *body = strstr(in, "\r\n\r\n"), *length = strcasestr(in, "content-length:");
        if (body != NULL && length != NULL && want == 0)
            want = (size_t)(body + 4 - in) + strtoul(length + 15, NULL, 10);
    }
    return atoi(in + strlen("HTTP/1.1 "));
}

static unsigned long count_of(const char *in, const char *name)
{
    const char *at = strstr(in, name);
    return at == NULL ? 0 : strtoul(at + strlen(name), NULL, 10);
}

/* One batch until it is answered; the connection it was answered on. */
static int exchange(int fd, unsigned long batch, bool complete, struct counts *counts)
{
    static char out[300 * 1024], in[64 * 1024];
    size_t n = request(out, sizeof(out), batch, complete);
    for (unsigned tries = 0; tries < TRIES; tries++) {
        int status = fd >= 0 && send_all(fd, out, n) ? receive(fd, in, sizeof(in)) : 0;
        if (status == 200) {
            counts->queued += count_of(in, "\"queued\":");
            counts->unchanged += count_of(in, "\"skipped_unchanged\":");
            counts->failed += count_of(in, "\"failed\":");
            counts->bytes += n;
            return fd;
        }
        counts->refused++;
        if (status != 0 && status != 503) {
            fprintf(stderr, "run_sync_load: %s\n", in);
            exit(1);
        }
        close(fd);
        usleep(tries == 0 ? 0 : PAUSE_US);
        fd = dial();
    }
    fprintf(stderr, "run_sync_load: batch %lu is not answered\n", batch);
    exit(1);
}

int main(int argc, char **argv)
{
    if (argc < 7) {
        fprintf(stderr,
                "usage: run_sync_load PORT TOKEN AGENT CONNECTIONS BATCHES SYNC-ID [complete]\n");
        return 2;
    }
    port = (uint16_t)atoi(argv[1]);
    token = argv[2];
    agent = argv[3];
    unsigned connections = (unsigned)atoi(argv[4]);
    unsigned long batches = strtoul(argv[5], NULL, 10);
    sync_id = argv[6];
    struct counts *counts = mmap(NULL, sizeof(*counts) * connections, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0),
                  all = {0};
    if (counts == MAP_FAILED)
        return 1;
    double began = now();
    for (unsigned c = 0; c < connections; c++) {
        if (fork() != 0)
            continue;
        int fd = dial();
        for (unsigned long b = c; b < batches; b += connections)
            fd = exchange(fd, b, false, &counts[c]);
        _exit(0);
    }
    int status = 0, bad = 0;
    while (wait(&status) > 0)
        bad |= status;
    double took = now() - began;
    for (unsigned c = 0; c < connections; c++) {
        all.queued += counts[c].queued;
        all.unchanged += counts[c].unchanged;
        all.failed += counts[c].failed;
        all.bytes += counts[c].bytes;
    }
    if (argc > 7)
        exchange(-1, 0, true, &counts[0]);
    printf("%.3f %lu %lu %lu %lu\n", took, all.queued, all.unchanged, all.failed,
           batches == 0 ? 0 : all.bytes / (batches * ITEMS));
    return bad != 0;
}
