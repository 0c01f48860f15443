#include "core/conn/tls.h"

#include "core/conn/tls_file_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_MAX_BYTES ((size_t)256 * 1024)
#define PAIRS 2 /* of certificate and key, of two key types */
/* OpenSSL's key name and two keys; all workers share them, so a session resumes at any worker */
#define TICKET_KEYS_BYTES 80

/* Forward secrecy and authenticated encryption only. TLS 1.3 has no other ciphers. */
#define CIPHERS_1_2 "ECDHE+AESGCM:ECDHE+CHACHA20"

struct pem {
    size_t size;
    unsigned char bytes[FILE_MAX_BYTES];
};

struct tls_secrets {
    struct {
        unsigned char ticket_keys[TICKET_KEYS_BYTES];
        struct {
            struct pem certificate, key;
        } pair[PAIRS];
    } listen[CONF_LISTEN_MAX];
};

static bool has_tls(const struct conf *conf, size_t i)
{
    return conf->listen[i].tls_certificate[0] != '\0';
}

/* ---- in the master: files ---- */

/* The files of a certificate ("": none) and the names of their options. */
struct paths {
    const char *certificate, *key, *certificate_option, *key_option;
};

static struct paths paths_of(const struct conf_listen *l, size_t pair)
{
    return pair == 0 ? (struct paths){l->tls_certificate, l->tls_key, "certificate", "key"}
                     : (struct paths){l->tls_second_certificate, l->tls_second_key,
                                      "second_certificate", "second_key"};
}

/* Straight into the memory that only workers inherit. */
static bool read_file(const char *path, struct pem *to)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 1;
    to->size = 0;
    while (got > 0 && to->size < FILE_MAX_BYTES) {
        got = read(fd, to->bytes + to->size, FILE_MAX_BYTES - to->size);
        to->size += got > 0 ? (size_t)got : 0;
    }
    if (got > 0)
        errno = EFBIG;
    int saved = errno;
    if (fd >= 0)
        close(fd);
    errno = saved;
    return got == 0;
}

static bool read_or_report(size_t i, const char *option, const char *path, struct pem *to,
                           FILE *mistakes)
{
    if (read_file(path, to))
        return true;
    fprintf(mistakes, "listen.%zu.tls.%s: %s: the file cannot be read: %s\n", i, option, path,
            strerror(errno));
    return false;
}

static bool read_pair(const struct conf *conf, size_t i, size_t pair, struct tls_secrets *to,
                      FILE *mistakes)
{
    struct paths paths = paths_of(&conf->listen[i], pair);
    return paths.certificate[0] == '\0' ||
           (read_or_report(i, paths.certificate_option, paths.certificate,
                           &to->listen[i].pair[pair].certificate, mistakes) &&
            read_or_report(i, paths.key_option, paths.key, &to->listen[i].pair[pair].key,
                           mistakes));
}

/* The number of pairs that cannot be read. */
static int read_listener(const struct conf *conf, size_t i, struct tls_secrets *to, FILE *mistakes)
{
    int wrong = 0;
    if (getrandom(to->listen[i].ticket_keys, TICKET_KEYS_BYTES, 0) != TICKET_KEYS_BYTES) {
        fprintf(mistakes, "listen %s: getrandom: %s\n", conf->listen[i].address, strerror(errno));
        return 1;
    }
    for (size_t pair = 0; pair < PAIRS; pair++)
        wrong += !read_pair(conf, i, pair, to, mistakes);
    return wrong;
}

/* A child makes the keys, so that none stays in the master. The number of failures. */
static int try_in_child(const struct conf *conf, struct tls *t, FILE *mistakes)
{
    int pipes[2], status = 0;
    char text[4096];
    ssize_t n;
    if (!tls_inherit(t, true) || pipe2(pipes, O_CLOEXEC) != 0)
        return 1;
    fflush(NULL);
    pid_t child = fork();
    tls_inherit(t, false);
    if (child == 0) {
        FILE *to_parent = fdopen(pipes[1], "w");
        int wrong = to_parent == NULL ? 1 : tls_open(conf, t, to_parent);
        _exit(to_parent != NULL && fclose(to_parent) == 0 ? wrong : 1);
    }
    close(pipes[1]);
    while (child > 0 && ((n = read(pipes[0], text, sizeof(text))) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0)
            fwrite(text, 1, (size_t)n, mistakes);
    close(pipes[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child > 0 && WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(mistakes, "listen: the process that checks the certificates failed\n");
    return 1;
}

int tls_load(const struct conf *conf, struct tls *out, FILE *mistakes)
{
    int wrong = 0;
    size_t with_tls = 0;
    *out = (struct tls){0};
    for (size_t i = 0; i < conf->listen_count; i++)
        with_tls += has_tls(conf, i);
    if (with_tls == 0)
        return 0;
    void *memory = mmap(NULL, sizeof(*out->secrets), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(mistakes, "listen: no memory for keys: %s\n", strerror(errno));
        return 1;
    }
    out->secrets = memory;
    out->size = sizeof(*out->secrets);
    madvise(memory, out->size, MADV_DONTDUMP); /* no key in a core file */
    if (!tls_inherit(out, false)) {
        fprintf(mistakes, "listen: madvise: %s\n", strerror(errno));
        wrong = 1;
    }
    for (size_t i = 0; wrong == 0 && i < conf->listen_count; i++)
        wrong += has_tls(conf, i) ? read_listener(conf, i, out->secrets, mistakes) : 0;
    if (wrong == 0)
        wrong = try_in_child(conf, out, mistakes);
    if (wrong > 0)
        tls_free(out);
    return wrong;
}

void tls_free(struct tls *t)
{
    for (size_t i = 0; i < CONF_LISTEN_MAX; i++)
        SSL_CTX_free(t->ctx[i]);
    if (t->secrets != NULL)
        munmap(t->secrets, t->size);
    *t = (struct tls){0};
}

bool tls_inherit(struct tls *t, bool to_child)
{
    return t->secrets == NULL ||
           madvise(t->secrets, t->size, to_child ? MADV_DOFORK : MADV_DONTFORK) == 0;
}

/* ---- in a worker: contexts ---- */

static int no_password(char *to, int size, int writing, void *arg)
{
    (void)to, (void)size, (void)writing, (void)arg;
    return -1; /* a server cannot ask for a passphrase */
}

/* OpenSSL read it and has a reason of its own, which report() adds. */
#define NOT_ACCEPTED "OpenSSL does not accept it"

/* The certificate and its chain. What is wrong, or NULL. */
static const char *use_chain(SSL_CTX *ctx, BIO *bio, const struct pem *pem)
{
    X509 *cert = PEM_read_bio_X509_AUX(bio, NULL, no_password, NULL);
    const char *what = cert == NULL ? tls_certificate_why(pem->bytes, pem->size) : NULL;
    if (what == NULL && SSL_CTX_use_certificate(ctx, cert) != 1)
        what = NOT_ACCEPTED;
    X509_free(cert);
    while (what == NULL && (cert = PEM_read_bio_X509(bio, NULL, no_password, NULL)) != NULL)
        if (SSL_CTX_add0_chain_cert(ctx, cert) != 1) {
            X509_free(cert);
            what = NOT_ACCEPTED;
        }
    /* NO_START_LINE is the end of the file */
    if (what == NULL && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        what = "a certificate of the chain is damaged or cut off; copy the whole file again";
    return what;
}

static bool is_in_chain(SSL_CTX *ctx, EVP_PKEY *key)
{
    STACK_OF(X509) *chain = NULL;
    SSL_CTX_get0_chain_certs(ctx, &chain);
    for (int i = 0; i < sk_X509_num(chain); i++)
        if (X509_check_private_key(sk_X509_value(chain, i), key) == 1)
            return true;
    return false;
}

static const char *use_key(SSL_CTX *ctx, BIO *bio, const struct pem *pem)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    const char *what = NULL;
    if (key == NULL)
        what = tls_key_why(pem->bytes, pem->size);
    else if (X509_check_private_key(SSL_CTX_get0_certificate(ctx), key) != 1)
        what = is_in_chain(ctx, key) ? "the key belongs to a later certificate of the "
                                       "certificate's file; put that one first there"
                                     : "the key does not match the certificate; give the key that "
                                       "the certificate was made for";
    else if (SSL_CTX_use_PrivateKey(ctx, key) != 1)
        what = NOT_ACCEPTED;
    EVP_PKEY_free(key);
    return what;
}

static const char *use_bytes(SSL_CTX *ctx, const struct pem *pem,
                             const char *(*use)(SSL_CTX *ctx, BIO *bio, const struct pem *pem))
{
    ERR_clear_error();
    BIO *bio = BIO_new_mem_buf(pem->bytes, (int)pem->size);
    const char *what = bio == NULL ? "out of memory" : use(ctx, bio, pem);
    BIO_free(bio);
    return what;
}

/* Only HTTP/1.1 is offered; a client without it gets an alert. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                           const unsigned char *in, unsigned in_size, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;
    (void)ssl, (void)arg;
    if (SSL_select_next_proto(&chosen, out_size, ours, sizeof(ours) - 1, in, in_size) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static bool set_up(SSL_CTX *ctx, const struct tls_secrets *secrets, size_t i)
{
    unsigned char ticket_keys[TICKET_KEYS_BYTES];
    /* a copy, since OpenSSL's parameter is not const */
    memcpy(ticket_keys, secrets->listen[i].ticket_keys, sizeof(ticket_keys));
    SSL_CTX_set_options(ctx, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA |
                                 SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    bool ok = SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
              SSL_CTX_set_cipher_list(ctx, CIPHERS_1_2) == 1 &&
              SSL_CTX_set_tlsext_ticket_keys(ctx, ticket_keys, sizeof(ticket_keys)) == 1;
    OPENSSL_cleanse(ticket_keys, sizeof(ticket_keys));
    return ok;
}

static int key_type(const SSL_CTX *ctx)
{
    const X509 *cert = SSL_CTX_get0_certificate(ctx);
    return cert == NULL ? EVP_PKEY_NONE : EVP_PKEY_get_base_id(X509_get0_pubkey(cert));
}

/* An expired certificate is used: without it the listener would not work either. */
static void warn_of_dates(const SSL_CTX *ctx, size_t i, const struct paths *paths, FILE *mistakes)
{
    const X509 *cert = SSL_CTX_get0_certificate(ctx);
    bool early = X509_cmp_time(X509_get0_notBefore(cert), NULL) > 0,
         late = X509_cmp_time(X509_get0_notAfter(cert), NULL) < 0;
    struct tm at = {0};
    char date[32] = "?";
    if (!early && !late)
        return;
    if (ASN1_TIME_to_tm(late ? X509_get0_notAfter(cert) : X509_get0_notBefore(cert), &at) == 1)
        strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &at);
    fprintf(mistakes, "listen.%zu.tls.%s: %s: the certificate %s %s, and clients refuse it; %s\n",
            i, paths->certificate_option, paths->certificate,
            late ? "expired on" : "is not valid before", date,
            late ? "renew it, and reload" : "check the clock of this host");
}

/* A mistake in a file of a listener, with OpenSSL's reason for NOT_ACCEPTED. */
static void report(size_t i, const char *option, const char *path, const char *what, FILE *mistakes)
{
    char reason[256] = "";
    unsigned long code = strcmp(what, NOT_ACCEPTED) == 0 ? ERR_get_error() : 0;
    if (code != 0)
        ERR_error_string_n(code, reason, sizeof(reason));
    fprintf(mistakes, "listen.%zu.tls.%s: %s: %s%s%s\n", i, option, path, what,
            code == 0 ? "" : ": ", reason);
}

/* ${first}: the key type of the first certificate, or EVP_PKEY_NONE. */
static bool use_pair(SSL_CTX *ctx, const struct tls_secrets *secrets, size_t i, size_t pair,
                     const struct paths *paths, int first, FILE *mistakes)
{
    const char *option = paths->certificate_option, *path = paths->certificate;
    const char *what = use_bytes(ctx, &secrets->listen[i].pair[pair].certificate, use_chain);
    if (what == NULL && key_type(ctx) == first)
        what = "its key has the same type as the first certificate's and would replace it; give "
               "one of another type, or none";
    if (what == NULL) {
        warn_of_dates(ctx, i, paths, mistakes);
        what = use_bytes(ctx, &secrets->listen[i].pair[pair].key, use_key);
        option = paths->key_option;
        path = paths->key;
    }
    if (what != NULL)
        report(i, option, path, what, mistakes);
    return what == NULL;
}

static SSL_CTX *open_one(const struct conf_listen *l, const struct tls_secrets *secrets, size_t i,
                         FILE *mistakes)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    int first = EVP_PKEY_NONE;
    bool ok = ctx != NULL && set_up(ctx, secrets, i);
    if (!ok)
        report(i, "certificate", l->tls_certificate, NOT_ACCEPTED, mistakes);
    for (size_t pair = 0; ok && pair < PAIRS; pair++) {
        struct paths paths = paths_of(l, pair);
        if (paths.certificate[0] == '\0')
            continue;
        ok = use_pair(ctx, secrets, i, pair, &paths, first, mistakes);
        first = key_type(ctx);
    }
    ERR_clear_error();
    if (ok)
        return ctx;
    SSL_CTX_free(ctx);
    return NULL;
}

int tls_open(const struct conf *conf, struct tls *t, FILE *mistakes)
{
    int wrong = 0;
    for (size_t i = 0; i < conf->listen_count; i++)
        if (has_tls(conf, i) &&
            (t->ctx[i] = open_one(&conf->listen[i], t->secrets, i, mistakes)) == NULL)
            wrong++;
    return wrong;
}
