/*
 * t/bench/lists asks the server: `run_lists_ask PORT PID KEY FILE`, where each line of FILE is a
 * target to GET, or `DELETE TARGET`. One connection, one request after the other. A line for each:
 * milliseconds, milliseconds of the processor that the process PID (the worker) used meanwhile, and
 * the answer: its total and the ids, apart by spaces.
 */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char answer[4 << 20];

static void die(const char *what)
{
    fprintf(stderr, "run_lists_ask: %s\n", what);
    exit(1);
}

static double now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* of all threads of the process, ended ones included */
static double cpu_ms(clockid_t process)
{
    struct timespec ts;
    if (clock_gettime(process, &ts) != 0)
        die("the worker is gone");
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static int connect_to(const char *port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)atoi(port)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
        die("no connection");
    return fd;
}

/* The whole answer to one request; its body. */
static const char *exchange(int fd, const char *request, size_t size)
{
    size_t n = 0, want = sizeof(answer) - 1;
    const char *body = NULL;
    if (write(fd, request, size) != (ssize_t)size)
        die("the request cannot be sent");
    while (n < want) {
        ssize_t got = read(fd, answer + n, want - n);
        if (got <= 0)
            die("the answer ends early");
        n += (size_t)got;
        answer[n] = '\0';
        if (body == NULL && (body = strstr(answer, "\r\n\r\n")) != NULL) {
            const char *length = strcasestr(answer, "\r\ncontent-length:");
            if (length == NULL || strncmp(answer, "HTTP/1.1 200", 12) != 0)
                die(answer);
            body += 4;
            want = (size_t)(body - answer) + strtoul(length + 17, NULL, 10);
        }
    }
    return body;
}

static void print_answer(const char *body)
{
    const char *total = strstr(body, "\"total\":");
    for (const char *more = total; more != NULL; more = strstr(more + 1, "\"total\":"))
        total = more;
    printf(" %llu", total == NULL ? 0 : strtoull(total + 8, NULL, 10));
    for (const char *id = body; (id = strstr(id, "{\"id\":")) != NULL; id++)
        printf(" %llu", strtoull(id + 6, NULL, 10));
    puts("");
}

int main(int argc, char **argv)
{
    char target[4096], request[8192];
    FILE *f = argc == 5 ? fopen(argv[4], "r") : NULL;
    if (f == NULL)
        die("usage: run_lists_ask PORT PID KEY FILE");
    clockid_t process;
    if (clock_getcpuclockid(atoi(argv[2]), &process) != 0)
        die("the worker is gone");
    int fd = connect_to(argv[1]);
    while (fgets(target, sizeof(target), f) != NULL) {
        target[strcspn(target, "\n")] = '\0';
        const char *method = target[0] == '/' ? "GET " : "";
        int n = snprintf(request, sizeof(request),
                         "%s%s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n",
                         method, target, argv[3]);
        double cpu = cpu_ms(process), began = now_ms();
        const char *body = exchange(fd, request, (size_t)n);
        double took = now_ms() - began;
        printf("%.3f %.3f", took, cpu_ms(process) - cpu);
        print_answer(body);
    }
    return 0;
}
