#include "cmd/cmd_help.h"
#include "core/text/nearest.h"

#include <limits.h>
#include <string.h>

/* A line of `assay -h` for each first word of cmd_rows. A test compares the two tables. */
static const struct {
    const char *name, *help;
} subjects[] = {
    {"workspace", "tenants, which own all other records"},
    {"key", "API keys"},
    {"token", "workspace tokens for bulk sync"},
    {"agent", "chat widgets"},
    {"secret", "secrets for visitors' tokens and cookies of reports"},
    {"cluster", "nodes with one log"},
    {"audit", "grade pages without a server"},
    {"limits", "rate limits and their callers"},
    {"backup", "copy the store into a directory"},
    {"restore", "replace the store with a backup"},
    {"check", "check every record and index of the store"},
    {"stats", "show what each process of the server is doing"},
    {"config", "print the configuration in force, or a sample"},
    {"demo", "start a server under var/ with a demo shop, and grade a page"},
    {"help", "explain a command: assay help key; all: assay help all"},
};
#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

/* The second word of the row if ${subject} is the first, "" without a second word; else NULL. */
static const char *verb_of(const struct cmd_row *row, const char *subject)
{
    size_t n = strlen(subject);
    if (strncmp(row->name, subject, n) != 0 || (row->name[n] != '\0' && row->name[n] != ' '))
        return NULL;
    return row->name[n] == '\0' ? "" : row->name + n + 1;
}

/* "create, list, revoke, rotate"; empty for a command without a second word. */
static void verbs_list(const char *subject, struct buf *out)
{
    for (const struct cmd_row *row = cmd_rows; row->name != NULL; row++) {
        const char *verb = verb_of(row, subject);
        if (verb != NULL && verb[0] != '\0')
            buf_printf(out, "%s%s", out->n == 0 ? "" : ", ", verb);
    }
}

static void print_option(FILE *out, const char *indent, const struct cmd_option *option)
{
    bool valued = option->value != NULL;
    fprintf(out, "%s%s%s%s: %s\n", indent, option->name, valued ? " " : "",
            valued ? option->value : "", option->help);
}

static void print_global_options(FILE *out)
{
    for (const struct cmd_option *option = cmd_global_options; option->name != NULL; option++)
        print_option(out, "  ", option);
}

#define USAGE "usage: assay [-c FILE] [--set KEY=VALUE]... [--json] COMMAND ...\n\n"
#define STATUS "Exit status: 0 done, 1 refused, 2 wrong usage."

/* All commands and global options, on a screen of 80 columns. */
static void print_screen(FILE *out)
{
    fputs(USAGE, out);
    for (size_t i = 0; i < SUBJECTS; i++) {
        struct buf verbs = {0};
        verbs_list(subjects[i].name, &verbs);
        fprintf(out, "  %-10s %.*s%s%s\n", subjects[i].name, (int)verbs.n,
                verbs.n > 0 ? verbs.p : "", verbs.n > 0 ? ": " : "", subjects[i].help);
        buf_free(&verbs);
    }
    fputc('\n', out);
    print_global_options(out);
    fputs(STATUS " More: assay help COMMAND.\n", out);
}

static void print_row(FILE *out, const struct cmd_row *row)
{
    fprintf(out, "  %s%s%s\n      %s\n", row->name, row->words[0] == '\0' ? "" : " ", row->words,
            row->help);
    for (const struct cmd_option *option = row->options; option->name != NULL; option++)
        print_option(out, "      ", option);
}

/* Print the rows with ${subject} and ${verb}; NULL: any. Returns their number. */
static size_t print_rows(FILE *out, const char *subject, const char *verb)
{
    size_t count = 0;
    for (const struct cmd_row *row = cmd_rows; row->name != NULL; row++) {
        const char *its = subject == NULL ? "" : verb_of(row, subject);
        if (its == NULL || (verb != NULL && its[0] != '\0' && strcmp(its, verb) != 0))
            continue;
        if (count++ == 0)
            fputs(USAGE, out);
        print_row(out, row);
    }
    return count;
}

int cmd_help_words(struct cmd *cmd, const char *const *words, size_t count)
{
    bool all = count > 0 && strcmp(words[0], "all") == 0;
    if (count == 0) {
        print_screen(stdout);
        return CMD_DONE;
    }
    if (print_rows(stdout, all ? NULL : words[0], all || count < 2 ? NULL : words[1]) == 0) {
        cmd->words = (const char **)(uintptr_t)words;
        cmd->words_count = count;
        cmd->row = NULL;
        return cmd_help_no_command(cmd);
    }
    fputs("\nOptions of every command:\n", stdout);
    print_global_options(stdout);
    fputs("\n" STATUS " Commands work whether or not assayd runs.\n", stdout);
    return CMD_DONE;
}

int cmd_help(struct cmd *cmd)
{
    return cmd_help_words(cmd, cmd->words, cmd->words_count);
}

/* ---- the nearest name ---- */

struct near {
    struct str wrong;
    const char *name;
    unsigned distance;
};

static struct near near_to(const char *wrong, size_t n)
{
    return (struct near){.wrong = {wrong, n}, .distance = UINT_MAX};
}

static void near_try(struct near *near, const char *name)
{
    unsigned distance = nearest_distance(near->wrong, str_of(name));
    if (distance >= near->distance || !nearest_is_close(distance, near->wrong.n))
        return;
    near->distance = distance;
    near->name = name;
}

static int no_subject(struct cmd *cmd)
{
    struct near near = near_to(cmd->words[0], strlen(cmd->words[0]));
    for (size_t i = 0; i < SUBJECTS; i++)
        near_try(&near, subjects[i].name);
    if (near.name == NULL)
        return cmd_misuse(cmd, "there is no command \"%s\"", cmd->words[0]);
    return cmd_misuse(cmd, "there is no command \"%s\"; did you mean %s?", cmd->words[0],
                      near.name);
}

static int no_verb(struct cmd *cmd, const struct buf *verbs)
{
    const char *subject = cmd->words[0], *verb = cmd->words[1];
    struct near near = near_to(verb, strlen(verb));
    for (const struct cmd_row *row = cmd_rows; row->name != NULL; row++)
        if (verb_of(row, subject) != NULL)
            near_try(&near, verb_of(row, subject));
    if (near.name == NULL)
        cmd_refuse("there is no command \"%s %s\"; %s takes: %.*s", subject, verb, subject,
                   (int)verbs->n, verbs->p);
    else
        cmd_refuse("there is no command \"%s %s\"; did you mean %s %s?", subject, verb, subject,
                   near.name);
    fprintf(stderr, "assay: try assay help %s\n", subject);
    return CMD_USAGE;
}

int cmd_help_no_command(struct cmd *cmd)
{
    struct buf verbs = {0};
    const char *subject = cmd->words_count == 0 ? NULL : cmd->words[0];
    int status = CMD_USAGE;
    if (subject != NULL)
        verbs_list(subject, &verbs);
    if (subject == NULL) {
        print_screen(stderr);
    } else if (verbs.n == 0) {
        status = no_subject(cmd);
    } else if (cmd->words_count == 1) {
        cmd_refuse("%s needs one of: %.*s", subject, (int)verbs.n, verbs.p);
        fprintf(stderr, "assay: try assay help %s\n", subject);
    } else {
        status = no_verb(cmd, &verbs);
    }
    buf_free(&verbs);
    return status;
}

static void near_options(struct near *near, const struct cmd_option *options)
{
    for (; options->name != NULL; options++)
        near_try(near, options->name);
}

int cmd_help_no_option(struct cmd *cmd, const char *text)
{
    size_t n = strcspn(text, "=");
    struct near near = near_to(text, n);
    near_options(&near, cmd_global_options);
    for (const struct cmd_row *row = cmd_rows; row->name != NULL; row++)
        near_options(&near, row->options);
    if (n < 3 || near.name == NULL)
        return cmd_misuse(cmd, "unknown option %s", text);
    return cmd_misuse(cmd, "unknown option %.*s; did you mean %s?", (int)n, text, near.name);
}

int cmd_help_takes_no(struct cmd *cmd, const char *option)
{
    struct buf list = {0};
    for (const struct cmd_option *its = cmd->row->options; its->name != NULL; its++)
        buf_printf(&list, "%s%s", list.n == 0 ? "; it takes " : ", ", its->name);
    int status = cmd_misuse(cmd, "%s takes no %s%.*s", cmd->row->name, option, (int)list.n,
                            list.n > 0 ? list.p : "");
    buf_free(&list);
    return status;
}
