/* assay check: checks every record and index of the store, and rebuilds indexes. */
#include "cmd/cmd_store.h"
#include "cmd/guard.h"

#include <inttypes.h>
#include <stdio.h>

const struct cmd_option cmd_check_options[] = {
    {"--repair", NULL, "first rebuild all indexes from the records; the server must be stopped"},
    {.name = NULL},
};

struct checking {
    uint64_t problems;
    bool json;
};

static void show_problem(void *arg, const char *sentence)
{
    struct checking *checking = arg;
    checking->problems++;
    cmd_progress_end();
    if (checking->json) {
        struct records records;
        records_start(&records, true);
        records_text(&records, "problem", str_of(sentence));
        records_end_row(&records);
        records_finish(&records);
    } else {
        cmd_print_plain(stdout, str_of(sentence), SIZE_MAX);
        putchar('\n');
    }
}

static bool show_check(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    cmd_progress("Checking", done, total);
    return !cmd_interrupted();
}

static bool show_repair(void *arg, uint64_t done, uint64_t total)
{
    (void)arg;
    cmd_progress("Rebuilding, step", done, total);
    return !cmd_interrupted();
}

/* Rebuild what is derived from the records. */
static int repair(struct client *client)
{
    if (client_is_live(client))
        return cmd_refuse("assay check --repair needs the store for itself; stop the server first");
    enum store_status stored = store_rebuild(client_store(client), true, show_repair, NULL);
    cmd_progress_end();
    if (cmd_interrupted())
        return cmd_refuse("interrupted; the server rebuilds the remaining indexes when it starts");
    return stored == STORE_OK ? CMD_DONE : cmd_store_refuse(client, stored);
}

static int check(struct cmd *cmd)
{
    struct client *client = cmd_store_there(cmd) ? cmd_store_open(cmd) : NULL;
    if (client == NULL)
        return CMD_REFUSED;
    struct checking checking = {.json = cmd->json};
    uint64_t records = 0;
    cmd_catch_interrupts();
    store_on_stage(client_store(client), guard_at, NULL);
    if (cmd_has(cmd, "--repair") && repair(client) != CMD_DONE) {
        client_close(client);
        return CMD_REFUSED;
    }
    enum store_status stored =
        store_check(client_store(client), show_check, show_problem, &checking, &records);
    cmd_progress_end();
    int status = CMD_DONE;
    if (cmd_interrupted())
        status = cmd_refuse("interrupted after %" PRIu64 " records", records);
    else if (checking.problems > 0)
        status =
            cmd_refuse("%" PRIu64 " records checked, %" PRIu64 " errors found; stop the server "
                       "and run assay check --repair; if errors remain, restore a backup",
                       records, checking.problems);
    else if (stored != STORE_OK)
        status = cmd_store_refuse(client, stored);
    else
        cmd_say("%" PRIu64 " records checked, no errors.", records);
    client_close(client);
    return status;
}

int cmd_check(struct cmd *cmd)
{
    const struct guard guard = {"the check was not completed", cmd->conf->data_dir,
                                "Stop the server and restore your newest backup with assay restore "
                                "DIR, which checks the backup before it replaces anything",
                                NULL};
    return guard_run(cmd, &guard, check);
}
