/*
 * The parts of `assay demo`: a server of its own, a page to grade, and the calls a user would make.
 */
#ifndef ASSAY_DEMO_H
#define ASSAY_DEMO_H

#include "core/ipc/command_client.h"
#include "core/conf/conf.h"
#include "core/text/json_in.h"

#include <sys/types.h>

/* The sample page, embedded from core/audit/demo at build time. */
extern const unsigned char demo_page[];
extern const size_t demo_page_size;

/* demo_pending(): whether INT or TERM waits to be taken (both are blocked while the demo works). */
bool demo_pending(void);

/* demo_port(port): a loopback socket listening on ${port} or, where that is taken, on any; ${port} becomes what it is. -1 with errno. */
int demo_port(unsigned *port);

/*
 * demo_page_serve(fd, chat, chat_head): a process that answers on ${fd} with the sample page, and at /chat with ${chat} under the header
 * lines ${chat_head}, until this one ends; its id, or -1.
 */
pid_t demo_page_serve(int fd, struct str chat, struct str chat_head);

/*
 * demo_agent_have(client, workspace, port, id): the demo's agent, for pages on ${port} of loopback, made where it is not there. CMD_DONE or
 * CMD_REFUSED, told.
 */
int demo_agent_have(struct client *client, uint64_t workspace, unsigned port, struct ulid *id);

/* demo_chat_page(api, agent, page), demo_chat_head(api, head): append a page that has the agent's chat, and the header lines it wants. */
bool demo_chat_page(const char *api, const struct ulid *agent, struct buf *page);
bool demo_chat_head(const char *api, struct buf *head);

struct demo_server {
    pid_t pid;
    char url[128]; /* where it serves */
};

/*
 * demo_server_start(sets, set_count, log_path, server): run assayd, its log in a file, until it says ready. 0, or -1 and it was told why.
 * demo_server_stop(server): TERM, and wait.
 */
int demo_server_start(const char *const *sets, size_t set_count, const char *log_path, struct demo_server *server);
int demo_server_stop(struct demo_server *server);

/* A call's answer; ${body} is NULL where it is not JSON. */
struct demo_answer {
    long status; /* 0: no answer */
    struct json *body;
    char why[256];
};

/*
 * demo_call(method, url, key, form, answer): one request with the key; ${form} the body, NULL for none. Asks to wait for the grade. Free
 * with demo_answer_free.
 */
void demo_call(const char *method, const char *url, const char *key, const char *form, struct demo_answer *answer);
void demo_answer_free(struct demo_answer *answer);

/* demo_escape(text, out, size): ${text} percent-encoded, for a query or form. False when it does not fit. */
bool demo_escape(const char *text, char *out, size_t size);

#endif
