#include "audit/audit.h"
#include "cmd.h"
#include "report_print.h"
#include "../store/store.h"

#include <stdlib.h>
#include <unistd.h>

enum { AUDIT_GOOD = 0, AUDIT_NOT_GOOD = 1, AUDIT_FAILED = 2 };

#define WAIT_MS 200

struct grading {
    const struct conf *conf;
    bool json;
    struct report_look look;
    const char **urls; /* by id */
    size_t done, total;
    int status; /* the worst so far */
};

static const char *const verdicts[] = {[RESULT_GOOD] = "good", [RESULT_DECENT] = "decent", [RESULT_BAD] = "bad"};

static void print_json(const struct report_print *report, const struct audit_findings *findings)
{
    struct json_object *object = json_object_new_object();
    json_object_object_add(object, "url", json_object_new_string(report->url));
    json_object_object_add(object, "status", json_object_new_string(report->verdict == NULL ? "failed" : "done"));
    json_object_object_add(object, "score", report->verdict == NULL ? NULL : json_object_new_int(report->score));
    json_object_object_add(object, "result", report->verdict == NULL ? NULL : json_object_new_string(report->verdict));
    if (report->verdict == NULL) {
        struct json_object *error = json_object_new_object();
        json_object_object_add(error, "code", json_object_new_string(report->error_code));
        json_object_object_add(error, "message", json_object_new_string(report->error_message));
        json_object_object_add(object, "error", error);
    } else {
        struct json_object *issues = json_object_new_object();
        json_object_object_add(issues, "high", json_object_new_uint64(findings->issues.high));
        json_object_object_add(issues, "medium", json_object_new_uint64(findings->issues.medium));
        json_object_object_add(issues, "low", json_object_new_uint64(findings->issues.low));
        json_object_object_add(issues, "passed", json_object_new_uint64(findings->issues.passed));
        json_object_object_add(object, "issues", issues);
        json_object_object_add(object, "final_url", findings->final_url == NULL ? NULL : json_object_new_string(findings->final_url));
        json_object_object_add(object, "results", json_object_get(report->results));
    }
    puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(object);
}

static void finish(struct grading *grading, const struct report_print *report, const struct audit_findings *findings)
{
    int status = report->verdict == NULL ? AUDIT_FAILED : report->verdict == verdicts[RESULT_GOOD] ? AUDIT_GOOD : AUDIT_NOT_GOOD;
    if (status > grading->status)
        grading->status = status;
    grading->done++;
    cmd_progress_end();
    if (grading->json)
        print_json(report, findings);
    else
        report_print(stdout, &grading->look, report);
    fflush(stdout);
}

static void graded(void *arg, const struct audit_findings *findings)
{
    struct grading *grading = arg;
    struct report_print report = {.url = grading->urls[findings->id],
                                  .score = findings->score,
                                  .error_code = findings->error_code,
                                  .error_message = findings->error_message};
    if (findings->error_code == NULL) {
        struct json_tokener *tokener = json_tokener_new();
        report.results = json_tokener_parse_ex(tokener, findings->results.p, (int)findings->results.n);
        json_tokener_free(tokener);
        report.verdict = verdicts[audit_result(findings->score, grading->conf)];
    }
    finish(grading, &report, findings);
    json_object_put(report.results);
}

/* Queue one page; what is not acceptable is told at once. A bare host is taken for https. */
static void add(struct audit *audit, struct grading *grading, size_t id)
{
    const char *given = grading->urls[id], *why = NULL;
    struct buf text = {.p = NULL}, url = {.p = NULL}, host = {.p = NULL};
    buf_printf(&text, "%s%s", strstr(given, "://") == NULL ? "https://" : "", given);
    if (audit_url_normalise(buf_view(&text), grading->conf, &url, &host, &why)) {
        audit_add(audit, id, buf_view(&url), graded, grading);
    } else {
        struct report_print report = {.url = given, .error_code = "validation_failed", .error_message = why};
        finish(grading, &report, NULL);
    }
    buf_free(&text);
    buf_free(&url);
    buf_free(&host);
}

/* A build with sanitizers looks for leaks at exit, and cannot from within the sandbox: it ends here. */
static int leave(int status)
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
    struct grading grading = {
        .conf = cmd->conf, .json = cmd->json, .look = report_look_of(stdout), .urls = cmd->words, .total = cmd->words_count};
    const char *why = NULL;
    struct audit *audit = audit_new(cmd->conf);
    if (audit == NULL || audit_sandbox(cmd->conf, &why) != 0) {
        cmd_refuse("cannot begin to grade: %s", why == NULL ? "libcurl does not start" : why);
        audit_free(audit);
        return AUDIT_FAILED;
    }
    for (size_t i = 0; i < cmd->words_count; i++)
        add(audit, &grading, i);
    while (audit_pending(audit) > 0) {
        cmd_progress("Grading", grading.done, grading.total);
        if (audit_wait(audit, NULL, 0, WAIT_MS) == 0)
            continue;
        cmd_refuse("libcurl gave up");
        grading.status = AUDIT_FAILED;
        break;
    }
    cmd_progress_end();
    if (!cmd->json && grading.total > 1)
        cmd_say("%zu pages graded.", grading.done);
    audit_free(audit);
    return leave(grading.status);
}
