/* assay check: checks every record and index of the store, and rebuilds indexes. */
#include "cmd/cmd_store.h"
#include "cmd/guard.h"

#include <inttypes.h>
#include <stdio.h>

const struct cmd_option cmd_check_options[] = {
    {"--repair", NULL, "first rebuild all indexes from the records; the server must be stopped"},
    {.name = NULL},
};

/* An index of reports that must be rebuilt. */
struct lost {
    uint64_t workspace, id;
};

#define LOST_MAX 1000 /* others are left to the next check */

struct checking {
    uint64_t problems;
    bool json;
    struct buf lost; /* of struct lost, one of each workspace */
};

static void note_lost(void *arg, uint64_t workspace, uint64_t id)
{
    struct checking *checking = arg;
    struct lost *lost = (struct lost *)(void *)checking->lost.p;
    for (size_t i = 0; i < checking->lost.n / sizeof(*lost); i++)
        if (lost[i].workspace == workspace) {
            lost[i].id = lost[i].id == 0 ? id : lost[i].id;
            return;
        }
    if (checking->lost.n < LOST_MAX * sizeof(*lost))
        buf_add(&checking->lost, &(struct lost){workspace, id}, sizeof(*lost));
}

/* Have the running server rebuild the indexes. The number of those that it was asked for. */
static size_t rebuild_lost(struct client *client, const struct checking *checking)
{
    const struct lost *lost = (const struct lost *)(const void *)checking->lost.p;
    size_t asked = 0;
    for (size_t i = 0; i < checking->lost.n / sizeof(*lost); i++)
        asked += client_send_local(client, &(struct store_change){.kind = CHANGE_INDEX_LOST,
                                                                  .workspace = lost[i].workspace,
                                                                  .id = lost[i].id});
    return asked;
}

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
        return cmd_refuse("interrupted; indexes that are not rebuilt stay as they were");
    return stored == STORE_OK ? CMD_DONE : cmd_store_refuse(client, stored);
}

static int say_problems(struct client *client, const struct checking *checking, uint64_t records)
{
    const size_t asked = rebuild_lost(client, checking);
    if (asked > 0)
        return cmd_refuse("%" PRIu64 " records checked, %" PRIu64 " errors found; the server "
                          "rebuilds the wrong indexes of reports (%zu): check again in a minute; "
                          "if errors remain, stop the server and run assay check --repair",
                          records, checking->problems, asked);
    return cmd_refuse("%" PRIu64 " records checked, %" PRIu64 " errors found; stop the server "
                      "and run assay check --repair; if errors remain, restore a backup",
                      records, checking->problems);
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
    store_on_lost(client_store(client), note_lost, &checking);
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
        status = say_problems(client, &checking, records);
    else if (stored != STORE_OK)
        status = cmd_store_refuse(client, stored);
    else
        cmd_say("%" PRIu64 " records checked, no errors.", records);
    buf_free(&checking.lost);
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
