#include "config.h"

#include "t/kit/audit_net.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#define DAY_SECONDS (24L * 3600)

static void die(const char *what)
{
    fprintf(stderr, "net: %s: %s\n", what, strerror(errno));
    abort();
}

/* ---- namespaces ---- */

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        close(fd);
    return ok;
}

static bool leave_namespaces(void)
{
    char map[64];
    unsigned uid = geteuid(), gid = getegid();
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) == 0)
        return true;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) != 0)
        return false;
    snprintf(map, sizeof(map), "0 %u 1", uid);
    bool ok = write_file("/proc/self/setgroups", "deny") && write_file("/proc/self/uid_map", map);
    snprintf(map, sizeof(map), "0 %u 1", gid);
    return ok && write_file("/proc/self/gid_map", map);
}

struct netlink_request {
    struct nlmsghdr head;
    union {
        struct rtmsg route;
        struct ifaddrmsg address;
    } u;
    char attributes[64];
};

static void add_attribute(struct netlink_request *r, unsigned short type, const void *data,
                          unsigned short size)
{
    struct rtattr *a = (struct rtattr *)(void *)((char *)r + NLMSG_ALIGN(r->head.nlmsg_len));
    *a = (struct rtattr){.rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(size)};
    memcpy(RTA_DATA(a), data, size);
    r->head.nlmsg_len = NLMSG_ALIGN(r->head.nlmsg_len) + (unsigned)RTA_ALIGN(a->rta_len);
}

static bool netlink(struct netlink_request *r)
{
    struct {
        struct nlmsghdr head;
        struct nlmsgerr error;
        char rest[256];
    } answer;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    r->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
    bool ok = fd >= 0 && send(fd, r, r->head.nlmsg_len, 0) == (ssize_t)r->head.nlmsg_len &&
              recv(fd, &answer, sizeof(answer), 0) >= (ssize_t)NLMSG_LENGTH(sizeof(answer.error)) &&
              answer.head.nlmsg_type == NLMSG_ERROR && answer.error.error == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Every address of the family is ours, though no interface has it. */
static bool deliver_all_here(unsigned char family, int lo)
{
    struct netlink_request r = {
        .head = {.nlmsg_type = RTM_NEWROUTE, .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg))}};
    r.u.route = (struct rtmsg){.rtm_family = family,
                               .rtm_table = RT_TABLE_LOCAL,
                               .rtm_protocol = RTPROT_STATIC,
                               .rtm_scope = RT_SCOPE_HOST,
                               .rtm_type = RTN_LOCAL};
    add_attribute(&r, RTA_OIF, &lo, sizeof(lo));
    return netlink(&r);
}

static bool add_own(const char *text, int lo)
{
    struct in_addr ip;
    struct netlink_request r = {
        .head = {.nlmsg_type = RTM_NEWADDR, .nlmsg_len = NLMSG_LENGTH(sizeof(struct ifaddrmsg))}};
    r.u.address =
        (struct ifaddrmsg){.ifa_family = AF_INET, .ifa_prefixlen = 32, .ifa_index = (unsigned)lo};
    if (inet_pton(AF_INET, text, &ip) != 1)
        return false;
    add_attribute(&r, IFA_LOCAL, &ip, sizeof(ip));
    return netlink(&r);
}

static bool raise_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

/* ${text} in place of the file ${path}, for us alone. */
static bool cover(const char *path, const char *text)
{
    char made[] = "/tmp/assay-net-XXXXXX";
    int fd = mkstemp(made);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) &&
              mount(made, path, NULL, MS_BIND, NULL) == 0;
    if (fd >= 0) {
        close(fd);
        unlink(made);
    }
    return ok;
}

/* ---- certificates ---- */

static struct {
    X509 *cert;
    EVP_PKEY *key;
} certs[NET_CERTS];

static X509 *make_cert(EVP_PKEY *key, const char *name, bool authority, long begin, long end,
                       X509 *issuer, EVP_PKEY *issuer_key)
{
    static long serial;
    char names[128];
    X509 *cert = X509_new();
    X509_NAME *subject = X509_get_subject_name(cert);
    X509V3_CTX ctx;
    snprintf(names, sizeof(names), "DNS:%s,DNS:*.%s", name, name);
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(cert), begin);
    X509_gmtime_adj(X509_getm_notAfter(cert), end);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(cert, issuer == NULL ? subject : X509_get_subject_name(issuer));
    X509V3_set_ctx(&ctx, issuer == NULL ? cert : issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension =
        authority ? X509V3_EXT_conf_nid(NULL, &ctx, NID_basic_constraints, "critical,CA:TRUE")
                  : X509V3_EXT_conf_nid(NULL, &ctx, NID_subject_alt_name, names);
    X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
    if (X509_sign(cert, issuer_key == NULL ? key : issuer_key, EVP_sha256()) == 0)
        die("certificate");
    return cert;
}

/* The authority that is trusted, as PEM. The keys live as long as the process. */
static char *make_certs(void)
{
    EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *stranger_key = EVP_EC_gen("P-256");
    X509 *ca = make_cert(ca_key, "Test authority", true, -DAY_SECONDS, DAY_SECONDS, NULL, NULL);
    X509 *stranger =
        make_cert(stranger_key, "A stranger", true, -DAY_SECONDS, DAY_SECONDS, NULL, NULL);
    for (int i = 0; i < NET_CERTS; i++)
        certs[i].key = EVP_EC_gen("P-256");
    certs[NET_CERT_GOOD].cert = make_cert(certs[NET_CERT_GOOD].key, "site.example", false,
                                          -DAY_SECONDS, DAY_SECONDS, ca, ca_key);
    certs[NET_CERT_EXPIRED].cert = make_cert(certs[NET_CERT_EXPIRED].key, "site.example", false,
                                             -3 * DAY_SECONDS, -DAY_SECONDS, ca, ca_key);
    certs[NET_CERT_OTHER].cert = make_cert(certs[NET_CERT_OTHER].key, "www.elsewhere.test", false,
                                           -DAY_SECONDS, DAY_SECONDS, ca, ca_key);
    certs[NET_CERT_SELF_SIGNED].cert = make_cert(certs[NET_CERT_SELF_SIGNED].key, "site.example",
                                                 false, -DAY_SECONDS, DAY_SECONDS, NULL, NULL);
    certs[NET_CERT_STRANGER].cert = make_cert(certs[NET_CERT_STRANGER].key, "site.example", false,
                                              -DAY_SECONDS, DAY_SECONDS, stranger, stranger_key);
    BIO *bio = BIO_new(BIO_s_mem());
    char *pem;
    PEM_write_bio_X509(bio, ca);
    BIO_write(bio, "", 1);
    BIO_get_mem_data(bio, &pem);
    char *copy = strdup(pem);
    BIO_free(bio);
    X509_free(ca);
    X509_free(stranger);
    EVP_PKEY_free(ca_key);
    EVP_PKEY_free(stranger_key);
    return copy;
}

static SSL_CTX *context_of(enum net_cert kind)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (ctx == NULL || SSL_CTX_use_certificate(ctx, certs[kind].cert) != 1 ||
        SSL_CTX_use_PrivateKey(ctx, certs[kind].key) != 1)
        die("TLS");
    return ctx;
}

static int choose(SSL *ssl, int *alert, void *arg)
{
    static const char *const begins[NET_CERTS] = {"", "expired.", "other.", "self-signed.",
                                                  "stranger."};
    const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    (void)alert, (void)arg;
    for (int i = 1; name != NULL && i < NET_CERTS; i++) {
        if (strncmp(name, begins[i], strlen(begins[i])) != 0)
            continue;
        SSL_CTX *ctx = context_of((enum net_cert)i);
        SSL_set_SSL_CTX(ssl, ctx);
        SSL_CTX_free(ctx);
    }
    return SSL_TLSEXT_ERR_OK;
}

SSL_CTX *net_tls(void)
{
    SSL_CTX *ctx = context_of(NET_CERT_GOOD);
    SSL_CTX_set_tlsext_servername_callback(ctx, choose);
    return ctx;
}

bool net_write_good(const char *directory)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/cert.pem", directory);
    FILE *f = fopen(path, "we");
    bool ok = f != NULL && PEM_write_X509(f, certs[NET_CERT_GOOD].cert) == 1;
    if (f != NULL)
        fclose(f);
    snprintf(path, sizeof(path), "%s/key.pem", directory);
    f = fopen(path, "we");
    ok = f != NULL &&
         PEM_write_PrivateKey(f, certs[NET_CERT_GOOD].key, NULL, NULL, 0, NULL, NULL) == 1 && ok;
    if (f != NULL)
        fclose(f);
    return ok;
}

bool net_enter(const char *own, const char **why)
{
    const char *bundle = curl_version_info(CURLVERSION_NOW)->cainfo;
    char *authority = make_certs();
    int lo = 1; /* the only interface of a new namespace */
    *why = NULL;
    if (!leave_namespaces())
        *why = "no network and mount namespaces of our own (root, or unprivileged user namespaces, "
               "are needed)";
    else if (!raise_loopback() || !deliver_all_here(AF_INET, lo) ||
             !deliver_all_here(AF_INET6, lo) || !add_own(own, lo))
        *why = "the namespace takes no routes";
    else if (bundle == NULL || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
             !cover(bundle, authority) ||
             !cover("/etc/resolv.conf", "nameserver 127.0.0.1\noptions attempts:1\n") ||
             !cover("/etc/nsswitch.conf", "hosts: files dns\n"))
        *why = "the namespace takes no mounts";
    free(authority);
    return *why == NULL;
}

/* ---- names ---- */

static struct {
    int fd;
    const struct net_name *names;
    size_t count;
    unsigned *asked; /* by name and type */
} dns;

/* The name of the question in ${q}, with dots; where it ends. */
static size_t read_name(const unsigned char *q, size_t n, char out[256])
{
    size_t at = 12, to = 0;
    while (at < n && q[at] != 0 && to + q[at] + 1 < 255) {
        memcpy(out + to, q + at + 1, q[at]);
        to += q[at];
        out[to++] = '.';
        at += q[at] + 1u;
    }
    out[to > 0 ? to - 1 : 0] = '\0';
    return at + 1;
}

static size_t add_answer(unsigned char *out, const char *address, bool v6)
{
    /* the question's name, TTL 0 */
    static const unsigned char begin[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4};
    unsigned char ip[16];
    if (inet_pton(v6 ? AF_INET6 : AF_INET, address, ip) != 1)
        return 0; /* of the other family */
    memcpy(out, begin, sizeof(begin));
    out[3] = v6 ? 28 : 1;
    out[11] = v6 ? 16 : 4;
    memcpy(out + sizeof(begin), ip, v6 ? 16 : 4);
    return sizeof(begin) + (v6 ? 16 : 4);
}

/* The answer to ${q}, in its place; 0: none. */
static size_t answer(unsigned char *q, size_t n, size_t room)
{
    char name[256], list[512], *rest = list;
    size_t end = read_name(q, n, name) + 4, i = 0;
    if (end > n || strcmp(name, "silent.example") == 0)
        return 0;
    bool v6 = q[end - 3] == 28, known = false;
    q[2] = 0x84; /* an answer, ours */
    q[3] = 0;
    memset(q + 6, 0, 6);
    for (; i < dns.count && !known; i++) {
        if (strcasecmp(dns.names[i].name, name) != 0)
            continue;
        bool later = dns.asked[i * 2 + v6]++ > 0 && dns.names[i].next != NULL;
        snprintf(list, sizeof(list), "%s", later ? dns.names[i].next : dns.names[i].first);
        known = true;
    }
    if (!known)
        q[3] = 3; /* no such name */
    for (char *one; known && (one = strsep(&rest, " ")) != NULL && end + 32 < room;) {
        size_t added = add_answer(q + end, one, v6);
        q[7] = (unsigned char)(q[7] + (added > 0));
        end += added;
    }
    return end;
}

static void *serve(void *arg)
{
    unsigned char q[1024];
    struct sockaddr_in from;
    (void)arg;
    for (;;) {
        socklen_t size = sizeof(from);
        ssize_t n = recvfrom(dns.fd, q, 512, 0, (struct sockaddr *)&from, &size);
        size_t out = n > 16 ? answer(q, (size_t)n, sizeof(q)) : 0;
        if (out > 0)
            sendto(dns.fd, q, out, 0, (struct sockaddr *)&from, size);
    }
    return NULL;
}

void net_dns_start(const struct net_name *names, size_t count)
{
    struct sockaddr_in sa = {
        .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    pthread_t thread = 0;
    dns.names = names;
    dns.count = count;
    dns.asked = calloc(count * 2, sizeof(*dns.asked));
    dns.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (dns.asked == NULL || dns.fd < 0 || bind(dns.fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 ||
        pthread_create(&thread, NULL, serve, NULL) != 0)
        die("dns");
    pthread_detach(thread);
}
