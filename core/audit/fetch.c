#include "config.h"

#include "core/audit/clock_internal.h"
#include "core/audit/fetch_state_internal.h"
#include "core/audit/watchdog_internal.h"
#include "core/audit/text.h"

#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <unistd.h>

#define HEAD_MAX_BYTES ((size_t)64 * 1024)
#define CONNECT_TIMEOUT_MS 5000L
#define LOW_SPEED_BYTES 32L /* per second, over LOW_SPEED_SECONDS */
#define LOW_SPEED_SECONDS 10L
#define RECEIVED_POLL_MS 100
/* allowance for TLS, HTTP/2 or chunk framing and for kernel buffers */
#define FRAMING_BYTES ((uint64_t)16 * 1024 * 1024)
#define USER_AGENT "Mozilla/5.0 (compatible; Assay/" PACKAGE_VERSION "; +%s)"
#define HOME_PAGE "https://assay.example/bot" /* if base_url is not configured */

static curl_socket_t open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct fetch *f = arg;
    (void)purpose;
    if (!guard_connect(f->guard, &address->addr, f->private_host, monotonic_ms())) {
        f->refused_by_guard = true;
        return CURL_SOCKET_BAD;
    }
    f->socket = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    f->opened[f->sockets++ % FETCH_SOCKETS_KEPT] = f->socket;
    watchdog_add(f->socket, &f->cut);
    return f->socket;
}

/* libcurl reports a connection only after the TLS handshake. */
static void check_connected(struct fetch *f)
{
    struct sockaddr_storage peer;
    socklen_t n = sizeof(peer);
    if (!f->connected && f->socket >= 0)
        f->connected = getpeername(f->socket, (struct sockaddr *)&peer, &n) == 0;
}

static bool is_html(struct str type)
{
    struct str essence, parameters;
    text_split(type, ';', &essence, &parameters);
    essence = text_trim(essence);
    return text_eq(essence, "text/html") || text_eq(essence, "application/xhtml+xml");
}

/* The response is the page itself: no redirect and no error. */
static bool is_page(const struct fetch *f)
{
    return f->status < 400 && fetch_location(f).n == 0;
}

static void head_complete(struct fetch *f)
{
    if (f->status < 200)
        return; /* an interim response */
    f->head_done = true;
    f->done_early =
        f->request.body == FETCH_BODY_NONE || (f->request.body == FETCH_BODY_HTML && !is_page(f));
    if (f->request.body != FETCH_BODY_HTML || f->done_early)
        return;
    struct str type = fetch_header(f, "content-type");
    f->not_html = type.n > 0 && !is_html(type);
    if (!f->not_html && f->request.head != NULL)
        f->request.head(f->request.head_arg);
}

static size_t on_header(char *p, size_t size, size_t count, void *arg)
{
    struct fetch *f = arg;
    size_t n = size * count;
    struct str line = {p, n};
    f->head_bytes += n;
    if (f->head_bytes > HEAD_MAX_BYTES) {
        f->too_large = true;
        return 0;
    }
    if (f->body_begun)
        return n; /* trailers are ignored */
    if (text_starts(line, "HTTP/")) {
        buf_reset(&f->head);
        f->status = 0;
        struct str version, rest;
        unsigned long status;
        if (text_split(line, ' ', &version, &rest) && text_number(rest, &status))
            f->status = (long)status;
        return n;
    }
    if (text_trim(line).n == 0) {
        head_complete(f);
        return f->not_html || f->done_early ? 0 : n;
    }
    buf_add(&f->head, p, n);
    return buf_ok(&f->head) ? n : 0;
}

/* A response without Content-Type is HTML if it begins like markup. */
static bool begins_like_html(struct str body)
{
    if (text_starts(body, "\xEF\xBB\xBF"))
        body = text_from(body, 3);
    body = text_trim(body);
    return body.n == 0 || body.p[0] == '<';
}

static size_t on_body(char *p, size_t size, size_t count, void *arg)
{
    struct fetch *f = arg;
    size_t n = size * count;
    bool first = !f->body_begun;
    f->body_begun = true;
    f->decoded_bytes += n;
    if (f->request.body == FETCH_BODY_HTML && first && fetch_header(f, "content-type").n == 0 &&
        !begins_like_html((struct str){p, n})) {
        f->not_html = true;
        return 0;
    }
    uint64_t left = f->request.max_body - f->body.n;
    if (n > left) {
        f->too_large = f->request.body == FETCH_BODY_HTML;
        f->done_early = !f->too_large;
        if (f->done_early)
            buf_add(&f->body, p, (size_t)left);
        return 0;
    }
    buf_add(&f->body, p, n);
    return buf_ok(&f->body) ? n : 0;
}

static unsigned local_port(int socket)
{
    struct sockaddr_storage own = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof(own);
    if (getsockname(socket, (struct sockaddr *)&own, &n) != 0)
        return 0;
    return ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
                                           : ((struct sockaddr_in *)&own)->sin_port);
}

/*
 * Bytes that the kernel received for this transfer, framing included; 0: unknown. libcurl keeps one
 * of the opened sockets; its local port identifies it, since the descriptors of the others may have
 * been reused.
 */
static uint64_t received_bytes(const struct fetch *f)
{
    long port = 0;
    struct tcp_info info = {0};
    socklen_t n = sizeof(info);
    if (curl_easy_getinfo(f->easy, CURLINFO_LOCAL_PORT, &port) != CURLE_OK || port <= 0)
        return 0;
    for (unsigned i = 0; i < f->sockets && i < FETCH_SOCKETS_KEPT; i++)
        if (local_port(f->opened[i]) == (unsigned)port &&
            getsockopt(f->opened[i], IPPROTO_TCP, TCP_INFO, &info, &n) == 0)
            return info.tcpi_bytes_received;
    return 0;
}

/* libcurl reads and discards chunk extensions and the like, and would go on until the timeout. */
static bool is_all_framing(struct fetch *f)
{
    int64_t now = monotonic_ms();
    if (now - f->received_at_ms < RECEIVED_POLL_MS)
        return false;
    bool first = f->received_at_ms == 0;
    f->received_at_ms = now;
    return !first && received_bytes(f) > 2 * f->request.max_body + HEAD_MAX_BYTES + FRAMING_BYTES;
}

/* on_body does not see data that decodes to nothing. */
static int on_progress(void *arg, curl_off_t total, curl_off_t received, curl_off_t to_send,
                       curl_off_t sent)
{
    struct fetch *f = arg;
    (void)total, (void)to_send, (void)sent;
    watchdog_progress();
    check_connected(f);
    if (f->done_early || f->not_html ||
        ((uint64_t)received <= f->request.max_body && !is_all_framing(f)))
        return 0;
    f->too_large = f->request.body == FETCH_BODY_HTML;
    f->done_early = !f->too_large;
    return 1;
}

static bool set_options(struct fetch *f)
{
    CURL *e = f->easy;
    bool ok = true;
    char user_agent[512];
    bool ours = f->conf->base_url != NULL && f->conf->base_url[0] != '\0';
    snprintf(user_agent, sizeof(user_agent), USER_AGENT, ours ? f->conf->base_url : HOME_PAGE);
#define SET(option, value) (ok = curl_easy_setopt(e, option, value) == CURLE_OK && ok)
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_PROXY, "");
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_QUICK_EXIT, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L);
    SET(CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
    SET(CURLOPT_ACCEPT_ENCODING, "");
    SET(CURLOPT_USERAGENT, user_agent);
    SET(CURLOPT_COOKIEFILE, "");
    SET(CURLOPT_HTTPHEADER, f->request_headers);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
    SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    SET(CURLOPT_LOW_SPEED_LIMIT, LOW_SPEED_BYTES);
    SET(CURLOPT_LOW_SPEED_TIME, LOW_SPEED_SECONDS);
    SET(CURLOPT_CERTINFO, 1L);
    /*
     * A new connection per request: an idle one would hold a slot of its host, and load times shall
     * be those of a first visit.
     */
    SET(CURLOPT_FRESH_CONNECT, 1L);
    SET(CURLOPT_FORBID_REUSE, 1L);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, f);
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(CURLOPT_OPENSOCKETDATA, f);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, f);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, f);
#undef SET
    return ok;
}

struct fetch *fetch_new(const struct conf *conf, struct guard *guard)
{
    struct fetch *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return NULL;
    f->conf = conf;
    f->guard = guard;
    f->easy = curl_easy_init();
    f->request_headers =
        curl_slist_append(NULL, "Accept: text/html,application/xhtml+xml;q=0.9,*/*;q=0.8");
    if (f->easy == NULL || f->request_headers == NULL || !set_options(f)) {
        fetch_free(f);
        return NULL;
    }
    return f;
}

void fetch_free(struct fetch *f)
{
    if (f == NULL)
        return;
    watchdog_remove(&f->cut);
    curl_easy_cleanup(f->easy);
    curl_slist_free_all(f->request_headers);
    buf_free(&f->head);
    buf_free(&f->body);
    free(f);
}

bool fetch_start(struct fetch *f, CURLM *multi, const struct fetch_request *request)
{
    CURL *e = f->easy;
    bool ok = true;
    f->request = *request;
    f->private_host = request->url->private_host;
    buf_reset(&f->head);
    buf_reset(&f->body);
    f->decoded_bytes = 0;
    f->head_bytes = 0;
    f->status = 0;
    f->sockets = 0;
    f->socket = -1;
    f->connected = false;
    f->received_at_ms = 0;
    f->head_done = f->body_begun = f->done_early = f->refused_by_guard = f->too_large =
        f->not_html = f->cut = false;
    f->verified = request->verify;
    f->reason[0] = '\0';
#define SET(option, value) (ok = curl_easy_setopt(e, option, value) == CURLE_OK && ok)
    SET(CURLOPT_URL, request->url->text);
    SET(CURLOPT_PRIVATE, request->owner);
    SET(CURLOPT_TIMEOUT_MS, (long)request->timeout_ms);
    SET(CURLOPT_SSL_VERIFYPEER, request->verify ? 1L : 0L);
    SET(CURLOPT_SSL_VERIFYHOST, request->verify ? 2L : 0L);
#undef SET
    f->running = ok && curl_multi_add_handle(multi, e) == CURLM_OK;
    return f->running;
}

void fetch_cancel(struct fetch *f, CURLM *multi)
{
    if (f != NULL && f->running)
        curl_multi_remove_handle(multi, f->easy);
    if (f != NULL) {
        f->running = false;
        watchdog_remove(&f->cut);
    }
}

bool fetch_is_resolving(const struct fetch *f)
{
    return f != NULL && f->running && f->sockets == 0 && !f->refused_by_guard;
}

static void find_reason(struct fetch *f)
{
    long result = 0;
    curl_easy_getinfo(f->easy, CURLINFO_SSL_VERIFYRESULT, &result);
    /*
     * libcurl checks the host name after the chain, and stores OpenSSL's result for the chain only
     * then
     */
    bool chain_good = result == X509_V_OK || result == X509_V_ERR_UNSPECIFIED;
    snprintf(f->reason, sizeof(f->reason), "%s",
             chain_good ? "it is for another host name" : X509_verify_cert_error_string(result));
}

/* Other codes mean FETCH_BROKEN. */
static enum fetch_error error_of(CURLcode code)
{
    static const struct {
        CURLcode code;
        enum fetch_error error;
    } codes[] = {
        {CURLE_OK, FETCH_OK},
        {CURLE_COULDNT_RESOLVE_HOST, FETCH_DNS},
        {CURLE_COULDNT_CONNECT, FETCH_CONNECT},
        {CURLE_OPERATION_TIMEDOUT, FETCH_TIMEOUT},
        {CURLE_PEER_FAILED_VERIFICATION, FETCH_UNVERIFIED},
        {CURLE_SSL_ISSUER_ERROR, FETCH_UNVERIFIED},
        {CURLE_SSL_CONNECT_ERROR, FETCH_TLS},
        {CURLE_SSL_CERTPROBLEM, FETCH_TLS},
        {CURLE_SSL_CIPHER, FETCH_TLS},
        {CURLE_SSL_CACERT_BADFILE, FETCH_TLS},
        {CURLE_USE_SSL_FAILED, FETCH_TLS},
        {CURLE_SSL_INVALIDCERTSTATUS, FETCH_TLS},
        {CURLE_BAD_CONTENT_ENCODING, FETCH_CODING},
        {CURLE_OUT_OF_MEMORY, FETCH_MEMORY},
    };
    for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
        if (codes[i].code == code)
            return codes[i].error;
    return FETCH_BROKEN;
}

/* What was too slow: derived from how far the request came. */
static enum fetch_error timeout_phase(const struct fetch *f)
{
    curl_off_t looked_up = 0, connected = 0;
    curl_easy_getinfo(f->easy, CURLINFO_NAMELOOKUP_TIME_T, &looked_up);
    curl_easy_getinfo(f->easy, CURLINFO_CONNECT_TIME_T, &connected);
    if (looked_up == 0)
        return FETCH_DNS;
    if (connected == 0)
        return f->connected ? FETCH_TLS : FETCH_CONNECT;
    return FETCH_TIMEOUT;
}

static bool refused_by_peer(const struct fetch *f)
{
    long os_errno = 0;
    curl_easy_getinfo(f->easy, CURLINFO_OS_ERRNO, &os_errno);
    return os_errno == ECONNREFUSED;
}

/*
 * The body has bytes after the end of its compressed data. libcurl reports a write error; browsers
 * ignore them, and the page is complete. Errors of our own callbacks are recognized by the flags
 * they set.
 */
static bool has_trailing_bytes(const struct fetch *f, CURLcode code)
{
    return code == CURLE_WRITE_ERROR && f->head_done && fetch_header(f, "content-encoding").n > 0;
}

enum fetch_error fetch_end(struct fetch *f, CURLM *multi, CURLcode code)
{
    fetch_cancel(f, multi);
    if (f->too_large || f->cut)
        return FETCH_TOO_LARGE;
    if (f->not_html)
        return FETCH_NOT_HTML;
    if (!buf_ok(&f->body) || !buf_ok(&f->head))
        return FETCH_MEMORY;
    enum fetch_error error =
        f->done_early || has_trailing_bytes(f, code) ? FETCH_OK : error_of(code);
    if (error == FETCH_TIMEOUT)
        error = timeout_phase(f);
    if (error == FETCH_MEMORY && !f->head_done)
        return FETCH_TOO_LARGE; /* libcurl's code for a header line longer than its limit */
    if (error == FETCH_BROKEN && f->head_done)
        return FETCH_CUT;
    if (error == FETCH_CONNECT && f->refused_by_guard && f->sockets == 0)
        return FETCH_FORBIDDEN;
    if (error == FETCH_CONNECT && refused_by_peer(f))
        return FETCH_REFUSED;
    if (error == FETCH_UNVERIFIED)
        find_reason(f);
    if (error == FETCH_OK && f->request.body == FETCH_BODY_HTML && is_page(f) && f->status != 200 &&
        f->body.n == 0)
        return FETCH_NOT_HTML; /* 204 and the like */
    return error;
}

void *fetch_owner(CURL *easy)
{
    char *owner = NULL;
    curl_easy_getinfo(easy, CURLINFO_PRIVATE, &owner);
    return owner;
}
