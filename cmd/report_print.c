#include "report_print.h"
#include "cmd.h"

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
    look.colour = isatty(fd) != 0 && (no_colour == NULL || no_colour[0] == '\0') && (terminal == NULL || strcmp(terminal, "dumb") != 0);
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40)
        look.width = size.ws_col < WIDTH_MAX ? size.ws_col : WIDTH_MAX;
    return look;
}

/* ${style}: SGR numbers; what follows is plain again after style(p, NULL). */
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

/* How many columns ${n} bytes of ${text} take: characters, near enough. */
static size_t columns_of(const char *text, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++)
        columns += ((unsigned char)text[i] & 0xc0) != 0x80;
    return columns;
}

/* ${text} in words between ${indent} and the look's width; the cursor stands at ${at} when it begins. Returns where it ends. */
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

static const char *member_text(struct json_object *check, const char *name)
{
    struct json_object *value;
    return json_object_object_get_ex(check, name, &value) && value != NULL ? json_object_get_string(value) : NULL;
}

enum outcome { OUTCOME_NONE, OUTCOME_PASSED, OUTCOME_FAILED };

static enum outcome outcome_of(struct json_object *check)
{
    struct json_object *passed;
    if (!json_object_object_get_ex(check, "passed", &passed) || !json_object_is_type(passed, json_type_boolean))
        return OUTCOME_NONE;
    return json_object_get_boolean(passed) ? OUTCOME_PASSED : OUTCOME_FAILED;
}

static bool member_is(struct json_object *check, const char *name, const char *wanted)
{
    const char *text = member_text(check, name);
    return text != NULL && strcmp(text, wanted) == 0;
}

static unsigned count(struct json_object *results, const char *member, const char *wanted, enum outcome outcome)
{
    unsigned n = 0;
    json_object_object_foreach(results, id, check)
    {
        (void)id;
        n += member_is(check, member, wanted) && outcome_of(check) == outcome;
    }
    return n;
}

/* Words of ids that people write in capitals. */
static const char *const acronyms[] = {"html", "css", "dom", "http", "http2", "https", "hsts", "csp", "url", "ttfb", "seo"};

/* "deprecated_html_tags" as "Deprecated HTML tags". */
static void name_of(const char *id, char *out, size_t size)
{
    snprintf(out, size, "%s", id);
    for (char *word = out; *word != '\0';) {
        size_t n = strcspn(word, "_");
        bool acronym = false;
        for (size_t i = 0; i < sizeof(acronyms) / sizeof(acronyms[0]); i++)
            acronym = acronym || (strlen(acronyms[i]) == n && strncmp(acronyms[i], word, n) == 0);
        for (size_t i = 0; i < n; i++)
            if (word[i] >= 'a' && word[i] <= 'z' && (acronym || (word == out && i == 0)))
                word[i] = (char)(word[i] - 'a' + 'A');
        word += n;
        if (*word == '_')
            *word++ = ' ';
    }
}

/* ---- the parts ---- */

static void print_head(const struct printer *p, const struct report_print *report)
{
    fputs("\n  ", p->out);
    style(p, BOLD);
    cmd_print_plain(p->out, str_of(report->url), 2048);
    style(p, NULL);
    fputs("\n\n", p->out);
}

static void print_verdict(const struct printer *p, const struct report_print *report)
{
    const char *colour = verdict_colour(report->verdict);
    char verdict[16], number[24];
    name_of(report->verdict, verdict, sizeof(verdict));
    snprintf(number, sizeof(number), "  %3d", report->score);
    styled(p, p->look->colour ? BOLD : "", number);
    fputs(" / 100  ", p->out);
    style(p, colour);
    for (int i = 0; i < BAR_COLUMNS; i++)
        fputs(i * 100 < report->score * BAR_COLUMNS ? "█" : "░", p->out);
    fprintf(p->out, "  %s", verdict);
    style(p, NULL);
    fputs("\n\n", p->out);
}

/* Columns: the importance, its heading, its colour. */
static const struct {
    const char *name, *heading, *colour;
} importances[] = {{"high", "High importance", RED}, {"medium", "Medium importance", YELLOW}, {"low", "Low importance", DIM}};

/* A line of its own under a check: ${label} and as much of ${text} as fits. */
static void print_aside(const struct printer *p, const char *label, const char *text)
{
    size_t room = p->look->width - 8 - strlen(label), columns = columns_of(text, strlen(text));
    fputs("        ", p->out);
    style(p, DIM);
    fputs(label, p->out);
    cmd_print_plain(p->out, str_of(text), columns > room ? room - 1 : room);
    if (columns > room)
        fputs("…", p->out);
    style(p, NULL);
    fputc('\n', p->out);
}

static void print_details(const struct printer *p, struct json_object *check)
{
    struct json_object *details;
    if (!json_object_object_get_ex(check, "details", &details) || !json_object_is_type(details, json_type_array))
        return;
    size_t n = json_object_array_length(details);
    for (size_t i = 0; i < n && i < DETAILS_SHOWN; i++)
        print_aside(p, "", json_object_get_string(json_object_array_get_idx(details, i)));
    if (n > DETAILS_SHOWN)
        fprintf(p->out, "        and %zu more\n", n - DETAILS_SHOWN);
}

static void print_failed(const struct printer *p, const char *id, struct json_object *check, const char *colour)
{
    char name[64];
    struct json_object *value;
    const char *message = member_text(check, "message");
    name_of(id, name, sizeof(name));
    fputs("    ", p->out);
    styled(p, colour, "✗");
    fputc(' ', p->out);
    styled(p, BOLD, name);
    fputc('\n', p->out);
    fputs("      ", p->out);
    wrap(p, 6, 6, message == NULL ? "Failed." : message);
    fputc('\n', p->out);
    /* a number is in the sentence already */
    if (json_object_object_get_ex(check, "value", &value) && json_object_is_type(value, json_type_string) &&
        json_object_get_string_len(value) > 0)
        print_aside(p, "found: ", json_object_get_string(value));
    print_details(p, check);
}

static void print_to_mend(const struct printer *p, struct json_object *results)
{
    for (size_t i = 0; i < sizeof(importances) / sizeof(importances[0]); i++) {
        unsigned n = count(results, "importance", importances[i].name, OUTCOME_FAILED);
        if (n == 0)
            continue;
        fputs("  ", p->out);
        styled(p, BOLD, importances[i].heading);
        fprintf(p->out, " · %u to mend\n\n", n);
        json_object_object_foreach(results, id, check)
        {
            if (member_is(check, "importance", importances[i].name) && outcome_of(check) == OUTCOME_FAILED)
                print_failed(p, id, check, importances[i].colour);
        }
        fputc('\n', p->out);
    }
}

/* How a check shows in its category's line. */
static const struct {
    const char *mark, *colour;
} marks[] = {[OUTCOME_NONE] = {"–", DIM}, [OUTCOME_PASSED] = {"✓", GREEN}, [OUTCOME_FAILED] = {"✗", RED}};

static void print_category(const struct printer *p, struct json_object *results, const char *category, const char *heading)
{
    unsigned passed = count(results, "category", category, OUTCOME_PASSED), failed = count(results, "category", category, OUTCOME_FAILED);
    if (passed + failed + count(results, "category", category, OUTCOME_NONE) == 0)
        return;
    fputs("  ", p->out);
    styled(p, BOLD, heading);
    fprintf(p->out, " · %u of %u passed\n    ", passed, passed + failed);
    size_t at = 4;
    json_object_object_foreach(results, id, check)
    {
        if (!member_is(check, "category", category))
            continue;
        size_t columns = strlen(id) + 2;
        if (at > 4 && at + 2 + columns > p->look->width) {
            fputs("\n    ", p->out);
            at = 4;
        } else if (at > 4) {
            fputs("  ", p->out);
            at += 2;
        }
        enum outcome outcome = outcome_of(check);
        styled(p, marks[outcome].colour, marks[outcome].mark);
        fprintf(p->out, " %s", id);
        at += columns;
    }
    fputs("\n", p->out);
}

static const char *const categories[][2] = {
    {"seo", "SEO"}, {"performance", "Performance"}, {"security", "Security"}, {"misc", "Miscellaneous"}};

void report_print(FILE *out, const struct report_look *look, const struct report_print *report)
{
    struct printer p = {.out = out, .look = look};
    print_head(&p, report);
    if (report->verdict == NULL) {
        fputs("  ", out);
        styled(&p, RED, "✗ Not graded");
        fputs(": ", out);
        wrap(&p, 2, 16, report->error_message == NULL ? "no reason was given" : report->error_message);
        fprintf(out, " (%s)\n\n", report->error_code == NULL ? "unknown" : report->error_code);
        return;
    }
    print_verdict(&p, report);
    if (!json_object_is_type(report->results, json_type_object))
        return;
    print_to_mend(&p, report->results);
    for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++)
        print_category(&p, report->results, categories[i][0], categories[i][1]);
    fputc('\n', out);
}
