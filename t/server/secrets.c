/*
 * The secrets, descriptors and locks that each process of a running server holds, seen from
 * outside, with a listener that has a private key.
 */
#include "t/kit/harness.h"
#include "t/kit/tls.h"

#include <curl/curl.h>
#include <dirent.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <signal.h>
#include <sys/resource.h>

static struct server *server;
static char *tls_url;

/* A secret as it can lie in memory: its number in either byte order, and a line of its file. */
struct secret_forms {
    unsigned char big[32], little[32];
    char line[65];
};
static struct secret_forms key, signing;

static void write_certificate(const char *certificate, const char *path)
{
    EVP_PKEY *pair = tls_pair(certificate, path, false, 1);
    BIGNUM *number = NULL;
    char line[128];
    ck_assert_int_eq(EVP_PKEY_get_bn_param(pair, OSSL_PKEY_PARAM_PRIV_KEY, &number), 1);
    ck_assert_int_eq(BN_bn2binpad(number, key.big, sizeof(key.big)), sizeof(key.big));
    ck_assert_int_eq(BN_bn2lebinpad(number, key.little, sizeof(key.little)), sizeof(key.little));
    BN_free(number);
    EVP_PKEY_free(pair);
    FILE *file = fopen(path, "r");
    ck_assert(file && fgets(line, sizeof(line), file) && fgets(line, sizeof(line), file));
    memcpy(key.line, line, 64);
    ck_assert_int_eq(fclose(file), 0);
}

/* The newest key that signs visitor tokens. */
static void read_signing(void)
{
    char line[256] = "", hex[65] = "";
    FILE *file = fopen(text("%s/secrets", server->data), "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof(line), file)) /* the last one */
        ;
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(sscanf(line, "%*s %*s %64s", hex), 1);
    memcpy(signing.line, hex, 64);
    for (size_t i = 0; i < sizeof(signing.big); i++) {
        unsigned byte;
        ck_assert_int_eq(sscanf(hex + 2 * i, "%2x", &byte), 1);
        signing.big[i] = signing.little[31 - i] = (unsigned char)byte;
    }
}

static void setup(void)
{
    char line[256] = "", url[128];
    server = server_new(&(struct server_options){0});
    char *certificate = text("%s/cert.pem", server->dir), *path = text("%s/key.pem", server->dir);
    write_certificate(certificate, path);
    server_spawn(server, "--set", "listen.1.address=127.0.0.1:0", "--set",
                 text("listen.1.tls.certificate=%s", certificate), "--set",
                 text("listen.1.tls.key=%s", path), NULL);
    ck_assert_msg(server_ready(server, 15000), "%s", server_log(server));
    ck_assert_int_gt(read(server->output, line, sizeof(line) - 1), 0);
    ck_assert_int_eq(sscanf(line, "ready %100s workers=", url), 1);
    tls_url = text("%s/healthz", url);
    read_signing();
}

static void teardown(void)
{
    server_free(server);
}

static bool is_running(void *title)
{
    return server_process(server, title) > 0;
}

/* A reload replaces the writer and the auditors one after the other. */
static pid_t process(const char *title)
{
    ck_assert_msg(wait_until(is_running, (void *)title, 10000), "%s", title);
    return server_process(server, title);
}

static bool serves_tls(void *arg)
{
    CURL *curl = curl_easy_init();
    (void)arg;
    curl_easy_setopt(curl, CURLOPT_URL, tls_url);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 10000L);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_cleanup(curl);
    return code == CURLE_OK;
}

/* ---- memory ---- */

static int memory_of(pid_t pid)
{
    return open(text("/proc/%d/mem", pid), O_RDONLY | O_CLOEXEC);
}

static bool is_in(const struct secret_forms *s, const unsigned char *bytes, size_t n)
{
    return memmem(bytes, n, s->big, sizeof(s->big)) ||
           memmem(bytes, n, s->little, sizeof(s->little)) || memmem(bytes, n, s->line, 64);
}

/* Whether the secret is in the readable memory of a process; ${whole}: some memory was readable. */
static bool holds(pid_t pid, const struct secret_forms *secret, bool *whole)
{
    enum { CHUNK = 1 << 20, OVERLAP = 64 };
    unsigned char *bytes = malloc(CHUNK + OVERLAP);
    FILE *maps = fopen(text("/proc/%d/maps", pid), "r");
    int fd = memory_of(pid);
    char line[512], may[5];
    unsigned long from, to;
    size_t seen = 0;
    bool found = false;
    *whole = false;
    ck_assert(bytes != NULL);
    /* it may have just exited */
    while (maps && fd >= 0 && !found && fgets(line, sizeof(line), maps)) {
        if (sscanf(line, "%lx-%lx %4s", &from, &to, may) != 3 || may[0] != 'r' ||
            strstr(line, "[v") != NULL)
            continue;
        if (to - from > 4UL << 30) /* a sanitizer's shadow */
            continue;
        for (unsigned long at = from; !found && at < to; at += CHUNK) {
            size_t want = to - at < CHUNK + OVERLAP ? to - at : CHUNK + OVERLAP;
            ssize_t got = pread(fd, bytes, want, (off_t)at);
            seen += got > 0 ? (size_t)got : 0;
            found = got > 0 && is_in(secret, bytes, (size_t)got);
        }
    }
    free(bytes);
    if (maps)
        fclose(maps);
    if (fd >= 0)
        close(fd);
    *whole = seen > 1 << 20;
    return found;
}

/* During the check an old worker may exit and a new one start. */
static bool worker_holds(void *secret)
{
    bool whole;
    return serves_tls(NULL) && holds(process("assayd: worker 0"), secret, &whole);
}

struct look {
    const char *title;
    struct secret_forms *secret;
    bool found;
};

static bool is_read_whole(void *arg)
{
    struct look *look = arg;
    bool whole;
    look->found = holds(process(look->title), look->secret, &whole);
    return whole || look->found;
}

static const char *const others[] = {"assayd: auditor 0", "assayd: writer"};

static void expect_with_workers_only(struct secret_forms *secret)
{
    ck_assert_msg(wait_until(worker_holds, secret, 10000), "the search misses an existing secret");
    for (size_t i = 0; i < COUNT(others); i++) {
        struct look look = {others[i], secret, false};
        ck_assert_msg(wait_until(is_read_whole, &look, 10000), "%s could not be read", others[i]);
        ck_assert_msg(!look.found, "%s has it", others[i]);
    }
}

START_TEST(only_workers_hold_the_key_of_a_listener)
{
    expect_with_workers_only(&key);
}
END_TEST

/* it was created at this start, by the process that starts all others */
START_TEST(only_workers_hold_the_visitor_signing_key)
{
    expect_with_workers_only(&signing);
}
END_TEST

static pid_t first_auditor;

static bool another_auditor(void *arg)
{
    (void)arg;
    pid_t now = server_process(server, "assayd: auditor 0");
    return now > 0 && now != first_auditor && strstr(server_log(server), "reloading") != NULL;
}

START_TEST(only_workers_hold_the_keys_after_a_reload)
{
    first_auditor = process("assayd: auditor 0");
    server_signal(server, SIGHUP);
    ck_assert_msg(wait_until(another_auditor, NULL, 10000), "%s", server_log(server));
    expect_with_workers_only(&key);
    expect_with_workers_only(&signing);
}
END_TEST

/* ---- inherited descriptors and locks ---- */

START_TEST(an_auditor_inherits_no_listener_lock_or_file)
{
    char *dir = text("/proc/%d/fd", process("assayd: auditor 0")), target[256];
    DIR *fds = opendir(dir);
    ck_assert_ptr_nonnull(fds);
    unsigned sockets = 0;
    for (struct dirent *e; (e = readdir(fds)) != NULL;) {
        ssize_t n = e->d_name[0] == '.'
                        ? -1
                        : readlink(text("%s/%s", dir, e->d_name), target, sizeof(target) - 1);
        if (n < 0 || atoi(e->d_name) <= STDERR_FILENO)
            continue;
        target[n] = '\0';
        sockets += !strncmp(target, "socket:", 7);
        ck_assert_msg(target[0] != '/', "it has %s open", target);
    }
    closedir(fds);
    /*
     * the writer's, libcurl's wake-up pair, and the placeholder for a closed connection
     * (audit/watchdog.c)
     */
    ck_assert_uint_le(sockets, 4);
}
END_TEST

static const char *const lines[] = {"NoNewPrivs:\t1\n", "Seccomp:\t2\n",
                                    "CapEff:\t0000000000000000\n", "CapPrm:\t0000000000000000\n"};

START_TEST(an_auditor_is_sandboxed)
{
    char status[8192] = "";
    FILE *file = fopen(text("/proc/%d/status", process("assayd: auditor 0")), "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_gt(fread(status, 1, sizeof(status) - 1, file), 0);
    fclose(file);
    for (size_t i = 0; i < COUNT(lines); i++)
        ck_assert_msg(strstr(status, lines[i]) != NULL, "not %s in\n%s", lines[i], status);
}
END_TEST

START_TEST(grading_has_lower_priority_than_answering)
{
    int worker = getpriority(PRIO_PROCESS, (id_t)process("assayd: worker 0"));
    int auditor = getpriority(PRIO_PROCESS, (id_t)process("assayd: auditor 0"));
    ck_assert_msg(auditor > worker || worker == 19, "worker %d, auditor %d", worker, auditor);
}
END_TEST

int main(void)
{
    /* only root can read the memory of a process that is not dumpable */
    if (geteuid() != 0) {
        printf("skipped: only root can look into an auditor\n");
        return 77;
    }
    Suite *suite = suite_create("secrets");
    TCase *tcase = harness_case(suite, "secrets");
    tcase_add_unchecked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, only_workers_hold_the_key_of_a_listener);
    tcase_add_test(tcase, only_workers_hold_the_visitor_signing_key);
    tcase_add_test(tcase, an_auditor_inherits_no_listener_lock_or_file);
    tcase_add_test(tcase, an_auditor_is_sandboxed);
    tcase_add_test(tcase, grading_has_lower_priority_than_answering);
    tcase_add_test(tcase, only_workers_hold_the_keys_after_a_reload);
    return harness_main(suite);
}
