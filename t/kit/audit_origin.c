#include "config.h"

#include "t/kit/audit_origin.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_REQUESTS 512

struct origin {
    int fd, stop[2];
    uint16_t port;
    origin_fn *answer;
    SSL_CTX *tls;
    pthread_t thread;
    bool started;
    char url[256];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned threads, active, most_active, count;
    bool released, closing;
    char asked[MAX_REQUESTS][128];
    char reached[MAX_REQUESTS][INET6_ADDRSTRLEN];
    unsigned connections;
};

struct origin_answer {
    struct origin *origin;
    int fd;
    SSL *ssl;
    char request[65536];
    bool counted;
};

static void die(const char *what)
{
    fprintf(stderr, "origin: %s: %s\n", what, strerror(errno));
    abort();
}

static SSL_CTX *self_signed(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    if (ctx == NULL || key == NULL || cert == NULL)
        die("TLS");
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert), 24 * 3600);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               (const unsigned char *)"origin.test", -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(cert));
    if (X509_sign(cert, key, EVP_sha256()) == 0 || SSL_CTX_use_certificate(ctx, cert) != 1 ||
        SSL_CTX_use_PrivateKey(ctx, key) != 1)
        die("TLS");
    X509_free(cert);
    EVP_PKEY_free(key);
    return ctx;
}

static struct origin *origin_new(origin_fn *answer, SSL_CTX *tls, const struct sockaddr *sa,
                                 socklen_t n)
{
    struct origin *o = calloc(1, sizeof(*o));
    int one = 1, zero = 0;
    if (o == NULL)
        die("memory");
    o->answer = answer;
    o->tls = tls;
    o->fd = socket(sa->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (o->fd < 0 || setsockopt(o->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        (sa->sa_family == AF_INET6 &&
         setsockopt(o->fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero)) != 0) ||
        bind(o->fd, sa, n) != 0 || listen(o->fd, 128) != 0 || pipe(o->stop) != 0)
        die("listen");
    pthread_mutex_init(&o->lock, NULL);
    pthread_cond_init(&o->changed, NULL);
    return o;
}

struct origin *origin_open(origin_fn *answer, bool tls)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(sa);
    struct origin *o = origin_new(answer, tls ? self_signed() : NULL, (struct sockaddr *)&sa, n);
    if (getsockname(o->fd, (struct sockaddr *)&sa, &n) != 0)
        die("port");
    o->port = ntohs(sa.sin_port);
    return o;
}

struct origin *origin_open_everywhere(origin_fn *answer, uint16_t port, SSL_CTX *tls)
{
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct origin *o = origin_new(answer, tls, (struct sockaddr *)&sa, sizeof(sa));
    o->port = port;
    return o;
}

static void note_address(struct origin *o, int fd)
{
    struct sockaddr_in6 sa;
    socklen_t n = sizeof(sa);
    if (getsockname(fd, (struct sockaddr *)&sa, &n) != 0)
        die("address");
    pthread_mutex_lock(&o->lock);
    if (o->connections < MAX_REQUESTS && sa.sin6_family == AF_INET6) {
        bool v4 = IN6_IS_ADDR_V4MAPPED(&sa.sin6_addr);
        inet_ntop(v4 ? AF_INET : AF_INET6,
                  v4 ? &sa.sin6_addr.s6_addr[12] : &sa.sin6_addr.s6_addr[0],
                  o->reached[o->connections], INET6_ADDRSTRLEN);
    }
    o->connections++;
    pthread_mutex_unlock(&o->lock);
}

static int read_some(struct origin_answer *a, char *to, size_t room)
{
    return a->ssl != NULL ? SSL_read(a->ssl, to, (int)room) : (int)recv(a->fd, to, room, 0);
}

/* The request's head; false when it does not come. */
static bool read_request(struct origin_answer *a, char *to, size_t room)
{
    size_t n = 0;
    while (n + 1 < room) {
        int got = read_some(a, to + n, room - n - 1);
        if (got <= 0)
            return false;
        n += (size_t)got;
        to[n] = '\0';
        if (strstr(to, "\r\n\r\n") != NULL)
            return true;
        if (to[0] == 0x16)
            return false; /* TLS to a server that speaks none */
    }
    return false;
}

static void begin(struct origin *o, const char *path)
{
    pthread_mutex_lock(&o->lock);
    if (o->count < MAX_REQUESTS)
        snprintf(o->asked[o->count], sizeof(o->asked[0]), "%s", path);
    o->count++;
    if (++o->active > o->most_active)
        o->most_active = o->active;
    pthread_mutex_unlock(&o->lock);
}

static void count_out(struct origin_answer *a)
{
    if (!a->counted)
        return;
    a->counted = false;
    pthread_mutex_lock(&a->origin->lock);
    a->origin->active--;
    pthread_mutex_unlock(&a->origin->lock);
}

static void *serve(void *arg)
{
    struct origin_answer *a = arg;
    struct origin *o = a->origin;
    char path[8192] = "";
    if (o->tls != NULL) {
        a->ssl = SSL_new(o->tls);
        SSL_set_fd(a->ssl, a->fd);
    }
    if ((a->ssl == NULL || SSL_accept(a->ssl) == 1) &&
        read_request(a, a->request, sizeof(a->request)) &&
        sscanf(a->request, "%*s %8191s", path) == 1) {
        begin(o, path);
        a->counted = true;
        o->answer(a, path);
        count_out(a);
    }
    if (a->ssl != NULL) {
        SSL_shutdown(a->ssl);
        SSL_free(a->ssl);
    }
    shutdown(a->fd, SHUT_WR);
    close(a->fd);
    free(a);
    pthread_mutex_lock(&o->lock);
    o->threads--;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct origin *o = arg;
    for (;;) {
        struct pollfd fds[] = {{.fd = o->fd, .events = POLLIN},
                               {.fd = o->stop[0], .events = POLLIN}};
        pthread_t thread;
        poll(fds, 2, -1);
        if (fds[1].revents != 0)
            return NULL;
        struct origin_answer *a = calloc(1, sizeof(*a));
        if (a == NULL)
            die("memory");
        a->origin = o;
        a->fd = accept(o->fd, NULL, NULL);
        if (a->fd < 0)
            die("accept");
        note_address(o, a->fd);
        pthread_mutex_lock(&o->lock);
        o->threads++;
        pthread_mutex_unlock(&o->lock);
        if (pthread_create(&thread, NULL, serve, a) != 0)
            die("thread");
        pthread_detach(thread);
    }
}

static int choose_h2(SSL *ssl, const unsigned char **out, unsigned char *out_n,
                     const unsigned char *in, unsigned in_n, void *arg)
{
    (void)ssl, (void)in, (void)in_n, (void)arg;
    *out = (const unsigned char *)"h2";
    *out_n = 2;
    return SSL_TLSEXT_ERR_OK;
}

void origin_claim_h2(struct origin *o)
{
    SSL_CTX_set_alpn_select_cb(o->tls, choose_h2, NULL);
}

void origin_start(struct origin *o)
{
    o->started = pthread_create(&o->thread, NULL, accept_all, o) == 0;
    if (!o->started)
        die("thread");
}

void origin_close(struct origin *o)
{
    if (write(o->stop[1], "", 1) != 1)
        die("stop");
    if (o->started)
        pthread_join(o->thread, NULL);
    pthread_mutex_lock(&o->lock);
    o->closing = o->released = true;
    pthread_cond_broadcast(&o->changed);
    while (o->threads > 0)
        pthread_cond_wait(&o->changed, &o->lock);
    pthread_mutex_unlock(&o->lock);
    close(o->fd);
    close(o->stop[0]);
    close(o->stop[1]);
    SSL_CTX_free(o->tls);
    pthread_mutex_destroy(&o->lock);
    pthread_cond_destroy(&o->changed);
    free(o);
}

uint16_t origin_port(const struct origin *o)
{
    return o->port;
}

const char *origin_url(struct origin *o, const char *path)
{
    snprintf(o->url, sizeof(o->url), "%s://127.0.0.1:%u%s", o->tls != NULL ? "https" : "http",
             o->port, path);
    return o->url;
}

static unsigned read_count(struct origin *o, const unsigned *value)
{
    pthread_mutex_lock(&o->lock);
    unsigned n = *value;
    pthread_mutex_unlock(&o->lock);
    return n;
}

unsigned origin_active(struct origin *o)
{
    return read_count(o, &o->active);
}

unsigned origin_most_active(struct origin *o)
{
    return read_count(o, &o->most_active);
}

unsigned origin_count(struct origin *o)
{
    return read_count(o, &o->count);
}

bool origin_asked(struct origin *o, const char *path)
{
    bool found = false;
    pthread_mutex_lock(&o->lock);
    for (unsigned i = 0; i < o->count && i < MAX_REQUESTS; i++)
        found = found || strncmp(o->asked[i], path, strlen(path)) == 0;
    pthread_mutex_unlock(&o->lock);
    return found;
}

const char *origin_request(const struct origin_answer *a)
{
    return a->request;
}

unsigned origin_reached(struct origin *o, const char *prefix)
{
    unsigned n = 0;
    pthread_mutex_lock(&o->lock);
    for (unsigned i = 0; i < o->connections && i < MAX_REQUESTS; i++)
        n += strncmp(o->reached[i], prefix, strlen(prefix)) == 0;
    pthread_mutex_unlock(&o->lock);
    return n;
}

static bool is_closing(struct origin *o)
{
    pthread_mutex_lock(&o->lock);
    bool closing = o->closing;
    pthread_mutex_unlock(&o->lock);
    return closing;
}

bool origin_send(struct origin_answer *a, const void *p, size_t n)
{
    count_out(a);
    while (n > 0) {
        if (is_closing(a->origin))
            return false;
        ssize_t sent =
            a->ssl != NULL ? SSL_write(a->ssl, p, (int)n) : send(a->fd, p, n, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        p = (const char *)p + sent;
        n -= (size_t)sent;
    }
    return true;
}

bool origin_puts(struct origin_answer *a, const char *text)
{
    return origin_send(a, text, strlen(text));
}

void origin_page(struct origin_answer *a, const char *headers, const char *body)
{
    char head[256];
    snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %zu\r\n",
             strlen(body));
    if (origin_puts(a, head) && origin_puts(a, headers) && origin_puts(a, "\r\n"))
        origin_puts(a, body);
}

void origin_hold(struct origin_answer *a)
{
    struct origin *o = a->origin;
    char byte;
    for (;;) {
        struct pollfd fd = {.fd = a->fd, .events = POLLIN};
        pthread_mutex_lock(&o->lock);
        bool go = o->released;
        pthread_mutex_unlock(&o->lock);
        if (go)
            return;
        if (poll(&fd, 1, 10) > 0 && recv(a->fd, &byte, 1, MSG_PEEK) <= 0)
            return;
    }
}

void origin_release(struct origin *o)
{
    pthread_mutex_lock(&o->lock);
    o->released = true;
    pthread_cond_broadcast(&o->changed);
    pthread_mutex_unlock(&o->lock);
}
