/*
 * demo: everything from nothing, as `make run` wants it. A server on the embedded defaults under var/, a workspace and key if there are
 * none, one page graded through the API, and what to try next.
 */
#include "cmd/cmd_store.h"
#include "core/auth/credential.h"
#include "cmd/demo.h"
#include "core/base/holder.h"
#include "cmd/report_print.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DIR_VAR "var"
#define KEY_PATH DIR_VAR "/demo.key"
#define LOG_PATH DIR_VAR "/assayd.log"
#define CONF_PATH DIR_VAR "/assay.yaml"
#define WORKSPACE "demo"
#define API_PORT 8080
#define PAGE_PORT 8787 /* a fixed one where it is free, so that a second run finds the first one's report */
#define GRADE_TRIES 120

#define SETS_MAX 8
#define SET_SIZE 96

struct demo {
    struct cmd *cmd;
    char set_texts[SETS_MAX][SET_SIZE];
    const char *sets[SETS_MAX];
    size_t set_count;
    struct conf *conf;
    struct demo_server server;
    int page_fd; /* the port of the demo's own pages; -1: none yet */
    unsigned page_port;
    struct ulid agent;
    char page_url[2100];
    char key[CREDENTIAL_SIZE];
};

static void __attribute__((format(printf, 2, 3))) add_set(struct demo *demo, const char *format, ...)
{
    char *text = demo->set_texts[demo->set_count];
    va_list args;
    va_start(args, format);
    vsnprintf(text, SET_SIZE, format, args);
    va_end(args);
    demo->sets[demo->set_count++] = text;
}

/* Whether ${port} of loopback is free, by taking it for a moment. */
static unsigned free_port(unsigned port)
{
    unsigned taken = port;
    int fd = demo_port(&taken);
    if (fd >= 0)
        close(fd);
    if (fd >= 0 && taken == port)
        return port;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    char who[HOLDER_TEXT];
    holder_text(holder_of_address((struct sockaddr *)&address), who);
    cmd_say("127.0.0.1:%u is in use by %s: the server takes a free port. Stop that process to have this one.", port, who);
    return 0;
}

/* The page to grade: the one given, or the sample. Both on a port of their own: the sample and the chat's page. */
static int choose_page(struct demo *demo)
{
    demo->page_port = PAGE_PORT;
    demo->page_fd = demo_port(&demo->page_port);
    if (demo->page_fd < 0)
        return cmd_refuse("there is no port for the sample page: %s", strerror(errno));
    if (demo->cmd->words_count > 0) {
        const char *url = demo->cmd->words[0];
        if ((size_t)snprintf(demo->page_url, sizeof(demo->page_url), "%s%s", strstr(url, "://") == NULL ? "https://" : "", url) >=
            sizeof(demo->page_url))
            return cmd_refuse("that URL is longer than 2,048 characters");
        return CMD_DONE;
    }
    snprintf(demo->page_url, sizeof(demo->page_url), "http://127.0.0.1:%u/", demo->page_port);
    add_set(demo, "audit.allow_private=127.0.0.1/32");
    add_set(demo, "audit.ports=80,443,%u", demo->page_port);
    return CMD_DONE;
}

/* For commands: what finds this server and its store. */
static bool conf_write(unsigned port)
{
    FILE *file = fopen(CONF_PATH, "we");
    if (file == NULL)
        return false;
    fprintf(file,
            "# made by assay demo, for commands: assay -c " CONF_PATH " key list\n"
            "data_dir: " DIR_VAR "/data\nrun_dir: " DIR_VAR "/run\nuser: \"\"\n"
            "listen:\n  - address: 127.0.0.1:%u\n",
            port);
    return fclose(file) == 0;
}

static int start_server(struct demo *demo)
{
    unsigned port = free_port(API_PORT);
    add_set(demo, "data_dir=" DIR_VAR "/data");
    add_set(demo, "run_dir=" DIR_VAR "/run");
    add_set(demo, "user=");
    add_set(demo, "listen.0.address=127.0.0.1:%u", port);
    if (mkdir(DIR_VAR, 0700) != 0 && errno != EEXIST)
        return cmd_refuse("%s cannot be made: %s", DIR_VAR, strerror(errno));
    if (!conf_write(port))
        return cmd_refuse("%s cannot be written: %s", CONF_PATH, strerror(errno));
    if (conf_load(NULL, false, demo->sets, demo->set_count, stderr, &demo->conf) != 0)
        return CMD_REFUSED;
    demo->cmd->conf = demo->conf;
    return demo_server_start(demo->sets, demo->set_count, LOG_PATH, &demo->server) == 0 ? CMD_DONE : CMD_REFUSED;
}

/* ---- the key ---- */

/* The key of an earlier run, if it still opens this store. */
static bool key_read(struct demo *demo)
{
    char url[256];
    enum credential_kind kind;
    struct demo_answer answer;
    FILE *file = fopen(KEY_PATH, "re");
    if (file == NULL)
        return false;
    bool read = fgets(demo->key, sizeof(demo->key), file) != NULL;
    fclose(file);
    demo->key[read ? strcspn(demo->key, "\n") : 0] = '\0';
    if (!credential_parse(str_of(demo->key), &kind))
        return false;
    /* what the key of an older version's run does not open */
    snprintf(url, sizeof(url), "%s/api/v1/conversations?per_page=10", demo->server.url);
    demo_call("GET", url, demo->key, NULL, &answer);
    bool good = answer.status == 200;
    demo_answer_free(&answer);
    return good;
}

static bool key_write(const char *secret)
{
    int fd = open(KEY_PATH ".new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    bool written = dprintf(fd, "%s\n", secret) > 0 && fchmod(fd, 0600) == 0;
    return close(fd) == 0 && written && rename(KEY_PATH ".new", KEY_PATH) == 0;
}

static void note_workspace(void *arg, enum store_status status, const struct store_workspace *workspace)
{
    uint64_t *id = arg;
    *id = status == STORE_OK ? workspace->id : 0;
}

/* The id of the workspace "demo", made if it is not there; 0 when it was told why not. */
static uint64_t workspace_have(struct client *client)
{
    uint64_t id = 0;
    struct store_change change = {.kind = CHANGE_WORKSPACE_CREATE, .name = STR(WORKSPACE)};
    struct store_answer answer = {.status = STORE_OK};
    store_workspace_find(client_store(client), STR(WORKSPACE), note_workspace, &id);
    store_read_end(client_store(client));
    if (id != 0)
        return id;
    if (cmd_store_change(client, &change, &answer) != CMD_DONE)
        return 0;
    if (answer.status != STORE_OK)
        cmd_store_refuse(client, answer.status);
    return answer.status == STORE_OK ? answer.id : 0;
}

static int key_make(struct demo *demo)
{
    uint8_t hash[CREDENTIAL_HASH];
    struct store_change change = {.kind = CHANGE_KEY_CREATE,
                                  .name = STR("demo"),
                                  .scopes = SCOPE_REPORTS_READ | SCOPE_REPORTS_WRITE | SCOPE_PROJECTS_READ | SCOPE_PROJECTS_WRITE |
                                            SCOPE_CONVERSATIONS_READ | SCOPE_CONVERSATIONS_WRITE};
    struct store_answer answer = {.status = STORE_OK};
    if (!credential_new(credential_prefix(CREDENTIAL_KEY), demo->key) || !credential_hash(str_of(demo->key), hash))
        return cmd_refuse("no secret could be made");
    struct client *client = cmd_store_open(demo->cmd);
    if (client == NULL)
        return CMD_REFUSED;
    change.hash = (struct str){(const char *)hash, sizeof(hash)};
    change.workspace = workspace_have(client);
    int status = change.workspace == 0 ? CMD_REFUSED : cmd_store_change(client, &change, &answer);
    if (status == CMD_DONE && answer.status != STORE_OK)
        status = cmd_store_refuse(client, answer.status);
    if (status == CMD_DONE && !key_write(demo->key))
        status = cmd_refuse("%s cannot be written: %s", KEY_PATH, strerror(errno));
    client_close(client);
    return status;
}

/* ---- the demo's pages ---- */

static int agent_have(struct demo *demo)
{
    struct client *client = cmd_store_open(demo->cmd);
    if (client == NULL)
        return CMD_REFUSED;
    uint64_t workspace = workspace_have(client);
    int status = workspace == 0 ? CMD_REFUSED : demo_agent_have(client, workspace, demo->page_port, &demo->agent);
    client_close(client);
    return status;
}

/* The sample and the chat, by a process of their own. */
static int serve_pages(struct demo *demo)
{
    struct buf chat = {0}, head = {0};
    int status = agent_have(demo);
    if (status == CMD_DONE && (!demo_chat_page(demo->server.url, &demo->agent, &chat) || !demo_chat_head(demo->server.url, &head)))
        status = cmd_refuse("the chat's page cannot be made");
    if (status == CMD_DONE && demo_page_serve(demo->page_fd, buf_view(&chat), buf_view(&head)) < 0)
        status = cmd_refuse("the demo's pages cannot be served: %s", strerror(errno));
    close(demo->page_fd);
    buf_free(&chat);
    buf_free(&head);
    return status;
}

/* ---- the report ---- */

static const char *member_text(const struct json *object, const char *name)
{
    return json_chars(json_member(object, name));
}

static int refuse_answer(const struct demo_answer *answer)
{
    const struct json *error = json_member(answer->body, "error");
    if (answer->status == 0)
        return cmd_refuse("the server did not answer: %s", answer->why);
    const char *message = member_text(error, "message");
    if (json_member(error, "errors") != NULL)
        message = member_text(error, "errors");
    return cmd_refuse("the server answered %ld: %s", answer->status, message == NULL ? "no reason given" : message);
}

/* The id of an earlier run's report of this page; 0. */
static uint64_t report_find(const struct demo *demo)
{
    char url[8192], escaped[7000];
    struct demo_answer answer;
    uint64_t id = 0;
    if (!demo_escape(demo->page_url, escaped, sizeof(escaped)))
        return 0;
    snprintf(url, sizeof(url), "%s/api/v1/reports?per_page=10&search=%s", demo->server.url, escaped);
    demo_call("GET", url, demo->key, NULL, &answer);
    const struct json *items = answer.status == 200 ? json_member(answer.body, "data") : NULL;
    for (size_t i = 0; i < json_length(items) && id == 0; i++) {
        const struct json *report = json_item(items, i);
        const char *text = member_text(report, "url");
        if (text != NULL && strcmp(text, demo->page_url) == 0)
            id = json_u64(json_member(report, "id"));
    }
    demo_answer_free(&answer);
    return id;
}

/* Grade the page: anew where an earlier run made its report, else a new one. ${answer} holds the record on success. */
static int report_grade(const struct demo *demo, struct demo_answer *answer)
{
    char url[256], form[7100] = "url=";
    uint64_t id = report_find(demo);
    if (id != 0) {
        snprintf(url, sizeof(url), "%s/api/v1/reports/%" PRIu64, demo->server.url, id);
        demo_call("PUT", url, demo->key, "update=1", answer);
    } else {
        snprintf(url, sizeof(url), "%s/api/v1/reports", demo->server.url);
        if (!demo_escape(demo->page_url, form + 4, sizeof(form) - 4))
            return cmd_refuse("that URL is too long");
        demo_call("POST", url, demo->key, form, answer);
    }
    for (int tries = 0; tries < GRADE_TRIES && !demo_pending(); tries++) {
        const char *status = member_text(json_member(answer->body, "data"), "status");
        if (answer->status < 200 || answer->status > 299 || status == NULL)
            return refuse_answer(answer);
        if (strcmp(status, "pending") != 0)
            return CMD_DONE;
        id = json_u64(json_member(json_member(answer->body, "data"), "id"));
        snprintf(url, sizeof(url), "%s/api/v1/reports/%" PRIu64, demo->server.url, id);
        demo_answer_free(answer);
        nanosleep(&(struct timespec){.tv_nsec = 250000000}, NULL);
        demo_call("GET", url, demo->key, NULL, answer);
    }
    return cmd_refuse("the page is still being graded; look again with the curl line above");
}

static void report_show(const struct json *data)
{
    const struct json *error = json_member(data, "error");
    const char *status = member_text(data, "status");
    struct report_look look = report_look_of(stdout);
    struct report_print report = {
        .url = member_text(data, "url"),
        .verdict = status != NULL && strcmp(status, "done") == 0 ? member_text(data, "result") : NULL,
        .score = (int)json_u64(json_member(data, "score")),
        .results = json_member(data, "results"),
        .error_code = member_text(error, "code"),
        .error_message = member_text(error, "message"),
    };
    report_print(stdout, &look, &report);
}

static void show_next(const struct demo *demo, const struct json *data)
{
    const char *api = demo->server.url;
    printf("  The server is at %s and goes on until Ctrl-C. Try in another terminal, from this directory:\n\n", api);
    puts("    KEY=$(cat " KEY_PATH ")");
    printf("    curl -s -H \"Authorization: Bearer $KEY\" %s/api/v1/reports/%" PRIu64 "\n", api, json_u64(json_member(data, "id")));
    printf("    curl -s -H \"Authorization: Bearer $KEY\" -d url=https://example.com/ %s/api/v1/reports\n", api);
    printf("    curl -s -H \"Authorization: Bearer $KEY\" '%s/api/v1/projects?sort_by=project&sort=asc'\n\n", api);
    printf("  The chat widget is on http://127.0.0.1:%u/chat, a page of another origin. Write something there, and answer as its "
           "operator:\n\n",
           demo->page_port);
    printf("    ID=$(curl -s -H \"Authorization: Bearer $KEY\" '%s/api/v1/conversations?per_page=10' | sed 's/^[^[]*\\[{\"id\":\"//; "
           "s/\".*//')\n",
           api);
    printf("    curl -s -H \"Authorization: Bearer $KEY\" -H 'Content-Type: application/json' -d '{\"name\":\"Anna\"}' "
           "%s/api/v1/conversations/$ID/claim\n",
           api);
    printf("    curl -s -H \"Authorization: Bearer $KEY\" -H 'Content-Type: application/json' -d '{\"message\":\"Hello, a person here.\"}' "
           "%s/api/v1/conversations/$ID/messages\n\n",
           api);
    puts("  Its log is " LOG_PATH ", its store " DIR_VAR "/data. Commands find it by -c " CONF_PATH ", such as\n"
         "  ./assay -c " CONF_PATH " key list; ./assay -h shows what operators can do.\n");
    fflush(stdout);
}

/* Until Ctrl-C, TERM, or the server's end, which nobody asked for. */
static int stay(struct demo *demo, const sigset_t *signals)
{
    for (;;) {
        int number = sigwaitinfo(signals, NULL), status;
        if (number == SIGINT || number == SIGTERM) {
            fputc('\n', stderr);
            cmd_say("Stopping.");
            return demo_server_stop(&demo->server) == 0 ? CMD_DONE : cmd_refuse("assayd did not stop in good order; see %s", LOG_PATH);
        }
        if (number == SIGCHLD && waitpid(demo->server.pid, &status, WNOHANG) == demo->server.pid) {
            demo->server.pid = -1;
            return cmd_refuse("assayd ended; see %s", LOG_PATH);
        }
    }
}

static int work(struct demo *demo)
{
    int status = choose_page(demo);
    if (status == CMD_DONE)
        status = start_server(demo);
    if (status == CMD_DONE && !key_read(demo))
        status = key_make(demo);
    if (status == CMD_DONE)
        status = serve_pages(demo);
    if (status != CMD_DONE)
        return status;
    struct demo_answer answer = {.status = 0};
    cmd_say("Grading %s …", demo->page_url);
    status = report_grade(demo, &answer);
    if (status == CMD_DONE) {
        const struct json *data = json_member(answer.body, "data");
        report_show(data);
        show_next(demo, data);
    }
    demo_answer_free(&answer);
    return status;
}

int cmd_demo(struct cmd *cmd)
{
    struct demo demo = {.cmd = cmd, .page_fd = -1};
    sigset_t signals, before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGCHLD);
    sigprocmask(SIG_BLOCK, &signals, &before);
    int status = work(&demo);
    if (status == CMD_DONE)
        status = stay(&demo, &signals);
    demo_server_stop(&demo.server);
    conf_free(demo.conf);
    cmd->conf = NULL;
    return status;
}
