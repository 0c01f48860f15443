/*
 * demo, what `make run` starts: a server on the built-in defaults under var/, a workspace with its
 * credentials, a shop whose chat answers, one graded page, and what to try next. A second run finds
 * all of it and changes nothing.
 */
#include "cmd/cmd_store.h"
#include "cmd/demo.h"
#include "core/base/holder.h"
#include "cmd/report_print.h"

#include <errno.h>
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
#define TOKEN_PATH DIR_VAR "/demo.token"
#define LOG_PATH DIR_VAR "/assayd.log"
#define CONF_PATH DIR_VAR "/assay.yaml"
#define API_PORT 8080
#define PAGE_PORT 8787 /* fixed if free, so that a second run finds the first one's report */
#define GRADE_TRIES 120
#define KEY_SCOPES                                                                                 \
    (SCOPE_REPORTS_READ | SCOPE_REPORTS_WRITE | SCOPE_PROJECTS_READ | SCOPE_PROJECTS_WRITE |       \
     SCOPE_CONVERSATIONS_READ | SCOPE_CONVERSATIONS_WRITE)

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
    struct demo_catalogue catalogue;
    char page_url[2100];
    struct demo_secret key, token;
};

static void __attribute__((format(printf, 2, 3)))
add_set(struct demo *demo, const char *format, ...)
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
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                                  .sin_port = htons((uint16_t)port)};
    char who[HOLDER_TEXT];
    holder_text(holder_of_address((struct sockaddr *)&address), who);
    cmd_say("127.0.0.1:%u is in use by %s: the server takes another port. Stop that process to use "
            "this one.",
            port, who);
    return 0;
}

/* The page to grade: the given one, or the sample, which the demo serves beside the shop. */
static int choose_page(struct demo *demo)
{
    demo->page_port = PAGE_PORT;
    demo->page_fd = demo_port(&demo->page_port);
    if (demo->page_fd < 0)
        return cmd_refuse("there is no port for the sample page: %s", strerror(errno));
    if (!demo_catalogue_read(demo->page_port, &demo->catalogue))
        return cmd_refuse("the catalogue cannot be read");
    if (demo->cmd->words_count > 0) {
        const char *url = demo->cmd->words[0];
        if ((size_t)snprintf(demo->page_url, sizeof(demo->page_url), "%s%s",
                             strstr(url, "://") == NULL ? "https://" : "",
                             url) >= sizeof(demo->page_url))
            return cmd_refuse("that URL is longer than 2,048 characters");
        return CMD_DONE;
    }
    snprintf(demo->page_url, sizeof(demo->page_url), "http://127.0.0.1:%u/", demo->page_port);
    add_set(demo, "audit.allow_private=127.0.0.1/32");
    add_set(demo, "audit.ports=80,443,%u", demo->page_port);
    return CMD_DONE;
}

/* The configuration by which commands find this server and its store. */
static bool conf_write(unsigned port)
{
    FILE *file = fopen(CONF_PATH, "we");
    if (file == NULL)
        return false;
    fprintf(file,
            "# Made by assay demo for commands: assay -c " CONF_PATH " key list\n"
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
    return demo_server_start(demo->sets, demo->set_count, LOG_PATH, &demo->server) == 0
               ? CMD_DONE
               : CMD_REFUSED;
}

/* ---- credentials ---- */

/* Whether the key of an earlier run still opens this store. */
static bool key_good(const struct demo *demo)
{
    char url[256];
    struct demo_answer answer;
    snprintf(url, sizeof(url), "%s/api/v1/conversations?per_page=10", demo->server.url);
    demo_call("GET", url, demo->key.text, NULL, &answer);
    bool good = answer.status == 200;
    demo_answer_free(&answer);
    return good;
}

static int credentials_have(struct demo *demo)
{
    int status = CMD_DONE;
    if (!demo_secret_read(&demo->key) || !key_good(demo))
        status = demo_secret_make(demo->cmd, &demo->key);
    if (status == CMD_DONE &&
        (!demo_secret_read(&demo->token) ||
         !demo_handshake(demo->server.url, demo->token.text, &demo->catalogue)))
        status = demo_secret_make(demo->cmd, &demo->token);
    return status;
}

/* ---- the shop ---- */

static int agent_have(struct demo *demo)
{
    struct client *client = cmd_store_open(demo->cmd);
    if (client == NULL)
        return CMD_REFUSED;
    uint64_t workspace = demo_workspace(client);
    int status = workspace == 0 ? CMD_REFUSED
                                : demo_agent(client, workspace, &demo->catalogue, &demo->agent);
    client_close(client);
    return status;
}

/* The page to grade and the shop, by a process of their own. */
static int serve_pages(struct demo *demo)
{
    struct demo_site *site = calloc(1, sizeof(*site));
    int status = CMD_DONE;
    if (site == NULL || !demo_site_build(demo->server.url, &demo->agent, &demo->catalogue, site))
        status = cmd_refuse("the demo's pages cannot be made");
    if (status == CMD_DONE && demo_site_serve(demo->page_fd, site) < 0)
        status = cmd_refuse("the demo's pages cannot be served: %s", strerror(errno));
    close(demo->page_fd);
    if (site != NULL)
        demo_site_free(site);
    free(site);
    return status;
}

static int open_shop(struct demo *demo)
{
    int status = agent_have(demo);
    if (status == CMD_DONE)
        status = demo_sync(demo->server.url, demo->token.text, &demo->agent, &demo->catalogue);
    return status == CMD_DONE ? serve_pages(demo) : status;
}

/* ---- the report ---- */

static const char *member_text(const struct json *object, const char *name)
{
    return json_chars(json_member(object, name));
}

/* The id of an earlier run's report of this page; 0 if there is none. */
static uint64_t report_find(const struct demo *demo)
{
    char url[8192], escaped[7000];
    struct demo_answer answer;
    uint64_t id = 0;
    if (!demo_escape(demo->page_url, escaped, sizeof(escaped)))
        return 0;
    snprintf(url, sizeof(url), "%s/api/v1/reports?per_page=10&search=%s", demo->server.url,
             escaped);
    demo_call("GET", url, demo->key.text, NULL, &answer);
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

/* Grade the page: again if an earlier run made its report. On success ${answer} has the record. */
static int report_grade(const struct demo *demo, struct demo_answer *answer)
{
    char url[256], form[7100] = "url=";
    uint64_t id = report_find(demo);
    if (id != 0) {
        snprintf(url, sizeof(url), "%s/api/v1/reports/%" PRIu64, demo->server.url, id);
        demo_call("PUT", url, demo->key.text, "update=1", answer);
    } else {
        snprintf(url, sizeof(url), "%s/api/v1/reports", demo->server.url);
        if (!demo_escape(demo->page_url, form + 4, sizeof(form) - 4))
            return cmd_refuse("that URL is too long");
        demo_call("POST", url, demo->key.text, form, answer);
    }
    for (int tries = 0; tries < GRADE_TRIES && !demo_pending(); tries++) {
        const char *status = member_text(json_member(answer->body, "data"), "status");
        if (answer->status < 200 || answer->status > 299 || status == NULL)
            return demo_answer_refuse(answer);
        if (strcmp(status, "pending") != 0)
            return CMD_DONE;
        id = json_u64(json_member(json_member(answer->body, "data"), "id"));
        snprintf(url, sizeof(url), "%s/api/v1/reports/%" PRIu64, demo->server.url, id);
        demo_answer_free(answer);
        nanosleep(&(struct timespec){.tv_nsec = 250000000}, NULL);
        demo_call("GET", url, demo->key.text, NULL, answer);
    }
    return cmd_refuse("the page is still being graded; run the demo again");
}

static void report_show(const struct json *data)
{
    const struct json *error = json_member(data, "error");
    const char *status = member_text(data, "status");
    struct report_look look = report_look_of(stdout);
    struct report_print report = {
        .url = member_text(data, "url"),
        .verdict =
            status != NULL && strcmp(status, "done") == 0 ? member_text(data, "result") : NULL,
        .score = (int)json_u64(json_member(data, "score")),
        .results = json_member(data, "results"),
        .error_code = member_text(error, "code"),
        .error_message = member_text(error, "message"),
    };
    report_print(stdout, &look, &report);
}

static void show_page(const struct json *data)
{
    const char *link = member_text(data, "link");
    if (link == NULL)
        return;
    fputs("  See the report in a browser: ", stdout);
    cmd_print_plain(stdout, str_of(link), SIZE_MAX);
    fputs("\n\n", stdout);
}

static void show_api(const struct demo *demo, const struct json *data)
{
    const char *api = demo->server.url;
    puts("  Call the API from another terminal, in this directory:\n\n"
         "    KEY=$(cat " KEY_PATH ")");
    printf("    curl -s -H \"Authorization: Bearer $KEY\" %s/api/v1/reports/%" PRIu64 "\n", api,
           json_u64(json_member(data, "id")));
    printf("    curl -s -H \"Authorization: Bearer $KEY\" -d url=https://example.com/ "
           "%s/api/v1/reports\n",
           api);
    printf("    curl -s -H \"Authorization: Bearer $KEY\" "
           "'%s/api/v1/projects?sort_by=project&sort=asc'\n\n",
           api);
}

static void show_chat(const struct demo *demo)
{
    const struct json *catalogue = demo->catalogue.json;
    const struct json *questions = json_member(catalogue, "questions");
    const char *code = member_text(json_item(json_member(catalogue, "coupons"), 0), "code");
    printf("  Chat with the demo shop: http://127.0.0.1:%u/chat\n"
           "  It answers from %zu pages and %zu products, which were synced. Ask, for example:\n\n",
           demo->page_port, json_length(json_member(catalogue, "posts")),
           json_length(json_member(catalogue, "products")));
    for (size_t i = 0; i < json_length(questions); i++)
        printf("    %s\n", json_chars(json_item(questions, i)));
    printf("\n  The coupon code %s works in the basket of that page.\n\n", code);
}

static void show_operator(const struct demo *demo)
{
    const char *api = demo->server.url;
    puts("  Answer a visitor yourself:\n");
    printf("    ID=$(curl -s -H \"Authorization: Bearer $KEY\" "
           "'%s/api/v1/conversations?per_page=10' | "
           "sed 's/^[^[]*\\[{\"id\":\"//; s/\".*//')\n",
           api);
    printf("    curl -s -H \"Authorization: Bearer $KEY\" -H 'Content-Type: application/json' "
           "-d '{\"name\":\"Anna\"}' %s/api/v1/conversations/$ID/claim\n",
           api);
    printf("    curl -s -H \"Authorization: Bearer $KEY\" -H 'Content-Type: application/json' "
           "-d '{\"message\":\"Hello, this is Anna.\"}' "
           "%s/api/v1/conversations/$ID/messages\n\n",
           api);
}

static void show_next(const struct demo *demo, const struct json *data)
{
    show_page(data);
    show_chat(demo);
    show_api(demo, data);
    show_operator(demo);
    printf("  API reference: %s/docs\n"
           "  Log: " LOG_PATH "  Store: " DIR_VAR "/data\n"
           "  Commands: ./assay -c " CONF_PATH " key list; ./assay -h lists all commands.\n\n"
           "  The server is at %s and runs until Ctrl-C.\n\n",
           demo->server.url, demo->server.url);
    fflush(stdout);
}

/* Until Ctrl-C, TERM or an unexpected end of the server. */
static int stay(struct demo *demo, const sigset_t *signals)
{
    for (;;) {
        int number = sigwaitinfo(signals, NULL), status;
        if (number == SIGINT || number == SIGTERM) {
            fputc('\n', stderr);
            cmd_say("Stopping.");
            return demo_server_stop(&demo->server) == 0
                       ? CMD_DONE
                       : cmd_refuse("assayd did not stop in good order; see %s", LOG_PATH);
        }
        if (number == SIGCHLD && waitpid(demo->server.pid, &status, WNOHANG) == demo->server.pid) {
            demo->server.pid = -1;
            return cmd_refuse("assayd ended; see %s", LOG_PATH);
        }
    }
}

static int grade(struct demo *demo)
{
    struct demo_answer answer = {.status = 0};
    cmd_say("Grading %s …", demo->page_url);
    int status = report_grade(demo, &answer);
    if (status == CMD_DONE) {
        const struct json *data = json_member(answer.body, "data");
        report_show(data);
        show_next(demo, data);
    }
    demo_answer_free(&answer);
    return status;
}

static int work(struct demo *demo)
{
    int status = choose_page(demo);
    if (status == CMD_DONE)
        status = start_server(demo);
    if (status == CMD_DONE)
        status = credentials_have(demo);
    if (status == CMD_DONE)
        status = open_shop(demo);
    return status == CMD_DONE ? grade(demo) : status;
}

int cmd_demo(struct cmd *cmd)
{
    struct demo demo = {
        .cmd = cmd,
        .page_fd = -1,
        .key = {.path = KEY_PATH, .kind = CREDENTIAL_KEY, .scopes = KEY_SCOPES},
        .token = {.path = TOKEN_PATH,
                  .kind = CREDENTIAL_TOKEN,
                  .scopes = SCOPE_WP_SYNC | SCOPE_SIGNED},
    };
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
    json_free(demo.catalogue.json);
    conf_free(demo.conf);
    cmd->conf = NULL;
    return status;
}
