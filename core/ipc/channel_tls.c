#include "core/ipc/channel_tls.h"

#include "core/ipc/tls_stream_internal.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/crypto.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 64
#define IDENTITY "assay-channel-"
#define DEAD_AFTER_MS 10000 /* unacknowledged bytes */
#define KEEPALIVE_S 3

struct channel_tls_context {
    SSL_CTX *ctx;
    struct channel_tls_key key;
    unsigned version;
    char identity[32];
};

/* ---- the key in the handshake ---- */

static struct channel_tls_context *context_of(const SSL *ssl)
{
    return SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
}

/* TLS_AES_128_GCM_SHA256, the only cipher here; NULL: out of memory. */
static SSL_SESSION *session_new(SSL *ssl)
{
    static const unsigned char cipher[] = {0x13, 0x01};
    struct channel_tls_context *context = context_of(ssl);
    SSL_SESSION *session = SSL_SESSION_new();
    if (session != NULL &&
        SSL_SESSION_set1_master_key(session, context->key.bytes, sizeof(context->key.bytes)) == 1 &&
        SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, cipher)) == 1 &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
        return session;
    SSL_SESSION_free(session);
    return NULL;
}

/* ${id}: what the other side sent in place of ours */
static void refuse_identity(SSL *ssl, const unsigned char *id, size_t size)
{
    static const size_t prefix = sizeof(IDENTITY) - 1;
    char why[160];
    unsigned version = 0;
    bool is_node = size > prefix && size < prefix + 9 && memcmp(id, IDENTITY, prefix) == 0;
    for (size_t i = prefix; is_node && i < size; i++) {
        is_node = isdigit(id[i]) != 0;
        version = version * 10 + (unsigned)(id[i] - '0');
    }
    if (is_node)
        snprintf(why, sizeof(why),
                 "the other side speaks version %u of the channel and this node version %u: "
                 "install one version of Assay on every node",
                 version, context_of(ssl)->version);
    tls_stream_refuse(ssl, is_node ? why
                                   : "the other side uses a key of another program: it is not a "
                                     "node of this cluster");
}

/* In a server. Without a session the handshake fails, because there is no certificate. */
static int find_session(SSL *ssl, const unsigned char *id, size_t size, SSL_SESSION **out)
{
    const char *ours = context_of(ssl)->identity;
    *out = NULL;
    if (size != strlen(ours) || memcmp(id, ours, size) != 0) {
        refuse_identity(ssl, id, size);
        return 1;
    }
    *out = session_new(ssl);
    return *out != NULL;
}

/* In a client. */
static int use_session(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *size,
                       SSL_SESSION **out)
{
    (void)md;
    *id = (const unsigned char *)context_of(ssl)->identity;
    *size = strlen(context_of(ssl)->identity);
    *out = session_new(ssl);
    return *out != NULL;
}

static int refuse_certificate(X509_STORE_CTX *chain, void *arg)
{
    (void)chain, (void)arg;
    return 0;
}

/* ---- the context ---- */

static bool set_up(SSL_CTX *ctx)
{
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_psk_find_session_callback(ctx, find_session);
    SSL_CTX_set_psk_use_session_callback(ctx, use_session);
    SSL_CTX_set_cert_verify_callback(ctx, refuse_certificate, NULL);
    return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_max_proto_version(ctx, TLS1_3_VERSION) == 1 &&
           SSL_CTX_set_ciphersuites(ctx, "TLS_AES_128_GCM_SHA256") == 1 &&
           SSL_CTX_set_num_tickets(ctx, 0) == 1 && SSL_CTX_set_max_early_data(ctx, 0) == 1 &&
           SSL_CTX_set_recv_max_early_data(ctx, 0) == 1;
}

struct channel_tls_context *channel_tls_context_new(const struct channel_tls_key *key,
                                                    unsigned version)
{
    struct channel_tls_context *context = calloc(1, sizeof(*context));
    if (context == NULL)
        return NULL;
    context->key = *key;
    context->version = version;
    snprintf(context->identity, sizeof(context->identity), IDENTITY "%u", version);
    context->ctx = SSL_CTX_new(TLS_method());
    if (context->ctx != NULL && SSL_CTX_set_app_data(context->ctx, context) == 1 &&
        set_up(context->ctx))
        return context;
    channel_tls_context_free(context);
    return NULL;
}

void channel_tls_context_free(struct channel_tls_context *context)
{
    if (context == NULL)
        return;
    SSL_CTX_free(context->ctx);
    OPENSSL_cleanse(&context->key, sizeof(context->key));
    free(context);
}

/* ---- sockets ---- */

static bool refuse(const char *address, const char *reason, char *why, size_t why_size)
{
    snprintf(why, why_size, "%s: %s", address, reason);
    return false;
}

static bool port_parse(const char *text, in_port_t *out)
{
    size_t n = strlen(text);
    unsigned long port = strtoul(text, NULL, 10);
    *out = htons((in_port_t)port);
    return n > 0 && n <= 5 && strspn(text, "0123456789") == n && port <= 65535;
}

/* "192.0.2.1:7443" or "[2001:db8::1]:7443" */
static bool address_parse(const char *address, struct sockaddr_storage *out, socklen_t *size)
{
    char host[INET6_ADDRSTRLEN + 2];
    const char *colon = strrchr(address, ':');
    size_t n = colon == NULL ? 0 : (size_t)(colon - address);
    in_port_t port;
    if (n == 0 || n >= sizeof(host) || !port_parse(colon + 1, &port))
        return false;
    memcpy(host, address, n);
    host[n] = '\0';
    *out = (struct sockaddr_storage){0};
    if (host[0] != '[') {
        struct sockaddr_in *v4 = (struct sockaddr_in *)out;
        *size = sizeof(*v4);
        *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = port};
        return inet_pton(AF_INET, host, &v4->sin_addr) == 1;
    }
    if (host[n - 1] != ']')
        return false;
    host[n - 1] = '\0';
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
    *size = sizeof(*v6);
    *v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = port};
    return inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1;
}

static bool parse_or_refuse(const char *address, struct sockaddr_storage *out, socklen_t *size,
                            char *why, size_t why_size)
{
    return address_parse(address, out, size) ||
           refuse(address,
                  "this is not a numeric address with a port; write it as 192.0.2.1:7443 or "
                  "[2001:db8::1]:7443, since names are not looked up",
                  why, why_size);
}

static int socket_new(const struct sockaddr_storage *sa)
{
    return socket(sa->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

int channel_tls_listen(const char *address, char *why, size_t why_size)
{
    struct sockaddr_storage sa;
    socklen_t size;
    if (!parse_or_refuse(address, &sa, &size, why, why_size))
        return -1;
    int fd = socket_new(&sa);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0 &&
        bind(fd, (const struct sockaddr *)&sa, size) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    refuse(address, strerror(errno), why, why_size);
    if (fd >= 0)
        close(fd);
    return -1;
}

static void set_options(int fd)
{
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &(unsigned){DEAD_AFTER_MS}, sizeof(unsigned));
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){KEEPALIVE_S}, sizeof(int));
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){KEEPALIVE_S}, sizeof(int));
}

static bool begin(struct channel_tls_context *context, struct channel *c, int fd, bool is_server)
{
    channel_init(c, fd);
    set_options(fd);
    c->tls = tls_stream_new(context->ctx, is_server);
    if (c->tls == NULL)
        channel_close(c);
    return c->tls != NULL;
}

bool channel_tls_accept(struct channel_tls_context *context, struct channel *c, int fd)
{
    return begin(context, c, fd, true);
}

bool channel_tls_connect(struct channel_tls_context *context, struct channel *c,
                         const char *address, char *why, size_t why_size)
{
    struct sockaddr_storage sa;
    socklen_t size;
    *c = (struct channel){.fd = -1};
    if (!parse_or_refuse(address, &sa, &size, why, why_size))
        return false;
    int fd = socket_new(&sa);
    if (fd < 0)
        return refuse(address, strerror(errno), why, why_size);
    if (connect(fd, (const struct sockaddr *)&sa, size) != 0 && errno != EINPROGRESS) {
        refuse(address, strerror(errno), why, why_size);
        close(fd);
        return false;
    }
    return begin(context, c, fd, false) || refuse(address, "out of memory", why, why_size);
}

bool channel_tls_is_established(const struct channel *c)
{
    return c->tls != NULL && tls_stream_is_established(c->tls);
}

const char *channel_tls_why(const struct channel *c)
{
    return c->tls == NULL ? "" : tls_stream_why(c->tls);
}
