#include "t/kit/audit_loopback.h"
#include "core/audit/checks_internal.h"
#include "core/shm/host_slots.h"
#include "core/shm/scoreboard.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

struct conf conf;
struct origin *origin;
struct audit *audit;
struct latest_findings got;

static struct cidr loopback;

static void copy(char *to, size_t size, struct str s)
{
    ck_assert_uint_lt(s.n, size);
    snprintf(to, size, "%.*s", STR_ARG(s));
}

void keep(void *arg, const struct audit_findings *f)
{
    got.calls++;
    got.failed += f->error_code != NULL;
    got.withdrawn += f->withdrawn;
    got.arg = arg;
    got.id = f->id;
    snprintf(got.code, sizeof(got.code), "%s", f->error_code == NULL ? "" : f->error_code);
    snprintf(got.message, sizeof(got.message), "%s",
             f->error_message == NULL ? "" : f->error_message);
    snprintf(got.url, sizeof(got.url), "%s", f->final_url == NULL ? "" : f->final_url);
    got.score = f->score;
    got.facts = f->facts;
    copy(got.protocol, sizeof(got.protocol), f->facts.protocol);
    copy(got.final_url, sizeof(got.final_url), f->facts.final_url);
    copy(got.version, sizeof(got.version), f->facts.version);
    copy(got.failed_checks, sizeof(got.failed_checks), f->failed);
    buf_reset(&got.results);
    buf_str(&got.results, f->results);
    buf_add(&got.results, "", 1);
}

void open_all(origin_fn *answer, bool tls)
{
    signal(SIGPIPE, SIG_IGN);
    ck_assert(cidr_parse("127.0.0.0/8", &loopback));
    origin = origin_open(answer, tls);
    conf = (struct conf){
        .audit_allow_private = {&loopback, 1},
        .reports_weight_high = 10,
        .audit_ports = {origin_port(origin), 80, 443},
        .audit_ports_count = 3,
        .audit_concurrency = 8,
        .audit_timeout_ms = 20000,
        .audit_max_bytes = 1024 * 1024,
        .audit_max_redirects = 5,
        .reports_good = 80,
        .reports_decent = 50,
    };
    origin_start(origin);
    audit = audit_new(&conf);
    ck_assert_ptr_nonnull(audit);
}

void open_with_timeout(origin_fn *answer, unsigned timeout_ms)
{
    open_all(answer, false);
    conf.audit_timeout_ms = timeout_ms;
}

void close_all(void)
{
    audit_free(audit);
    origin_close(origin);
    buf_free(&got.results);
}

void run(void)
{
    while (audit_pending(audit) > 0)
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 1000), 0);
}

void grade(const char *url)
{
    audit_add(audit, 7, str_of(url), keep, &got);
    ck_assert_uint_eq(got.calls, 0);
    run();
    ck_assert_uint_eq(got.calls, 1);
    ck_assert_uint_eq(got.id, 7);
    ck_assert_ptr_eq(got.arg, &got);
}

void grade_path(const char *path)
{
    grade(origin_url(origin, path));
}

bool is_over(void)
{
    return got.calls > 0;
}

bool go_on_until(bool (*holds)(void), uint64_t ms)
{
    uint64_t until = clock_mono_ms() + ms;
    while (!holds() && clock_mono_ms() < until)
        ck_assert_int_eq(audit_wait(audit, NULL, 0, 10), 0);
    return holds();
}

struct host_slots *shared_slots(void)
{
    struct host_slots *p =
        mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(p, MAP_FAILED);
    host_slots_init(p);
    return p;
}

void good_page(struct origin_answer *a)
{
    origin_page(a, HTML, GOOD_PAGE);
}

void not_found(struct origin_answer *a)
{
    origin_puts(a, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
}
