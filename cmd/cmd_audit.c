#include "core/audit/audit.h"
#include "core/audit/sandbox.h"
#include "core/audit/url.h"
#include "cmd/cmd.h"
#include "core/text/json_out.h"
#include "cmd/report_print.h"
#include "store/store.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { AUDIT_GOOD = 0, AUDIT_NOT_GOOD = 1, AUDIT_FAILED = 2 };

#define WAIT_MS 200

/* One page of the command line and its result. */
struct grade {
    const char *given;
    struct buf url, host; /* normalised, zero-terminated; empty: not a URL that can be graded */
    const char *verdict;  /* NULL: not graded */
    int score;
};

struct grading {
    const struct conf *conf;
    bool json;
    struct report_look look;
    struct grade *grades; /* by id */
    size_t done, total;
    int status; /* the worst so far */
};

static const char *const verdicts[] = {
    [RESULT_GOOD] = "good", [RESULT_DECENT] = "decent", [RESULT_BAD] = "bad"};

static const char *url_of(const struct grade *grade)
{
    return grade->url.n > 0 ? grade->url.p : grade->given;
}

static void add_text(struct buf *out, const char *member, const char *text)
{
    buf_adds(out, member);
    json_text(out, str_of(text));
}

static void add_number(struct buf *out, const char *member, uint64_t number)
{
    buf_adds(out, member);
    buf_u64(out, number);
}

static void add_grade(struct buf *out, const struct report_print *report,
                      const struct audit_findings *findings)
{
    add_number(out, ",\"status\":\"done\",\"score\":", (uint64_t)report->score);
    add_text(out, ",\"result\":", report->verdict);
    add_number(out, ",\"issues\":{\"high\":", findings->issues.high);
    add_number(out, ",\"medium\":", findings->issues.medium);
    add_number(out, ",\"low\":", findings->issues.low);
    add_number(out, ",\"passed\":", findings->issues.passed);
    buf_adds(out, "},\"results\":");
    buf_str(out, findings->results);
    buf_adds(out, ",\"error\":null,\"generated_at\":");
    json_time(out, (int64_t)time(NULL) * 1000);
}

/* The API's record of a report without the members that need a server, such as id and link. */
static void print_json(const struct grade *grade, const struct report_print *report,
                       const struct audit_findings *findings)
{
    struct buf out = {0};
    add_text(&out, "{\"url\":", report->url);
    add_text(&out, ",\"project\":", grade->host.n > 0 ? grade->host.p : NULL);
    if (report->verdict != NULL) {
        add_grade(&out, report, findings);
    } else {
        buf_adds(&out, ",\"status\":\"failed\",\"score\":null,\"result\":null,\"issues\":null,"
                       "\"results\":null");
        add_text(&out, ",\"error\":{\"code\":", report->error_code);
        add_text(&out, ",\"message\":", report->error_message);
        buf_adds(&out, "},\"generated_at\":null");
    }
    add_text(&out, ",\"final_url\":", report->final_url);
    buf_adds(&out, "}\n");
    cmd_print_json(&out);
    buf_free(&out);
}

static void finish(struct grading *grading, struct grade *grade, const struct report_print *report,
                   const struct audit_findings *findings)
{
    int status = report->verdict == NULL                    ? AUDIT_FAILED
                 : report->verdict == verdicts[RESULT_GOOD] ? AUDIT_GOOD
                                                            : AUDIT_NOT_GOOD;
    if (status > grading->status)
        grading->status = status;
    grade->verdict = report->verdict;
    grade->score = report->score;
    grading->done++;
    cmd_progress_end();
    if (grading->json)
        print_json(grade, report, findings);
    else
        report_print(stdout, &grading->look, report);
    fflush(stdout);
}

static void graded(void *arg, const struct audit_findings *findings)
{
    struct grading *grading = arg;
    struct grade *grade = &grading->grades[findings->id];
    struct report_print report = {.url = url_of(grade),
                                  .final_url = findings->final_url,
                                  .score = findings->score,
                                  .error_code = findings->error_code,
                                  .error_message = findings->error_message};
    struct json *results = NULL;
    if (findings->error_code == NULL) {
        report.results = results = json_read(findings->results);
        report.verdict = verdicts[audit_result(findings->score, grading->conf)];
    }
    finish(grading, grade, &report, findings);
    json_free(results);
}

/* Queue a page, or report why it cannot be graded. A URL without a scheme gets https. */
static void add(struct audit *audit, struct grading *grading, size_t id)
{
    struct grade *grade = &grading->grades[id];
    const char *why = NULL;
    struct buf text = {.p = NULL};
    buf_printf(&text, "%s%s", strstr(grade->given, "://") == NULL ? "https://" : "", grade->given);
    if (audit_url_normalise(buf_view(&text), grading->conf, &grade->url, &grade->host, &why)) {
        struct str url = buf_view(&grade->url);
        buf_add(&grade->url, "", 1);
        buf_add(&grade->host, "", 1);
        url.p = grade->url.p;
        audit_add(audit, id, url, graded, grading);
    } else {
        buf_reset(&grade->url);
        buf_reset(&grade->host);
        struct report_print report = {
            .url = grade->given, .error_code = "validation_failed", .error_message = why};
        finish(grading, grade, &report, NULL);
    }
    buf_free(&text);
}

/* A line for each page, in the order given. */
static void print_summary(const struct grading *grading)
{
    printf("  %zu pages\n\n", grading->total);
    for (size_t i = 0; i < grading->total; i++) {
        const struct grade *grade = &grading->grades[i];
        struct report_print report = {
            .url = url_of(grade), .verdict = grade->verdict, .score = grade->score};
        report_print_line(stdout, &grading->look, &report);
    }
    fputc('\n', stdout);
}

static struct grade *grades_new(const struct cmd *cmd)
{
    struct grade *grades = calloc(cmd->words_count, sizeof(*grades));
    for (size_t i = 0; grades != NULL && i < cmd->words_count; i++)
        grades[i].given = cmd->words[i];
    return grades;
}

static void grades_free(struct grade *grades, size_t count)
{
    for (size_t i = 0; grades != NULL && i < count; i++) {
        buf_free(&grades[i].url);
        buf_free(&grades[i].host);
    }
    free(grades);
}

/* The leak check of a sanitizer at exit does not work within the sandbox, so exit at once. */
static int exit_sandboxed(int status)
{
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANDBOX_BARS_EXIT
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SANDBOX_BARS_EXIT
#endif
#ifdef SANDBOX_BARS_EXIT
    fflush(NULL);
    _exit(status);
#endif
    return status;
}

int cmd_audit(struct cmd *cmd)
{
    struct grading grading = {.conf = cmd->conf,
                              .json = cmd->json,
                              .look = report_look_of(stdout),
                              .grades = grades_new(cmd),
                              .total = cmd->words_count};
    const char *why = NULL;
    struct audit *audit = audit_new(cmd->conf);
    if (audit == NULL || grading.grades == NULL || audit_sandbox(cmd->conf, &why) != 0) {
        cmd_refuse("cannot start grading: %s",
                   why == NULL ? "libcurl cannot be initialised, or out of memory" : why);
        audit_free(audit);
        grades_free(grading.grades, grading.total);
        return AUDIT_FAILED;
    }
    for (size_t i = 0; i < cmd->words_count; i++)
        add(audit, &grading, i);
    while (audit_pending(audit) > 0) {
        cmd_progress("Grading", grading.done, grading.total);
        if (audit_wait(audit, NULL, 0, WAIT_MS) == 0)
            continue;
        cmd_refuse("libcurl failed");
        grading.status = AUDIT_FAILED;
        break;
    }
    cmd_progress_end();
    if (!cmd->json && grading.total > 1)
        print_summary(&grading);
    audit_free(audit);
    grades_free(grading.grades, grading.total);
    return exit_sandboxed(grading.status);
}
