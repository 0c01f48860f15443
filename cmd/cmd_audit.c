#include "core/audit/audit.h"
#include "core/audit/sandbox.h"
#include "core/audit/url.h"
#include "cmd/audit_file.h"
#include "core/text/json_out.h"
#include "cmd/report_html.h"
#include "cmd/report_print.h"
#include "store/store.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

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
    bool json, silent;
    int html; /* where the page of the report goes; -1: nowhere */
    enum language language;
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

/* ---- the page of the report ---- */

/* Returns the status of grading, worse if the page cannot be sent. */
static int send_html(const struct grading *grading, const struct grade *grade,
                     const struct audit_findings *findings, int status)
{
    struct buf html = {0};
    const struct report_html page = {
        .url = str_of(url_of(grade)),
        .result = findings->error_code == NULL
                      ? (enum report_result)audit_result(findings->score, grading->conf)
                      : RESULT_NONE,
        .generated_at = (int64_t)time(NULL) * 1000,
        .findings = findings,
        .language = grading->language,
    };
    report_html(&html, &page);
    if (!buf_ok(&html) || !audit_file_write(grading->html, buf_view(&html))) {
        cmd_refuse("the page of the report cannot be made: out of memory");
        status = AUDIT_FAILED;
    }
    buf_free(&html);
    return status;
}

/* ---- grading ---- */

static int status_of(const struct report_print *report)
{
    if (report->verdict == NULL)
        return AUDIT_FAILED;
    return report->verdict == verdicts[RESULT_GOOD] ? AUDIT_GOOD : AUDIT_NOT_GOOD;
}

static void print(const struct grading *grading, const struct grade *grade,
                  const struct report_print *report, const struct audit_findings *findings)
{
    cmd_progress_end();
    if (grading->silent)
        return;
    if (grading->json)
        print_json(grade, report, findings);
    else
        report_print(stdout, &grading->look, report);
    fflush(stdout);
}

static void finish(struct grading *grading, struct grade *grade, const struct report_print *report,
                   const struct audit_findings *findings)
{
    int status = status_of(report);
    if (grading->html >= 0)
        status = send_html(grading, grade, findings, status);
    if (status > grading->status)
        grading->status = status;
    grade->verdict = report->verdict;
    grade->score = report->score;
    grading->done++;
    print(grading, grade, report, findings);
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
        struct audit_findings refused = {.error_code = "validation_failed", .error_message = why};
        struct report_print report = {.url = grade->given,
                                      .error_code = refused.error_code,
                                      .error_message = refused.error_message};
        finish(grading, grade, &report, &refused);
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

/* ---- the command ---- */

const struct cmd_option cmd_audit_options[] = {
    {"--html", "FILE", "write the report of one page to this HTML file; -: to standard output"},
    {"--lang", "LANGUAGE", "language of that file: en or de; default: that of the environment"},
    {.name = NULL},
};

/* By the first variable that is set, such as LANG=de_DE.UTF-8. */
static enum language language_of_environment(void)
{
    static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (value == NULL || value[0] == '\0')
            continue;
        enum language l = language_of((struct str){value, strcspn(value, "_.@")});
        return l == LANGUAGES ? LANGUAGE_EN : l;
    }
    return LANGUAGE_EN;
}

static bool is_stdout(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* CMD_USAGE, after a message, if the options do not fit together. */
static int check_options(const struct cmd *cmd)
{
    const char *path = cmd_value(cmd, "--html"), *code = cmd_value(cmd, "--lang");
    if (code != NULL && language_of(str_of(code)) == LANGUAGES)
        return cmd_misuse(cmd, "--lang is en or de, not %s", code);
    if (code != NULL && path == NULL)
        return cmd_misuse(cmd, "--lang is the language of the file of --html: add --html FILE");
    if (path == NULL)
        return CMD_DONE;
    if (path[0] == '\0')
        return cmd_misuse(cmd, "--html needs the name of a file");
    if (cmd->words_count > 1)
        return cmd_misuse(cmd,
                          "--html takes one URL, since a file holds one page: run a command "
                          "for each of the %zu URLs",
                          cmd->words_count);
    if (is_stdout(path) && cmd->json)
        return cmd_misuse(cmd, "--html - and --json both print to standard output: give --html the "
                               "name of a file");
    return CMD_DONE;
}

/* ${html}: where the page of the report goes; -1: nowhere. */
static int grade_all(struct cmd *cmd, int html)
{
    const char *code = cmd_value(cmd, "--lang");
    struct grading grading = {
        .conf = cmd->conf,
        .json = cmd->json,
        .silent = is_stdout(cmd_value(cmd, "--html")),
        .html = html,
        .language = code == NULL ? language_of_environment() : language_of(str_of(code)),
        .look = report_look_of(stdout),
        .grades = grades_new(cmd),
        .total = cmd->words_count,
    };
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

int cmd_audit(struct cmd *cmd)
{
    const char *path = cmd_value(cmd, "--html");
    int status = check_options(cmd);
    if (status != CMD_DONE)
        return status;
    return path == NULL ? grade_all(cmd, -1) : audit_file(cmd, path, grade_all);
}
