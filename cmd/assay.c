/* assay: parses the command line and runs a row of the command table. */
#include "cmd/cmd_help.h"
#include "config.h"
#include "core/http/route.h"

#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const struct cmd_option no_options[] = {{.name = NULL}};

/*
 * The sub-commands; struct cmd_row explains the columns. Each row is an entry of `assay help all`
 * and, checked by a test, of assay.1 and `assay -h`.
 */
const struct cmd_row cmd_rows[] = {
    {"workspace create", "NAME", 1, 1, no_options, "Create a workspace and print its id.",
     cmd_workspace_create, false},
    {"workspace list", "", 0, 0, no_options, "List the workspaces.", cmd_workspace_list, false},
    {"workspace delete", "NAME", 1, 1, no_options,
     "Delete a workspace, given by name or id, and everything in it.", cmd_workspace_delete, false},
    {"key create", "", 0, 0, cmd_key_create_options,
     "Create an API key and print its secret. The secret is not shown again.", cmd_key_create,
     false},
    {"key list", "", 0, 0, cmd_key_list_options, "List the API keys.", cmd_key_list, false},
    {"key revoke", "ID", 1, 1, no_options,
     "Revoke an API key. All workers refuse it within one second.", cmd_key_revoke, false},
    {"key rotate", "ID", 1, 1, cmd_key_rotate_options,
     "Replace an API key with a new one. The old key stays valid for the overlap.", cmd_key_rotate,
     false},
    {"token create", "", 0, 0, cmd_token_create_options,
     "Create a workspace token for bulk sync and print its secret. The secret is not shown again.",
     cmd_token_create, false},
    {"token list", "", 0, 0, cmd_key_list_options, "List the workspace tokens.", cmd_token_list,
     false},
    {"token revoke", "ID", 1, 1, no_options,
     "Revoke a workspace token. All workers refuse it within one second.", cmd_token_revoke, false},
    {"token rotate", "ID", 1, 1, cmd_key_rotate_options,
     "Replace a token with a new one. The old token stays valid for the overlap.", cmd_token_rotate,
     false},
    {"agent create", "", 0, 0, cmd_agent_create_options,
     "Create an agent, the chat widget of a workspace, and print its id.", cmd_agent_create, false},
    {"agent list", "", 0, 0, cmd_key_list_options, "List the agents.", cmd_agent_list, false},
    {"agent update", "ID", 1, 1, cmd_agent_update_options,
     "Change an agent. All workers use the change within one second.", cmd_agent_update, false},
    {"agent embed", "ID", 1, 1, no_options,
     "Print the script element that adds an agent to a page, pinned by its digest.",
     cmd_agent_embed, false},
    {"agent delete", "ID", 1, 1, no_options,
     "Delete an agent and its conversations, leads, events and ratings.", cmd_agent_delete, false},
    {"secret rotate", "", 0, 0, no_options,
     "Sign visitors' tokens and the cookies of reports with a new secret. Existing ones stay valid "
     "until they expire.",
     cmd_secret_rotate, false},
    {"cluster init", "", 0, 0, no_options,
     "Begin the log of a cluster with the store of this node, in the database cluster.log. The "
     "server must be stopped.",
     cmd_cluster_init, false},
    {"cluster new-log", "", 0, 0, cmd_cluster_new_log_options,
     "Replace the log of the cluster by one that begins with the store of this node. All servers "
     "must be stopped.",
     cmd_cluster_new_log, false},
    {"cluster join", "FROM", 1, 1, cmd_cluster_join_options,
     "Copy the store of the node FROM, given by name or address, to this node. The server of this "
     "node must be stopped, and follows the log when it starts.",
     cmd_cluster_join, false},
    {"cluster remove", "NODE", 1, 1, no_options,
     "Deregister a node that does not follow, so that the log keeps no entries for it.",
     cmd_cluster_remove, false},
    {"cluster status", "", 0, 0, no_options,
     "Show which node leads, how far the others are, the version of each one, and why a node is "
     "stopped.",
     cmd_cluster_status, false},
    {"cluster verify", "", 0, 0, no_options,
     "Compare the records of all nodes at one entry of the log. A node that differs stops. Exit "
     "status: 0 equal, 1 not, or a node did not answer.",
     cmd_cluster_verify, false},
    {"audit", "URL…", 1, 10000, cmd_audit_options,
     "Grade pages without a server. Exit status: 0 good, 1 decent or bad, 2 failed.", cmd_audit,
     false},
    {"limits list", "", 0, 0, no_options,
     "List the limiters in force and how many requests they admitted and refused.", cmd_limits_list,
     false},
    {"limits top", "[N]", 0, 1, no_options,
     "List the N callers (default 20) nearest to their limit that used more than half of it.",
     cmd_limits_top, false},
    {"limits show", "LIMITER KEY", 2, 2, no_options,
     "Show how many requests a key has used in the windows of a limiter.", cmd_limits_show, false},
    {"limits reset", "LIMITER KEY", 2, 2, no_options,
     "Set the count of a key in the current windows of a limiter to zero.", cmd_limits_reset,
     false},
    {"backup", "DIR", 1, 1, no_options,
     "Copy the store into a new or empty directory, even while the server runs.", cmd_backup,
     false},
    {"restore", "DIR", 1, 1, no_options,
     "Replace the store with a backup. The server must be stopped.", cmd_restore, false},
    {"check", "", 0, 0, cmd_check_options,
     "Check every record of the store against every index, even while the server runs.", cmd_check,
     false},
    {"stats", "", 0, 0, cmd_stats_options, "Show what each process of the server is doing.",
     cmd_stats, false},
    {"config dump", "", 0, 0, no_options,
     "Print the configuration in force as YAML, with every option.", cmd_config_dump, false},
    {"config sample", "", 0, 0, no_options,
     "Print a sample configuration that describes every option and has its default.",
     cmd_config_sample, true},
    {"demo", "[URL]", 0, 1, no_options,
     "Start a server under var/ with a demo shop whose chat answers, grade a page, and show the "
     "next steps.",
     cmd_demo, true},
    {"help", "[COMMAND]", 0, 2, no_options,
     "Explain a command, a group of commands, or all commands (help all).", cmd_help, true},
    {.name = NULL},
};

const struct cmd_option cmd_global_options[] = {
    {"-c", "FILE", "configuration file; default " CONF_DEFAULT_PATH ", if it exists"},
    {"--set", "KEY=VALUE", "set one option of the configuration"},
    {"--json", NULL, "print records as JSON, one object per line"},
    {"-h", NULL, "print help; after a command, help for that command"},
    {"-V", NULL, "print the version"},
    {.name = NULL},
};

struct arguments {
    const char *conf_path;
    bool conf_required, help, version;
    const char **sets;
    size_t set_count;
    struct cmd cmd;
};

/* The row of "key create" or "audit", or NULL. ${taken}: how many of ${words} are its name. */
static const struct cmd_row *find_row(const char *const *words, size_t count, size_t *taken)
{
    for (const struct cmd_row *row = cmd_rows; row->name != NULL && count > 0; row++) {
        const char *space = strchr(row->name, ' ');
        size_t n = space == NULL ? strlen(row->name) : (size_t)(space - row->name);
        if (strlen(words[0]) != n || strncmp(words[0], row->name, n) != 0)
            continue;
        if (space != NULL && (count < 2 || strcmp(words[1], space + 1) != 0))
            continue;
        *taken = space == NULL ? 1 : 2;
        return row;
    }
    return NULL;
}

static const struct cmd_option *find_option(const struct cmd_option *options, const char *name,
                                            size_t n)
{
    for (; options->name != NULL; options++)
        if (strlen(options->name) == n && strncmp(options->name, name, n) == 0)
            return options;
    return NULL;
}

/* The option of any command: options may come before the words of the command. */
static const struct cmd_option *find_any_option(const char *name, size_t n)
{
    const struct cmd_option *found = find_option(cmd_global_options, name, n);
    for (const struct cmd_row *row = cmd_rows; row->name != NULL && found == NULL; row++)
        found = find_option(row->options, name, n);
    return found;
}

static void take_option(struct arguments *a, const struct cmd_option *option, const char *value)
{
    if (strcmp(option->name, "-c") == 0) {
        a->conf_path = value;
        a->conf_required = true;
    } else if (strcmp(option->name, "--set") == 0) {
        a->sets[a->set_count++] = value;
    } else if (strcmp(option->name, "--json") == 0) {
        a->cmd.json = true;
    } else if (strcmp(option->name, "-h") == 0) {
        a->help = true;
    } else if (strcmp(option->name, "-V") == 0) {
        a->version = true;
    } else {
        a->cmd.given[a->cmd.given_count++] = (struct cmd_given){option->name, value};
    }
}

/* Split the command line into options and words. False: wrong usage, which is reported. */
static bool split_arguments(int argc, char **argv, struct arguments *a)
{
    bool options_end = false;
    for (int i = 1; i < argc; i++) {
        const char *text = argv[i];
        if (options_end || text[0] != '-' || text[1] == '\0') {
            a->cmd.words[a->cmd.words_count++] = text;
            continue;
        }
        if (strcmp(text, "--") == 0) {
            options_end = true;
            continue;
        }
        if (strcmp(text, "--help") == 0)
            text = "-h";
        else if (strcmp(text, "--version") == 0)
            text = "-V";
        size_t n = strcspn(text, "=");
        const struct cmd_option *option = find_any_option(text, n);
        if (option == NULL) {
            cmd_help_no_option(&a->cmd, text);
            return false;
        }
        if (option->value == NULL && text[n] == '=') {
            cmd_misuse(&a->cmd, "%s takes no value", option->name);
            return false;
        }
        const char *value = text[n] == '=' ? text + n + 1 : NULL;
        if (option->value != NULL && value == NULL && ++i == argc) {
            cmd_misuse(&a->cmd, "%s needs a value: %s", option->name, option->value);
            return false;
        }
        take_option(a, option, option->value == NULL || value != NULL ? value : argv[i]);
    }
    return true;
}

/* Find the command and check its options and words. */
static bool check_arguments(struct arguments *a)
{
    struct cmd *cmd = &a->cmd;
    size_t taken = 0;
    cmd->row = find_row(cmd->words, cmd->words_count, &taken);
    if (cmd->row == NULL) {
        cmd_help_no_command(cmd);
        return false;
    }
    cmd->words += taken;
    cmd->words_count -= taken;
    for (size_t i = 0; i < cmd->given_count; i++) {
        if (find_option(cmd->row->options, cmd->given[i].name, strlen(cmd->given[i].name)) ==
            NULL) {
            cmd_help_takes_no(cmd, cmd->given[i].name);
            return false;
        }
    }
    if (cmd->words_count < cmd->row->min_words || cmd->words_count > cmd->row->max_words) {
        cmd_misuse(cmd, "usage: assay %s %s", cmd->row->name, cmd->row->words);
        return false;
    }
    return true;
}

static int run(struct arguments *a)
{
    struct conf *conf = NULL;
    if (!a->cmd.row->without_conf) {
        int mistakes =
            conf_load(a->conf_path, a->conf_required, a->sets, a->set_count, stderr, &conf);
        if (mistakes > 0)
            return cmd_refuse("the configuration has %d error%s", mistakes,
                              mistakes == 1 ? "" : "s");
        a->cmd.conf = conf;
    }
    int status = a->cmd.row->run(&a->cmd);
    conf_free(conf);
    if (fflush(stdout) != 0 || ferror(stdout) != 0)
        status = cmd_refuse("cannot write to standard output");
    return status;
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, "C.UTF-8"); /* cmd_print_plain measures columns */
    signal(SIGCHLD, SIG_DFL);       /* if inherited as ignored, waitpid would fail */
    signal(SIGXFSZ, SIG_IGN);       /* at the file size limit write fails, and we clean up */
    struct arguments a = {
        .conf_path = CONF_DEFAULT_PATH,
        .sets = calloc((size_t)argc, sizeof(*a.sets)),
        .cmd = {.program = argv[0],
                .words = calloc((size_t)argc, sizeof(*a.cmd.words)),
                .given = calloc((size_t)argc, sizeof(*a.cmd.given))},
    };
    const char **words = a.cmd.words;
    conf_know_routes(route_known);
    int status = CMD_USAGE;
    if (a.sets == NULL || words == NULL || a.cmd.given == NULL)
        status = cmd_refuse("out of memory");
    else if (!split_arguments(argc, argv, &a))
        status = CMD_USAGE;
    else if (a.version) {
        puts("assay " PACKAGE_VERSION);
        status = CMD_DONE;
    } else if (a.help) {
        size_t taken = a.cmd.words_count;
        bool found = find_row(words, a.cmd.words_count, &taken) != NULL;
        status = cmd_help_words(&a.cmd, words, found ? taken : a.cmd.words_count);
    } else if (check_arguments(&a)) {
        status = run(&a);
    }
    free(a.sets);
    free(words);
    free(a.cmd.given);
    return status;
}
