#include "cmd/report_print.h"
#include "cmd/cmd.h"
#include "core/web/texts.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define WIDTH_DEFAULT 80
#define WIDTH_MAX 100
#define BAR_COLUMNS 40
#define DETAILS_SHOWN 5

#define BOLD "1"
#define DIM "2"
#define RED "31"
#define GREEN "32"
#define YELLOW "33"

struct printer {
    FILE *out;
    const struct report_look *look;
};

struct report_look report_look_of(FILE *out)
{
    struct report_look look = {.width = WIDTH_DEFAULT};
    struct winsize size;
    const char *no_colour = getenv("NO_COLOR"), *terminal = getenv("TERM");
    int fd = fileno(out);
    look.colour = isatty(fd) != 0 && (no_colour == NULL || no_colour[0] == '\0') &&
                  (terminal == NULL || strcmp(terminal, "dumb") != 0);
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        look.width = size.ws_col < WIDTH_MAX ? size.ws_col : WIDTH_MAX;
    return look;
}

/* ${numbers}: SGR parameters; NULL: back to plain text. */
static void style(const struct printer *p, const char *numbers)
{
    if (p->look->colour)
        fprintf(p->out, "\033[%sm", numbers == NULL ? "0" : numbers);
}

static void styled(const struct printer *p, const char *numbers, const char *text)
{
    style(p, numbers);
    fputs(text, p->out);
    style(p, NULL);
}

static size_t columns_of(const char *text, size_t n)
{
    return cmd_print_plain(NULL, (struct str){text, n}, SIZE_MAX);
}

/* Print ${text} wrapped, from column ${at}, next lines at ${indent}. Returns the last column. */
static size_t wrap(const struct printer *p, size_t indent, size_t at, const char *text)
{
    bool first = true;
    while (*(text += strspn(text, " \t\r\n")) != '\0') {
        size_t n = strcspn(text, " \t\r\n"), columns = columns_of(text, n);
        if (!first && at + 1 + columns > p->look->width) {
            fprintf(p->out, "\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            fputc(' ', p->out);
            at++;
        }
        cmd_print_plain(p->out, (struct str){text, n}, SIZE_MAX);
        at += columns;
        text += n;
        first = false;
    }
    return at;
}

static const char *verdict_colour(const char *verdict)
{
    return strcmp(verdict, "good") == 0 ? GREEN : strcmp(verdict, "decent") == 0 ? YELLOW : RED;
}

/* ---- reading the results ---- */

static const char *member_text(const struct json *check, const char *name)
{
    return json_chars(json_member(check, name));
}

enum outcome { OUTCOME_NONE, OUTCOME_PASSED, OUTCOME_FAILED };

static enum outcome outcome_of(const struct json *check)
{
    const struct json *passed = json_member(check, "passed");
    if (json_kind(passed) != JSON_BOOLEAN)
        return OUTCOME_NONE;
    return json_true(passed) ? OUTCOME_PASSED : OUTCOME_FAILED;
}

static bool member_is(const struct json *check, const char *name, const char *wanted)
{
    const char *text = member_text(check, name);
    return text != NULL && strcmp(text, wanted) == 0;
}

static unsigned count(const struct json *results, const char *member, const char *wanted,
                      enum outcome outcome)
{
    unsigned n = 0;
    const void *at = NULL;
    const char *id;
    struct json *check;
    while (json_next(results, &at, &id, &check))
        n += member_is(check, member, wanted) && outcome_of(check) == outcome;
    return n;
}

/* The names of a check and of a result; the id of an unknown one. */
static struct str check_name(const char *id)
{
    struct str name = text_find(LANGUAGE_EN, "check", str_of(id), "name");
    return name.n > 0 ? name : str_of(id);
}

static struct str result_name(const char *id)
{
    struct str name = text_find(LANGUAGE_EN, "result", str_of(id), NULL);
    return name.n > 0 ? name : str_of(id);
}

static void print_name(const struct printer *p, const char *numbers, struct str name)
{
    if (numbers != NULL)
        style(p, numbers);
    cmd_print_plain(p->out, name, SIZE_MAX);
    if (numbers != NULL)
        style(p, NULL);
}

/* ---- the parts ---- */

static void print_head(const struct printer *p, const struct report_print *report)
{
    fputs("\n  ", p->out);
    style(p, BOLD);
    cmd_print_plain(p->out, str_of(report->url), 2048);
    style(p, NULL);
    if (report->final_url != NULL && strcmp(report->final_url, report->url) != 0) {
        fputs("\n  → ", p->out);
        cmd_print_plain(p->out, str_of(report->final_url), 2048);
    }
    fputs("\n\n", p->out);
}

/* In the order of printing, with the colour of issues. */
static const struct {
    const char *name, *colour;
} importances[] = {{"high", RED}, {"medium", YELLOW}, {"low", ""}};
#define IMPORTANCES (sizeof(importances) / sizeof(importances[0]))

static const char *const categories[][2] = {{"seo", "SEO"},
                                            {"performance", "Performance"},
                                            {"security", "Security"},
                                            {"misc", "Miscellaneous"}};
#define CATEGORIES (sizeof(categories) / sizeof(categories[0]))

static void print_bar(const struct printer *p, unsigned part, unsigned whole, int columns)
{
    for (int i = 0; i < columns; i++)
        fputs((unsigned)i * whole < part * (unsigned)columns ? "█" : "░", p->out);
}

static void print_verdict(const struct printer *p, const struct report_print *report)
{
    const char *colour = verdict_colour(report->verdict);
    char number[24];
    snprintf(number, sizeof(number), "  %3d", report->score);
    style(p, p->look->colour ? BOLD : "");
    fputs(number, p->out);
    style(p, NULL);
    fputs(" / 100  ", p->out);
    style(p, colour);
    print_bar(p, (unsigned)(report->score < 0 ? 0 : report->score), 100, BAR_COLUMNS);
    fputs("  ", p->out);
    print_name(p, NULL, result_name(report->verdict));
    style(p, NULL);
    fputs("\n\n", p->out);
}

/* "12 issues: 2 high, 6 medium, 4 low" */
static void print_counts(const struct printer *p, const struct json *results)
{
    unsigned counts[IMPORTANCES], all = 0;
    for (size_t i = 0; i < IMPORTANCES; i++)
        all += counts[i] = count(results, "importance", importances[i].name, OUTCOME_FAILED);
    if (all == 0) {
        fputs("  No issues.\n", p->out);
        return;
    }
    fprintf(p->out, "  %u issue%s", all, all == 1 ? "" : "s");
    const char *before = ": ";
    for (size_t i = 0; i < IMPORTANCES; i++) {
        if (counts[i] == 0)
            continue;
        fputs(before, p->out);
        style(p, importances[i].colour);
        fprintf(p->out, "%u %s", counts[i], importances[i].name);
        style(p, NULL);
        before = ", ";
    }
    fputc('\n', p->out);
}

/* A line below a check: ${label} and as much of ${text} as fits. */
static void print_note(const struct printer *p, const char *label, const char *text)
{
    size_t width = p->look->width - 8 - strlen(label), columns = columns_of(text, strlen(text));
    fputs("        ", p->out);
    style(p, DIM);
    fputs(label, p->out);
    cmd_print_plain(p->out, str_of(text), columns > width ? width - 1 : width);
    if (columns > width)
        fputs("…", p->out);
    style(p, NULL);
    fputc('\n', p->out);
}

static void print_details(const struct printer *p, const struct json *check)
{
    const struct json *details = json_member(check, "details");
    size_t n = json_length(details);
    for (size_t i = 0; i < n && i < DETAILS_SHOWN; i++)
        print_note(p, "", json_chars(json_item(details, i)));
    if (n > DETAILS_SHOWN)
        fprintf(p->out, "        and %zu more\n", n - DETAILS_SHOWN);
}

static void print_failed(const struct printer *p, const char *id, const struct json *check,
                         size_t importance)
{
    const struct json *value = json_member(check, "value");
    const char *message = member_text(check, "message");
    fputs("\n    ", p->out);
    styled(p, importances[importance].colour, "✗");
    fputc(' ', p->out);
    print_name(p, BOLD, check_name(id));
    fputs("  ", p->out);
    styled(p, importances[importance].colour, importances[importance].name);
    fputs("\n      ", p->out);
    wrap(p, 6, 6, message == NULL ? "Failed." : message);
    fputc('\n', p->out);
    /* the message already contains numbers */
    if (json_kind(value) == JSON_STRING && json_chars(value)[0] != '\0')
        print_note(p, "found: ", json_chars(value));
    print_details(p, check);
}

/* The names of the category's checks with ${outcome}, on as few lines as possible. */
static void print_names(const struct printer *p, const struct json *results, const char *category,
                        enum outcome outcome)
{
    static const struct {
        const char *mark, *colour;
    } marks[] = {[OUTCOME_NONE] = {"–", DIM}, [OUTCOME_PASSED] = {"✓", GREEN}};
    size_t at = 0;
    const void *step = NULL;
    const char *id;
    struct json *check;
    while (json_next(results, &step, &id, &check)) {
        if (!member_is(check, "category", category) || outcome_of(check) != outcome)
            continue;
        struct str name = check_name(id);
        size_t columns = cmd_print_plain(NULL, name, SIZE_MAX) + 2;
        bool fits = at > 0 && at + 2 + columns <= p->look->width;
        fprintf(p->out, fits ? "  " : at > 0 ? "\n    " : "    ");
        at = (fits ? at + 2 : 4) + columns;
        styled(p, marks[outcome].colour, marks[outcome].mark);
        fputc(' ', p->out);
        print_name(p, outcome == OUTCOME_NONE ? DIM : NULL, name);
    }
    if (at > 0)
        fputc('\n', p->out);
}

static void print_category(const struct printer *p, const struct json *results,
                           const char *category, const char *heading)
{
    unsigned passed = count(results, "category", category, OUTCOME_PASSED),
             failed = count(results, "category", category, OUTCOME_FAILED);
    unsigned whole = passed + failed + count(results, "category", category, OUTCOME_NONE);
    if (whole == 0)
        return;
    fputs("\n  ", p->out);
    styled(p, BOLD, heading);
    fprintf(p->out, " · %u of %u passed\n", passed, passed + failed);
    for (size_t i = 0; i < IMPORTANCES; i++) {
        const void *at = NULL;
        const char *id;
        struct json *check;
        while (json_next(results, &at, &id, &check)) {
            if (member_is(check, "category", category) &&
                member_is(check, "importance", importances[i].name) &&
                outcome_of(check) == OUTCOME_FAILED)
                print_failed(p, id, check, i);
        }
    }
    fputs(passed + failed < whole || passed > 0 ? "\n" : "", p->out);
    print_names(p, results, category, OUTCOME_PASSED);
    print_names(p, results, category, OUTCOME_NONE);
}

void report_print(FILE *out, const struct report_look *look, const struct report_print *report)
{
    struct printer p = {.out = out, .look = look};
    print_head(&p, report);
    if (report->verdict == NULL) {
        fputs("  ", out);
        styled(&p, RED, "✗ Not graded");
        fputs(": ", out);
        size_t at =
            wrap(&p, 2, 16,
                 report->error_message == NULL ? "no reason was given" : report->error_message);
        const char *code = report->error_code == NULL ? "unknown" : report->error_code;
        fprintf(out, at + strlen(code) + 3 > look->width ? "\n  (%s)\n\n" : " (%s)\n\n", code);
        return;
    }
    print_verdict(&p, report);
    if (json_kind(report->results) != JSON_OBJECT)
        return;
    print_counts(&p, report->results);
    for (size_t i = 0; i < CATEGORIES; i++)
        print_category(&p, report->results, categories[i][0], categories[i][1]);
    fputc('\n', out);
}

void report_print_line(FILE *out, const struct report_look *look, const struct report_print *report)
{
    struct printer p = {.out = out, .look = look};
    struct str verdict = report->verdict == NULL ? STR("") : result_name(report->verdict);
    style(&p, report->verdict == NULL ? RED : verdict_colour(report->verdict));
    if (report->verdict == NULL)
        fputs("    –  Not graded", out);
    else
        fprintf(out, "  %3d  %-10.*s", report->score, (int)verdict.n, verdict.p);
    style(&p, NULL);
    fputs("  ", out);
    cmd_print_plain(out, str_of(report->url), look->width > 19 ? look->width - 19 : 1);
    fputc('\n', out);
}
