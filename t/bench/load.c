/*
 * A load that counts: a fixed number of requests over a fixed number of keep-alive connections on
 * loopback, each connection sending its next request when its last was answered.
 *
 *   run_load PORT CONNECTIONS REQUESTS REQUEST-FILE [OTHER-FILE EVERY]
 *                                                       prints: seconds, answers by class (2xx
 *                                                       other)
 *                                                       ######## in a file becomes the number of a
 *                                                       page, another one in each request;
 *                                                       one request in EVERY is the other file's
 *   run_load PORT CONNECTIONS REQUESTS REQUEST-FILE each WORDS
 *                                                       the same; each connection sends another
 *                                                       line of the file WORDS where the request
 *                                                       has
 *                                                       the first one; all are of one length
 *   run_load PORT CONNECTIONS REQUESTS REQUEST-FILE cycle WORDS
 *                                                       the same, but each request has the next
 *                                                       line, whichever connection sends it
 *   run_load PORT RATE pace SECONDS REQUEST-FILE            RATE requests a second, each at its
 *   time whether the one before was late or not,
 *                                                           over one connection; prints: median and
 *                                                           99th percentile of the time from when
 *                                                           each
 *                                                           was due to its answer, in microseconds,
 *                                                           how many answers, and the 90th
 *                                                           percentile
 *   run_load PORT CONNECTIONS hold                      opens the connections, one request each,
 *   says "open" and keeps them until standard input ends
 */
#include "t/bench/bench.h"
#include "t/bench/client.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

struct client {
    int fd;
    size_t have;
    char in[65536];
    const char *word; /* NULL: the file's own */
};

struct request {
    char bytes[65536];
    size_t size;
    char *number_at; /* NULL: all are the same */
    char *word_at;   /* where each connection has a word of its own */
};

static struct {
    char text[65536]; /* lines */
    size_t size;      /* of one, without its end */
    size_t count;
    bool cycle; /* each request has the next one */
} words;

static struct request usual, other;
static size_t every; /* 0: none is the other */
static uint16_t port;

/* of eight digits */
static void put_number(char *to, unsigned n)
{
    for (size_t i = 8; i-- > 0; n /= 10)
        to[i] = (char)('0' + n % 10);
}

static void ask(struct client *c)
{
    static unsigned number;
    static size_t asked;
    c->have = 0;
    struct request *r = every != 0 && ++asked % every == 0 ? &other : &usual;
    if (r->number_at != NULL) {
        put_number(r->number_at, bench_page(number++));
    }
    if (words.cycle)
        c->word = words.text + asked++ % words.count * (words.size + 1);
    if (c->word != NULL && r->word_at != NULL)
        memcpy(r->word_at, c->word, words.size);
    if (write(c->fd, r->bytes, r->size) != (ssize_t)r->size)
        client_die("write");
}

/* of the head that ends at ${end}; SIZE_MAX: it tells none */
static size_t content_length(const char *head, const char *end)
{
    static const char name[] = "content-length: ";
    const char *line = head;
    while ((line = memchr(line, '\n', (size_t)(end - line))) != NULL)
        if ((*++line | 0x20) == 'c' && strncasecmp(line, name, strlen(name)) == 0)
            return strtoul(line + strlen(name), NULL, 10);
    return SIZE_MAX;
}

/* the status once the whole response is there, else 0 */
static int answered(struct client *c)
{
    ssize_t n = read(c->fd, c->in + c->have, sizeof(c->in) - 1 - c->have);
    if (n <= 0)
        client_die("the server closed a connection");
    c->have += (size_t)n;
    c->in[c->have] = '\0';
    const char *end = memmem(c->in, c->have, "\r\n\r\n", 4);
    size_t length = end == NULL ? SIZE_MAX : content_length(c->in, end);
    return length != SIZE_MAX && c->have >= (size_t)(end + 4 - c->in) + length ? atoi(c->in + 9)
                                                                               : 0;
}

static int hold(size_t count)
{
    static struct client c;
    client_most_files();
    usual.size = (size_t)sprintf(usual.bytes, "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
    for (size_t i = 0; i < count; i++) {
        c.fd = client_dial(port);
        ask(&c);
        while (answered(&c) == 0)
            ;
    }
    puts("open");
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}

/*
 * It is the server's latency that is asked for, not how long this program waits for a processor
 * that grading has taken: a short slice lets it go before what runs when an answer is there, as on
 * a machine of its own (since Linux 6.12; earlier ones do not read it).
 */
static void go_before_others(void)
{
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t slice_ns, deadline, period;
    } attr = {sizeof(attr), SCHED_OTHER, 0, 0, 0, 100000, 0, 0};
    if (syscall(SYS_sched_setattr, 0, &attr, 0) != 0)
        client_die("sched_setattr");
}

static int pace(double rate, double seconds)
{
    go_before_others();
    size_t count = (size_t)(rate * seconds);
    static struct client c;
    double *took = calloc(count, sizeof(*took)), began = client_now();
    int status;
    c.fd = client_dial(port);
    for (size_t i = 0; i < count; i++) {
        double due = began + (double)i / rate;
        client_wait_till(due);
        ask(&c);
        while ((status = answered(&c)) == 0)
            ;
        if (status < 200 || status >= 300)
            client_die("an answer was not 2xx");
        took[i] = (client_now() - due) * 1e6;
    }
    client_sort(took, count);
    printf("%.0f %.0f %zu %.0f\n", took[count / 2], took[count * 99 / 100], count,
           took[count * 9 / 10]);
    return 0;
}

static void read_request(struct request *r, const char *path)
{
    FILE *f = fopen(path, "r");
    if (f == NULL || (r->size = fread(r->bytes, 1, sizeof(r->bytes), f)) == 0)
        client_die(path);
    fclose(f);
    r->number_at = memmem(r->bytes, r->size, "########", 8);
}

static void read_words(const char *path)
{
    FILE *f = fopen(path, "r");
    size_t n = f == NULL ? 0 : fread(words.text, 1, sizeof(words.text) - 1, f);
    words.size = strcspn(words.text, "\n");
    words.count = n / (words.size + 1);
    usual.word_at = n == 0 ? NULL : memmem(usual.bytes, usual.size, words.text, words.size);
    if (usual.word_at == NULL || n % (words.size + 1) != 0)
        client_die(path);
    fclose(f);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(
            stderr,
            "usage: run_load PORT CONNECTIONS REQUESTS REQUEST-FILE [OTHER-FILE EVERY | each WORDS "
            "| cycle WORDS] | PORT RATE pace SECONDS REQUEST-FILE | PORT CONNECTIONS hold\n");
        return 2;
    }
    port = (uint16_t)atoi(argv[1]);
    size_t connections = strtoul(argv[2], NULL, 10), total = strtoul(argv[3], NULL, 10), asked = 0,
           done = 0, good = 0;
    if (strcmp(argv[3], "hold") == 0)
        return hold(connections);
    if (strcmp(argv[3], "pace") == 0 && argc == 6) {
        read_request(&usual, argv[5]);
        return pace(strtod(argv[2], NULL), strtod(argv[4], NULL));
    }
    read_request(&usual, argv[4]);
    words.cycle = argc > 6 && strcmp(argv[5], "cycle") == 0;
    if (words.cycle || (argc > 6 && strcmp(argv[5], "each") == 0)) {
        read_words(argv[6]);
    } else if (argc > 6) {
        read_request(&other, argv[5]);
        every = strtoul(argv[6], NULL, 10);
    }
    struct client *clients = calloc(connections, sizeof(*clients));
    int ep = epoll_create1(0);
    for (size_t i = 0; i < connections; i++) {
        clients[i].fd = client_dial(port);
        if (words.count > 0)
            clients[i].word = words.text + i % words.count * (words.size + 1);
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &clients[i]};
        epoll_ctl(ep, EPOLL_CTL_ADD, clients[i].fd, &ev);
    }
    double began = client_now(); /* the connections stand: it is the requests that are timed */
    for (size_t i = 0; i < connections && asked < total; i++, asked++)
        ask(&clients[i]);
    while (done < total) {
        struct epoll_event events[64];
        int n = epoll_wait(ep, events, 64, 60000);
        if (n <= 0)
            client_die("no answer for a minute");
        for (int i = 0; i < n; i++) {
            int status = answered(events[i].data.ptr);
            if (status == 0)
                continue;
            done++;
            good += status >= 200 && status < 300;
            if (asked < total) {
                asked++;
                ask(events[i].data.ptr);
            }
        }
    }
    printf("%.6f %zu %zu\n", client_now() - began, good, done - good);
    return 0;
}
