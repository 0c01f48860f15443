/*
 * Hostile and good pages at once, in a sandboxed process like an auditor. Each hostile page ends
 * with a report or a failure. The good pages are graded while endless pages are still open. Memory
 * and CPU time stay within bounds. Wall time only bounds waiting, because the machine may have
 * other work.
 */
#include "core/audit/audit.h"
#include "core/audit/sandbox.h"
#include "t/kit/audit_origin.h"
#include "t/kit/suite.h"
#include "core/base/sanitizer.h"
#include "core/shm/scoreboard.h"

#include <check.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define MIB (1024 * 1024)
#define LARGE (SANITIZED ? MIB / 2 : 4 * MIB) /* sanitizers take many times longer */
/* more than every page needs except the endless ones */
#define LONG_MS 60000
#define SHORT_MS 2000
#define LATE_MS 20000
#define GOOD 20
/* per page, on average; most take a tenth */
#define MOST_CPU_MS (500 * (SANITIZED ? 4 : 1))
/* the pages of a round, several copies of each, and the parser's data */
#define MOST_RSS_KIB (256 * 1024)

static struct cidr loopback;
static struct conf conf;
static struct origin *origin;

/* ---- pages ---- */

static bool repeat(struct origin_answer *a, const char *piece, size_t bytes)
{
    char many[65536];
    size_t n = strlen(piece), filled = 0;
    while (filled + n <= sizeof(many)) {
        memcpy(many + filled, piece, n);
        filled += n;
    }
    for (size_t sent = 0; sent < bytes; sent += filled)
        if (!origin_send(a, many, filled))
            return false;
    return true;
}

static void numbered(struct origin_answer *a, const char *format, unsigned count)
{
    char many[65536];
    size_t n = 0;
    for (unsigned i = 0; i < count; i++) {
        n += (size_t)snprintf(many + n, sizeof(many) - n, format, i);
        if (n < sizeof(many) - 256 && i + 1 < count)
            continue;
        if (!origin_send(a, many, n))
            return;
        n = 0;
    }
}

static void drip(struct origin_answer *a)
{
    while (origin_puts(a, "<p>"))
        poll(NULL, 0, 20);
}

static void nested_json(struct origin_answer *a)
{
    origin_puts(a, "<script type=application/ld+json>");
    repeat(a, "[", 200000);
    origin_puts(a, "</script>");
}

static void large_tag(struct origin_answer *a)
{
    origin_puts(a, "<p ");
    numbered(a, "attribute%u=value ", 30000);
    origin_puts(a, ">");
}

static void many_attributes(struct origin_answer *a)
{
    for (unsigned i = 0; i < 10000; i++)
        if (!origin_puts(a, "<i a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 i=9 j=0 k=1 l=2 m=3 n=4 o=5 p=6 "
                            "q=7 r=8 s=9 t=0 a1 b1 c1 d1 e1 f1 g1 h1 i1 j1 "
                            "k1 l1 m1 n1 o1 p1 q1 r1 s1 t1 a2 b2 c2 d2 e2 f2 g2 h2 i2 j2 k2 l2 m2 "
                            "n2 o2 p2 q2 r2 s2 t2 a3 b3 c3 d3 e3 f3 g3 h3 "
                            "i3 j3 k3 l3 m3 n3 o3 p3 q3 r3 s3 t3 a4 b4 c4 d4 e4 f4 g4 h4 i4 j4 k4 "
                            "l4 m4 n4 o4 p4 q4 r4 s4 t4>"))
            return;
}

static void header_lines(struct origin_answer *a)
{
    numbered(a, "X-%u: y\r\n", 1000);
    numbered(a, "Set-Cookie: c%u=x\r\n", 2000);
    origin_puts(a, "\r\n<p>x");
}

#define STATUS "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
#define CHUNKS STATUS "Transfer-Encoding: chunked\r\n\r\n"
#define WITHOUT_END ((size_t)1 << 40)

/*
 * Columns: path; repeated text or NULL; how many bytes of it; rest of the page; codes it can end
 * with ("": graded); start of the page if it is not an HTML head.
 */
static const struct {
    const char *name, *piece;
    size_t bytes;
    void (*make)(struct origin_answer *a);
    const char *ends, *begins;
} hostile[] = {
    {"nested-b", "<b>", 100 * 1024, NULL, "|too_complex|", NULL},
    {"nested-div", "<div>", 100 * 1024, NULL, "|too_complex|", NULL},
    {"nested-div-large", "<div>", LARGE, NULL, "|too_complex|", NULL},
    {"nested-table", "<table><tr><td>", MIB, NULL, "|too_complex|", NULL},
    {"nested-svg", "<svg><g><title>", MIB, NULL, "|too_complex|", NULL},
    {"nested-a", "<a href=x><p>", MIB, NULL, "|too_complex|", NULL},
    {"misnested", "<b><i></b></i>", LARGE, NULL, "|too_complex|", NULL},
    {"one-tag", NULL, 0, large_tag, "|too_complex|", NULL},
    {"million-attributes", NULL, 0, many_attributes, "|too_complex|", NULL},
    {"open-quote", "<p title=\"x ", LARGE, NULL, "|too_complex|", NULL},
    {"less-than", "<", LARGE, NULL, "|too_complex|", NULL},
    {"nul", "\x01\x02\xFF\xFE", LARGE, NULL, "|too_complex|not_html|", NULL},
    {"comments", "<!--", LARGE, NULL, "|too_complex|", NULL},
    {"comments-closed", "<!-- -- -->", LARGE, NULL, "|too_complex|", NULL},
    {"cdata", "<![CDATA[", LARGE, NULL, "|too_complex|", NULL},
    {"entities", "&amp;", LARGE, NULL, "|too_complex|", NULL},
    {"entities-odd", "&#x0;&#1114112;&nosuch;&", LARGE, NULL, "|too_complex|", NULL},
    {"instructions", "<?php ?>", LARGE, NULL, "|too_complex|", NULL},
    {"links", "<a href=/a/b?c target=_blank>here</a>", LARGE, NULL, "|too_complex|", NULL},
    {"headings", "<h1>x</h1>", LARGE, NULL, "|too_complex|", NULL},
    {"words", "word ", LARGE, NULL, "|too_complex|", NULL},
    {"one-word", "word", LARGE, NULL, "|too_complex|", NULL},
    {"e-mails", "a@b.example,", LARGE, NULL, "|too_complex|", NULL},
    {"metas", "<meta name=robots content=noindex>", LARGE, NULL, "|too_complex|", NULL},
    {"images", "<img src=x.png srcset='a 1x, b 2x'>", LARGE, NULL, "|too_complex|", NULL},
    {"json", NULL, 0, nested_json, "|too_complex|", NULL},
    {"endless", "<p>endless", WITHOUT_END, NULL, "too_large|", NULL},
    {"early-hints", "HTTP/1.1 103 Early Hints\r\n\r\n", WITHOUT_END, NULL, "too_large|", ""},
    {"header-lines", NULL, 0, header_lines, "|", STATUS},
    {"chunk-extension", "x", WITHOUT_END, NULL, "too_large|", CHUNKS "1;"},
    {"chunks-of-one", "1;xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\nx\r\n", WITHOUT_END, NULL, "too_large|",
     CHUNKS},
    {"trailers", "X: y\r\n", WITHOUT_END, NULL, "too_large|", CHUNKS "1\r\nx\r\n0\r\n"},
    /* endless pages: keep them last */
    {"drip", NULL, 0, drip, "timeout|", NULL},
    {"silent", NULL, 0, origin_hold, "timeout|", NULL},
};
#define ENDLESS 2
/* A prime. Pages are added in steps of it, which mixes good pages with hostile ones. */
#define MIX 7
_Static_assert((COUNT(hostile) + GOOD) % MIX != 0, "each is added once");

#define HTML "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
#define BEGIN "<!DOCTYPE html><html lang=en><title>A page</title><body>"

/*
 * The start of an endless zstd page with the largest window that its decoder accepts (RFC 8878,
 * 3.1.1.1.2).
 */
static void window(struct origin_answer *a)
{
    static const unsigned char frame[] = {0x28,   0xB5, 0x2F, 0xFD, 0,   17 << 3,
                                          3 << 3, 0,    0,    '<',  'p', '>'};
    origin_puts(a, STATUS "Content-Encoding: zstd\r\n\r\n");
    origin_send(a, frame, sizeof(frame));
    origin_hold(a);
}

/*
 * HTTP/2 SETTINGS, then meaningless PRIORITY frames (RFC 9113, 6.3) for as long as the client
 * reads.
 */
static void flood(struct origin_answer *a)
{
    static const unsigned char settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0},
                               priority[] = {0, 0, 5, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0, 16};
    char many[1024 * sizeof(priority)];
    for (size_t at = 0; at < sizeof(many); at += sizeof(priority))
        memcpy(many + at, priority, sizeof(priority));
    for (bool there = origin_send(a, settings, sizeof(settings)); there;)
        there = origin_send(a, many, sizeof(many));
}

static void answer(struct origin_answer *a, const char *path)
{
    if (strcmp(path, "*") == 0) {
        flood(a);
        return;
    }
    if (strcmp(path, "/window") == 0)
        window(a);

    for (size_t i = 0; i < COUNT(hostile); i++) {
        if (strcmp(path + 1, hostile[i].name) != 0)
            continue;
        if (hostile[i].make != origin_hold)
            origin_puts(a, hostile[i].begins == NULL ? HTML BEGIN : hostile[i].begins);
        if (hostile[i].piece != NULL)
            repeat(a, hostile[i].piece, hostile[i].bytes);
        else
            hostile[i].make(a);
        return;
    }
    if (strcmp(path, "/headers") == 0) {
        origin_puts(a, "HTTP/1.1 200 OK\r\n");
        repeat(a, "X-Header: and on and on and on and on and on and on and on and on and on\r\n",
               10 * MIB);
    } else if (strcmp(path, "/good") == 0) {
        origin_page(a, "Content-Type: text/html\r\n", BEGIN "<h1>Good</h1><p>Text.");
    } else {
        origin_puts(a, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    }
}

/* ---- the grading process ---- */

static struct {
    unsigned good, hostile, mistakes;
    uint64_t began_ms;
} seen;

static void keep(void *arg, const struct audit_findings *f)
{
    const char *code = f->error_code == NULL ? "" : f->error_code;
    size_t i = (size_t)f->id;
    char ending[64];
    (void)arg;
    if (i >= COUNT(hostile)) {
        seen.good++;
        seen.mistakes += code[0] != '\0';
        return;
    }
    seen.hostile++;
    snprintf(ending, sizeof(ending), "%s|", code);
    bool as_expected =
        code[0] == '\0' ? hostile[i].ends[0] == '|' : strstr(hostile[i].ends, ending) != NULL;
    if (!as_expected)
        fprintf(stderr, "%s ended with \"%s\" after %llu ms\n", hostile[i].name, code,
                (unsigned long long)(clock_mono_ms() - seen.began_ms));
    seen.mistakes += !as_expected;
}

static uint64_t cpu_ms(const struct rusage *used)
{
    return (uint64_t)(used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000 +
           (uint64_t)(used->ru_utime.tv_usec + used->ru_stime.tv_usec) / 1000;
}

/* How a grading process ends. */
enum { FINE, MISTAKES, MEMORY, NOT_LOCKED_IN, BROKEN, BUSY, LATE };

static struct audit *lock_in(void)
{
    const char *why = "no engine";
    struct audit *audit = audit_new(&conf);
    if (audit == NULL || audit_sandbox(&conf, &why) != 0) {
        fprintf(stderr, "not sandboxed: %s\n", why);
        _exit(NOT_LOCKED_IN);
    }
    seen.began_ms = clock_mono_ms();
    return audit;
}

static void add(struct audit *audit, size_t i)
{
    char url[128];
    bool good = i >= COUNT(hostile);
    snprintf(url, sizeof(url), "http://%s-%zu.localhost:%u/%s", good ? "good" : "hostile", i,
             origin_port(origin), good ? "good" : hostile[i].name);
    audit_add(audit, i, str_of(url), keep, NULL);
}

static void wait_until_pending(struct audit *audit, size_t pending)
{
    while (audit_pending(audit) > pending)
        if (audit_wait(audit, NULL, 0, 1000) != 0)
            _exit(BROKEN);
}

/* Every page. Returns when only the endless ones are left. */
static int grade_all(void)
{
    struct rusage used = {.ru_maxrss = 0};
    struct audit *audit = lock_in();
    for (size_t k = 0; k < COUNT(hostile) + GOOD; k++)
        add(audit, (k * MIX) % (COUNT(hostile) + GOOD));
    wait_until_pending(audit, ENDLESS);
    getrusage(RUSAGE_SELF, &used);
    fprintf(stderr,
            "%u hostile and %u good pages in %llu ms, %llu ms of CPU; at most %ld KiB "
            "resident\n",
            seen.hostile, seen.good, (unsigned long long)(clock_mono_ms() - seen.began_ms),
            (unsigned long long)cpu_ms(&used), used.ru_maxrss);
    audit_free(audit);
    if (seen.mistakes > 0 || seen.hostile != COUNT(hostile) - ENDLESS || seen.good != GOOD)
        return MISTAKES;
    if (cpu_ms(&used) > MOST_CPU_MS * COUNT(hostile))
        return BUSY;
    return !SANITIZED && used.ru_maxrss > MOST_RSS_KIB ? MEMORY : FINE;
}

static int grade_endless(void)
{
    struct audit *audit = lock_in();
    for (size_t i = COUNT(hostile) - ENDLESS; i < COUNT(hostile); i++)
        add(audit, i);
    wait_until_pending(audit, 0);
    uint64_t took = clock_mono_ms() - seen.began_ms;
    audit_free(audit);
    if (seen.mistakes > 0 || seen.hostile != ENDLESS)
        return MISTAKES;
    return took < SHORT_MS || took > LATE_MS ? LATE : FINE;
}

#define WINDOWS 30

static void keep_window(void *arg, const struct audit_findings *f)
{
    (void)arg;
    bool as_expected =
        strcmp(f->error_code == NULL ? "" : f->error_code, f->id < WINDOWS ? "timeout" : "") == 0;
    if (!as_expected)
        fprintf(stderr, "%s ended with %s\n", f->id < WINDOWS ? "a window" : "the good page",
                f->error_code == NULL ? "a report" : f->error_code);
    seen.mistakes += !as_expected;
}

static int grade_windows(void)
{
    char url[128];
    struct audit *audit = lock_in();
    for (unsigned i = 0; i <= WINDOWS; i++) {
        snprintf(url, sizeof(url), "http://h%u.localhost:%u/%s", i, origin_port(origin),
                 i < WINDOWS ? "window" : "words");
        audit_add(audit, i, str_of(url), keep_window, NULL);
    }
    wait_until_pending(audit, 0);
    audit_free(audit);
    return seen.mistakes > 0 ? MISTAKES : FINE;
}

/* two connections, the second one without certificate verification */
#define FLOODED_CPU_MS (8000 * (SANITIZED ? 4 : 1))

static void keep_flood(void *arg, const struct audit_findings *f)
{
    (void)arg;
    seen.mistakes += f->error_code == NULL || strcmp(f->error_code, "too_large") != 0;
}

/*
 * From here on everything runs on one processor, so that the flood arrives as fast as the reader
 * can read.
 */
static void share_a_processor(void)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &all))
            CPU_SET(i, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

static int grade_flood(void)
{
    struct rusage used;
    char url[128];
    if (nice(10) == -1)
        return BROKEN;
    struct audit *audit = lock_in();
    snprintf(url, sizeof(url), "https://flood.localhost:%u/", origin_port(origin));
    audit_add(audit, 0, str_of(url), keep_flood, NULL);
    wait_until_pending(audit, 0);
    getrusage(RUSAGE_SELF, &used);
    fprintf(stderr, "a flood of frames took %llu ms of CPU\n", (unsigned long long)cpu_ms(&used));
    audit_free(audit);
    return seen.mistakes > 0 ? MISTAKES : cpu_ms(&used) > FLOODED_CPU_MS ? BUSY : FINE;
}

static void grade_locked_in(int (*grade)(void), unsigned timeout_ms, bool h2)
{
    signal(SIGPIPE, SIG_IGN);
    ck_assert(cidr_parse("127.0.0.0/8", &loopback));
    origin = origin_open(answer, h2);
    if (h2) {
        origin_claim_h2(origin);
        share_a_processor();
    }
    conf = (struct conf){
        .audit_allow_private = {&loopback, 1},
        .audit_ports = {origin_port(origin)},
        .audit_ports_count = 1,
        .audit_concurrency = 32,
        .audit_timeout_ms = timeout_ms,
        .audit_max_bytes = 5 * MIB,
        .audit_max_redirects = 5,
    };
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        _exit(grade());
    origin_start(origin);
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    origin_close(origin);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == FINE, "%s %d",
                  WIFEXITED(status) ? "errors above (1), too much memory (2), not sandboxed (3), "
                                      "libcurl failed (4), too much of the "
                                      "processor's time (5), not ended in time (6):"
                                    : "ended by signal",
                  WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

START_TEST(hostile_pages_are_bounded_and_do_not_block_good_ones)
{
    grade_locked_in(grade_all, LONG_MS, false);
}
END_TEST

START_TEST(endless_pages_end_at_their_deadline)
{
    grade_locked_in(grade_endless, SHORT_MS, false);
}
END_TEST

START_TEST(reserved_memory_is_not_taken_from_other_pages)
{
    grade_locked_in(grade_windows, SHORT_MS, false);
}
END_TEST

START_TEST(meaningless_frames_are_bounded)
{
    grade_locked_in(grade_flood, LONG_MS, true);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("audit_hostile");
    TCase *t = tcase_create("hostile");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, hostile_pages_are_bounded_and_do_not_block_good_ones);
    tcase_add_test(t, meaningless_frames_are_bounded);
    tcase_add_test(t, reserved_memory_is_not_taken_from_other_pages);
    tcase_add_test(t, endless_pages_end_at_their_deadline);
    suite_add_tcase(s, t);
    return suite_run(s);
}
