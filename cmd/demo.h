/*
 * The parts of `assay demo`: a server of its own, a page to grade, an invented shop whose chat
 * answers from a synced catalogue, and the calls that users and shops make.
 */
#ifndef ASSAY_DEMO_H
#define ASSAY_DEMO_H

#include "cmd/cmd.h"
#include "cmd/store_client.h"
#include "core/conf/conf.h"
#include "core/auth/credential.h"
#include "core/text/json_in.h"

#include <sys/types.h>

/* The files of core/audit/demo, embedded at build time; the last has no name. */
struct demo_file {
    const char *name;
    struct str text;
};
extern const struct demo_file demo_files[];

/* ---- demo_server.c ---- */

struct demo_server {
    pid_t pid;
    char url[128]; /* of its first listener */
};

/*
 * demo_server_start(sets, set_count, log_path, server): run assayd, logging to a file, and wait
 * until it is ready. 0, or -1 after the reason was printed.
 * demo_server_stop(server): send TERM and wait; its exit status.
 */
int demo_server_start(const char *const *sets, size_t set_count, const char *log_path,
                      struct demo_server *server);
int demo_server_stop(struct demo_server *server);

/* demo_pending(): whether INT or TERM is pending (both are blocked while the demo works). */
bool demo_pending(void);

/* ---- demo_api.c ---- */

/* The answer to a call; ${body} is NULL if it is not JSON. */
struct demo_answer {
    long status; /* 0: no answer */
    struct json *body;
    char why[256];
};

/*
 * demo_call(method, url, key, form, answer): one request with an API key; ${form} is the body, or
 * NULL. Asks the server to wait for the grade.
 * demo_shop_call(method, url, token, json, answer): one signed request of bulk sync with a
 * workspace token; ${json} is empty for GET.
 * Free both answers with demo_answer_free.
 */
void demo_call(const char *method, const char *url, const char *key, const char *form,
               struct demo_answer *answer);
void demo_shop_call(const char *method, const char *url, const char *token, struct str json,
                    struct demo_answer *answer);
void demo_answer_free(struct demo_answer *answer);

/* demo_answer_refuse(answer): print what the server refused; returns CMD_REFUSED. */
int demo_answer_refuse(const struct demo_answer *answer);

/* demo_escape(text, out, size): percent-encode ${text}. False if it does not fit. */
bool demo_escape(const char *text, char *out, size_t size);

/* ---- demo_secret.c ---- */

/* A credential of the demo's workspace, kept in a file for the next run. */
struct demo_secret {
    const char *path;
    enum credential_kind kind;
    uint32_t scopes;
    char text[CREDENTIAL_SIZE];
};

/*
 * demo_secret_read(secret): from its file; false if the file has no credential.
 * demo_secret_make(cmd, secret): create one in the store and write its file.
 * demo_workspace(client): the id of the demo's workspace, created if missing; 0 after the reason
 * was printed.
 */
bool demo_secret_read(struct demo_secret *secret);
int demo_secret_make(struct cmd *cmd, struct demo_secret *secret);
uint64_t demo_workspace(struct client *client);

/* ---- demo_fill.c ---- */

/* demo_text(name): the text of an embedded file. */
struct str demo_text(const char *name);

/*
 * demo_fill(text, slots, out): append ${text} with each {{name}} replaced by the slot's value.
 * ${slots} end with a NULL name. An unknown name is replaced by nothing.
 * demo_html(text, out): append ${text} escaped for HTML.
 */
struct demo_slot {
    const char *name;
    struct str value;
};
void demo_fill(struct str text, const struct demo_slot *slots, struct buf *out);
void demo_html(const char *text, struct buf *out);

/* ---- demo_sync.c ---- */

/* The shop: its pages, products, coupons, and the questions to try. */
struct demo_catalogue {
    char origin[64]; /* http://127.0.0.1:8787 */
    struct json *json;
};

/* demo_catalogue_read(port, out): with permalinks on ${port} of loopback; json_free its tree. */
bool demo_catalogue_read(unsigned port, struct demo_catalogue *out);

/*
 * demo_handshake(api, token, catalogue): whether the server accepts the token.
 * demo_sync(api, token, agent, catalogue): send the catalogue by bulk sync, and wait until the chat
 * answers from all of it.
 */
bool demo_handshake(const char *api, const char *token, const struct demo_catalogue *catalogue);
int demo_sync(const char *api, const char *token, const struct ulid *agent,
              const struct demo_catalogue *catalogue);

/* ---- demo_chat.c ---- */

/*
 * demo_agent(client, workspace, catalogue, id): create the shop's agent, or bring it up to date.
 * demo_chat_element(api, agent, out): append the script element of its chat.
 */
int demo_agent(struct client *client, uint64_t workspace, const struct demo_catalogue *catalogue,
               struct ulid *id);
bool demo_chat_element(const char *api, const struct ulid *agent, struct buf *out);

/* ---- demo_shop.c ---- */

#define DEMO_PAGES_MAX 32

/* What the demo serves: the page to grade, and the shop. */
struct demo_page {
    char path[96];
    const char *type;
    bool shop; /* under the shop's Content-Security-Policy */
    struct buf body;
};
struct demo_site {
    struct demo_page pages[DEMO_PAGES_MAX];
    size_t count;
    struct buf policy; /* header lines */
};

/* demo_site_build(api, agent, catalogue, site), demo_site_free(site). */
bool demo_site_build(const char *api, const struct ulid *agent,
                     const struct demo_catalogue *catalogue, struct demo_site *site);
void demo_site_free(struct demo_site *site);

/* ---- demo_page.c ---- */

/*
 * demo_port(port): a loopback socket that listens on ${port} or, if that is taken, on any;
 * ${port} is set. -1 with errno.
 * demo_site_serve(fd, site): fork a process that serves ${site} until this process ends; its pid,
 * or -1.
 */
int demo_port(unsigned *port);
pid_t demo_site_serve(int fd, const struct demo_site *site);

#endif
