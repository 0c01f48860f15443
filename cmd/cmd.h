/*
 * The sub-commands of assay: a table in assay.c, a file cmd_*.c per subject, and what they share.
 *
 * A command prints records and secrets on standard output and people's words on standard error. It returns the exit status: CMD_DONE,
 * CMD_REFUSED with a sentence, or
 * CMD_USAGE for a wrong call.
 */
#ifndef ASSAY_CMD_H
#define ASSAY_CMD_H

#include "conf.h"
#include "../store/bytes.h"

#include <stdio.h>

enum { CMD_DONE = 0, CMD_REFUSED = 1, CMD_USAGE = 2 };

/* An option of a command. ${value} is what help calls its value, NULL for a switch. */
struct cmd_option {
    const char *name; /* with its dashes */
    const char *value;
    const char *help;
};

struct cmd;

/*
 * A sub-command. ${name} is one or two words; ${words} the arguments as help shows them, of which min to max are given; ${options} ends
 * with a NULL name.
 */
struct cmd_row {
    const char *name, *words;
    unsigned min_words, max_words;
    const struct cmd_option *options;
    const char *help;
    int (*run)(struct cmd *cmd);
    bool without_conf; /* runs before a configuration is read */
};

extern const struct cmd_row cmd_rows[]; /* ends with a NULL name */

struct cmd_given {
    const char *name, *value;
};

/* A call: what was given on the command line, and the configuration. */
struct cmd {
    const char *program; /* argv[0] */
    const struct cmd_row *row;
    const struct conf *conf;
    bool json;
    const char **words;
    size_t words_count;
    struct cmd_given *given;
    size_t given_count;
};

/* cmd_value(cmd, name): the last value given for an option; NULL. cmd_has(cmd, name): whether it was given. */
const char *cmd_value(const struct cmd *cmd, const char *name);
bool cmd_has(const struct cmd *cmd, const char *name);

/*
 * cmd_refuse(format, …): "assay: sentence" on standard error; returns CMD_REFUSED. cmd_misuse(cmd, …): the same with how to get help;
 * returns CMD_USAGE.
 */
int cmd_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cmd_misuse(const struct cmd *cmd, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* cmd_say(format, …): a line for people, on standard error. */
void cmd_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* cmd_name_valid(text): whether it may be a workspace's or key's name: 1 to 100 characters of UTF-8, none of them a control character. */
bool cmd_name_valid(const char *text);

/*
 * cmd_print_plain(out, text, max): as much of ${text} as fits into ${max} columns of a terminal, in its printable form (printable.h).
 * Returns the columns it takes, two for a character of East Asia or an emoji
 * (LC_CTYPE must be UTF-8, else one for each). ${out} may be NULL, to measure.
 */
size_t cmd_print_plain(FILE *out, struct str text, size_t max);

/* cmd_print_json(json): lines of JSON on standard output, in their printable form; it exits where memory is short. */
void cmd_print_json(struct buf *json);

/* cmd_program_beside(cmd, name, out, size): the path of ${name} in assay's own directory. */
bool cmd_program_beside(const char *name, char *out, size_t size);

/* ---- records: the same rows as a table for people or as JSON, an object a line ---- */

struct records {
    bool json;
    struct buf object; /* the row as JSON so far */
    char **cells;
    size_t cells_count, columns;
    const char *names[16];
};

void records_start(struct records *records, bool json);
/* One member of the row that is open: a NULL text and a time of 0 are null, for people "-". records_list: a list of words. */
void records_text(struct records *records, const char *name, struct str text);
void records_number(struct records *records, const char *name, uint64_t number);
void records_time(struct records *records, const char *name, int64_t ms);
void records_bool(struct records *records, const char *name, bool value);
void records_list(struct records *records, const char *name, const char *const *words,
                  size_t count);
/* records_members(records, members): members of an object as JSON has them, without its braces; for JSON only. */
void records_members(struct records *records, struct str members);
void records_end_row(struct records *records);
/* records_finish(records): print what is left and free. */
void records_finish(struct records *records);

/* ---- progress on a terminal ---- */

/*
 * cmd_progress(what, done, total): redraw the line, at most ten times a second; nothing where standard error is no terminal.
 * cmd_progress_end(): take it away.
 */
void cmd_progress(const char *what, uint64_t done, uint64_t total);
void cmd_progress_end(void);

int cmd_workspace_create(struct cmd *cmd);
int cmd_workspace_list(struct cmd *cmd);
int cmd_workspace_delete(struct cmd *cmd);
int cmd_key_create(struct cmd *cmd);
int cmd_key_list(struct cmd *cmd);
int cmd_key_revoke(struct cmd *cmd);
int cmd_key_rotate(struct cmd *cmd);
int cmd_token_create(struct cmd *cmd);
int cmd_token_list(struct cmd *cmd);
int cmd_token_revoke(struct cmd *cmd);
int cmd_token_rotate(struct cmd *cmd);
int cmd_agent_create(struct cmd *cmd);
int cmd_agent_list(struct cmd *cmd);
int cmd_agent_update(struct cmd *cmd);
int cmd_agent_embed(struct cmd *cmd);
int cmd_agent_delete(struct cmd *cmd);
int cmd_secret_rotate(struct cmd *cmd);
int cmd_audit(struct cmd *cmd);
int cmd_limits_list(struct cmd *cmd);
int cmd_limits_top(struct cmd *cmd);
int cmd_limits_show(struct cmd *cmd);
int cmd_limits_reset(struct cmd *cmd);
int cmd_backup(struct cmd *cmd);
int cmd_restore(struct cmd *cmd);
int cmd_check(struct cmd *cmd);
int cmd_stats(struct cmd *cmd);
int cmd_config_dump(struct cmd *cmd);
int cmd_config_sample(struct cmd *cmd);
int cmd_demo(struct cmd *cmd);
int cmd_help(struct cmd *cmd);

extern const struct cmd_option cmd_key_create_options[], cmd_key_list_options[],
    cmd_key_rotate_options[], cmd_stats_options[];
extern const struct cmd_option cmd_token_create_options[], cmd_agent_create_options[],
    cmd_agent_update_options[];

#endif
