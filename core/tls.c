#include "tls.h"

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
#define TICKET_KEYS_BYTES 80 /* OpenSSL's name and two keys: the same in all workers, so that a session goes on at any */

struct tls_secrets {
    struct {
        unsigned char ticket_keys[TICKET_KEYS_BYTES];
        size_t certificate_size, key_size;
        unsigned char certificate[FILE_MAX_BYTES], key[FILE_MAX_BYTES];
    } listen[CONF_LISTEN_MAX];
};

static bool has_tls(const struct conf *conf, size_t i)
{
    return conf->listen[i].tls_certificate[0] != '\0';
}

/* ---- the master's part: bytes ---- */

/* The whole file, straight to where it stays. */
static bool read_file(const char *path, unsigned char *to, size_t *size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 1;
    *size = 0;
    while (got > 0 && *size < FILE_MAX_BYTES) {
        got = read(fd, to + *size, FILE_MAX_BYTES - *size);
        *size += got > 0 ? (size_t)got : 0;
    }
    if (got > 0)
        errno = EFBIG;
    int kept = errno;
    if (fd >= 0)
        close(fd);
    errno = kept;
    return got == 0;
}

static bool read_pair(const struct conf *conf, size_t i, struct tls_secrets *to, FILE *mistakes)
{
    const struct conf_listen *l = &conf->listen[i];
    const char *what = NULL;
    if (!read_file(l->tls_certificate, to->listen[i].certificate, &to->listen[i].certificate_size))
        what = "the certificate cannot be read";
    else if (!read_file(l->tls_key, to->listen[i].key, &to->listen[i].key_size))
        what = "the key cannot be read";
    else if (getrandom(to->listen[i].ticket_keys, TICKET_KEYS_BYTES, 0) != TICKET_KEYS_BYTES)
        what = "there is no randomness";
    if (what != NULL)
        fprintf(mistakes, "listen %s: %s (%s, %s): %s\n", l->address, what, l->tls_certificate, l->tls_key, strerror(errno));
    return what == NULL;
}

/* Keys are made of them in a child, with whose memory they go. How many cannot be. */
static int try_in_child(const struct conf *conf, struct tls *t, FILE *mistakes)
{
    int pipes[2], status = 0;
    char said[4096];
    ssize_t n;
    if (!tls_lend(t, true) || pipe2(pipes, O_CLOEXEC) != 0)
        return 1;
    fflush(NULL);
    pid_t child = fork();
    tls_lend(t, false);
    if (child == 0) {
        FILE *to_parent = fdopen(pipes[1], "w");
        int wrong = to_parent == NULL ? 1 : tls_open(conf, t, to_parent);
        _exit(to_parent != NULL && fclose(to_parent) == 0 ? wrong : 1);
    }
    close(pipes[1]);
    while (child > 0 && ((n = read(pipes[0], said, sizeof(said))) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0)
            fwrite(said, 1, (size_t)n, mistakes);
    close(pipes[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (child > 0 && WIFEXITED(status))
        return WEXITSTATUS(status);
    fprintf(mistakes, "listen: the certificates could not be tried\n");
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
    void *memory = mmap(NULL, sizeof(*out->secrets), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(mistakes, "listen: no memory for keys: %s\n", strerror(errno));
        return 1;
    }
    out->secrets = memory;
    out->size = sizeof(*out->secrets);
    madvise(memory, out->size, MADV_DONTDUMP); /* a core file of ours shows no key */
    if (!tls_lend(out, false)) {
        fprintf(mistakes, "listen: keys cannot be kept from children: %s\n", strerror(errno));
        wrong = 1;
    }
    for (size_t i = 0; wrong == 0 && i < conf->listen_count; i++)
        wrong += has_tls(conf, i) && !read_pair(conf, i, out->secrets, mistakes);
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

bool tls_lend(struct tls *t, bool to_child)
{
    return t->secrets == NULL || madvise(t->secrets, t->size, to_child ? MADV_DOFORK : MADV_DONTFORK) == 0;
}

/* ---- the worker's part: contexts ---- */

static int no_password(char *to, int size, int writing, void *arg)
{
    (void)to, (void)size, (void)writing, (void)arg;
    return -1; /* nobody is there to type one */
}

static bool use_chain(SSL_CTX *ctx, BIO *bio)
{
    X509 *cert = PEM_read_bio_X509_AUX(bio, NULL, no_password, NULL);
    bool ok = cert != NULL && SSL_CTX_use_certificate(ctx, cert) == 1;
    X509_free(cert);
    while (ok && (cert = PEM_read_bio_X509(bio, NULL, no_password, NULL)) != NULL)
        if (SSL_CTX_add0_chain_cert(ctx, cert) != 1) {
            X509_free(cert);
            ok = false;
        }
    if (ok && ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
        return false;
    if (ok)
        ERR_clear_error(); /* the end of the file */
    return ok;
}

static bool use_key(SSL_CTX *ctx, BIO *bio)
{
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    bool ok = key != NULL && SSL_CTX_use_PrivateKey(ctx, key) == 1 && SSL_CTX_check_private_key(ctx) == 1;
    EVP_PKEY_free(key);
    return ok;
}

static bool use_bytes(SSL_CTX *ctx, const unsigned char *bytes, size_t size, bool (*use)(SSL_CTX *ctx, BIO *bio))
{
    BIO *bio = BIO_new_mem_buf(bytes, (int)size);
    bool ok = bio != NULL && use(ctx, bio);
    BIO_free(bio);
    return ok;
}

static SSL_CTX *open_one(const struct conf_listen *l, const struct tls_secrets *secrets, size_t i, FILE *mistakes)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    unsigned char ticket_keys[TICKET_KEYS_BYTES];
    const char *what = NULL;
    memcpy(ticket_keys, secrets->listen[i].ticket_keys, sizeof(ticket_keys)); /* OpenSSL does not take const */
    if (ctx == NULL || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
        SSL_CTX_set_tlsext_ticket_keys(ctx, ticket_keys, sizeof(ticket_keys)) != 1)
        what = "TLS cannot be set up";
    else if (!use_bytes(ctx, secrets->listen[i].certificate, secrets->listen[i].certificate_size, use_chain))
        what = "the certificate cannot be used";
    else if (!use_bytes(ctx, secrets->listen[i].key, secrets->listen[i].key_size, use_key))
        what = "the key cannot be used, or is not the certificate's";
    OPENSSL_cleanse(ticket_keys, sizeof(ticket_keys));
    if (what == NULL)
        return ctx;
    char reason[256];
    ERR_error_string_n(ERR_get_error(), reason, sizeof(reason));
    ERR_clear_error();
    fprintf(mistakes, "listen %s: %s (%s, %s): %s\n", l->address, what, l->tls_certificate, l->tls_key, reason);
    SSL_CTX_free(ctx);
    return NULL;
}

int tls_open(const struct conf *conf, struct tls *t, FILE *mistakes)
{
    int wrong = 0;
    for (size_t i = 0; i < conf->listen_count; i++)
        if (has_tls(conf, i) && (t->ctx[i] = open_one(&conf->listen[i], t->secrets, i, mistakes)) == NULL)
            wrong++;
    return wrong;
}
