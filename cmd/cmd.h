/*
 * The sub-commands of assay: the table is in assay.c, the commands are in cmd_*.c.
 *
 * A command prints records and secrets on standard output and messages on standard error. It
 * returns the exit status: CMD_DONE, CMD_REFUSED after an error message, or CMD_USAGE.
 */
#ifndef ASSAY_CMD_H
#define ASSAY_CMD_H

#include "core/conf/conf.h"
#include "store/bytes.h"

#include <stdio.h>

enum { CMD_DONE = 0, CMD_REFUSED = 1, CMD_USAGE = 2 };

struct cmd_option {
    const char *name;  /* with its dashes */
    const char *value; /* its name in help; NULL: the option takes no value */
    const char *help;
};

struct cmd;

struct cmd_row {
    const char *name;                 /* one or two words */
    const char *words;                /* arguments as shown in help */
    unsigned min_words, max_words;    /* how many arguments */
    const struct cmd_option *options; /* ends with a NULL name */
    const char *help;
    int (*run)(struct cmd *cmd);
    bool without_conf; /* the configuration is not read */
};

extern const struct cmd_row cmd_rows[]; /* ends with a NULL name */

struct cmd_given {
    const char *name, *value;
};

/* The command line and the configuration. */
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

/* cmd_value(cmd, name): the last value of an option, or NULL. cmd_has(cmd, name): is it given? */
const char *cmd_value(const struct cmd *cmd, const char *name);
bool cmd_has(const struct cmd *cmd, const char *name);

/*
 * cmd_refuse(format, …): print "assay: sentence" on standard error. Returns CMD_REFUSED.
 * cmd_misuse(cmd, …): the same, with how to get help. Returns CMD_USAGE.
 */
int cmd_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cmd_misuse(const struct cmd *cmd, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* cmd_say(format, …): print a message on standard error. */
void cmd_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/*
 * cmd_name_valid(text): whether ${text} can be the name of a record: 1 to 100 characters of UTF-8
 * without control characters. cmd_name_check(text): the same as CMD_DONE or CMD_REFUSED.
 */
bool cmd_name_valid(const char *text);
int cmd_name_check(const char *text);

/*
 * cmd_print_plain(out, text, max): print as much of ${text} as fits into ${max} columns, with
 * control characters escaped (printable.h). Returns the number of columns; wide characters take two
 * if LC_CTYPE is UTF-8. ${out} NULL: only measure.
 */
size_t cmd_print_plain(FILE *out, struct str text, size_t max);

/* cmd_print_json(json): print lines of JSON with control characters escaped. */
void cmd_print_json(struct buf *json);

/* cmd_program_beside(name, out, size): the path of ${name} in the directory of assay itself. */
bool cmd_program_beside(const char *name, char *out, size_t size);

/* ---- records: rows that are printed as a table or, with --json, as one object per line ---- */

struct records {
    bool json;
    struct buf object; /* the current row, as JSON */
    char **cells;
    size_t cells_count, columns;
    const char *names[16];
};

void records_start(struct records *records, bool json);
/* Add a member to the current row. A NULL text and a time of 0 are null in JSON, "-" in a table. */
void records_text(struct records *records, const char *name, struct str text);
void records_number(struct records *records, const char *name, uint64_t number);
void records_time(struct records *records, const char *name, int64_t ms);
void records_bool(struct records *records, const char *name, bool value);
void records_list(struct records *records, const char *name, const char *const *words,
                  size_t count);
/* records_members(records, members): add JSON members, written without braces; only with JSON. */
void records_members(struct records *records, struct str members);
void records_end_row(struct records *records);
/* records_finish(records): print the rest and free. */
void records_finish(struct records *records);

/* ---- long work ---- */

/*
 * cmd_progress(what, done, total): draw the progress line, at most ten times a second and only on a
 * terminal. cmd_progress_end(): remove it.
 */
void cmd_progress(const char *what, uint64_t done, uint64_t total);
void cmd_progress_end(void);

/*
 * cmd_catch_interrupts(): from now on, INT and TERM only make cmd_interrupted() true, so that the
 * work can stop where nothing is left half done.
 */
void cmd_catch_interrupts(void);
bool cmd_interrupted(void);

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
int cmd_cluster_init(struct cmd *cmd);
int cmd_cluster_new_log(struct cmd *cmd);
int cmd_cluster_join(struct cmd *cmd);
int cmd_cluster_remove(struct cmd *cmd);
int cmd_cluster_status(struct cmd *cmd);
int cmd_cluster_verify(struct cmd *cmd);
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
    cmd_key_rotate_options[], cmd_token_create_options[], cmd_agent_create_options[],
    cmd_agent_update_options[], cmd_audit_options[], cmd_cluster_new_log_options[],
    cmd_cluster_join_options[], cmd_check_options[], cmd_stats_options[];

#endif
