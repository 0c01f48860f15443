/*
 * For tests of the store's widget records: a store with one agent, changes made by its visitors,
 * and readers that return what a callback got.
 */
#ifndef ASSAY_T_STORE_WIDGET_KIT_H
#define ASSAY_T_STORE_WIDGET_KIT_H

#include "t/kit/store.h"

#define DAY ((int64_t)86400000)

extern struct kit kit;
extern uint64_t workspace;
extern struct ulid agent; /* of ${workspace} */

/* A fixture: creates both; at its end the store must be consistent. */
void widget_begin(void);
void widget_end(void);

struct visitor {
    struct ulid agent, id, conversation;
    char secret[32];
};

struct ulid agent_new(uint64_t of);

/*
 * init_try(of, secret, next): starts a session with the agent ${of}, with a secret (NULL: none), or
 * with ${next}, which is filled in. visitor_of: a new visitor of that agent. visitor_new: a new
 * visitor of ${agent}.
 */
struct store_answer init_try(const struct ulid *of, const char *secret, char *next);
struct visitor visitor_of(const struct ulid *of);
struct visitor visitor_new(void);

/* a change of ${v}'s */
#define OF(v) .agent = (v)->agent, .visitor = (v)->id, .conversation = (v)->conversation

/*
 * Changes of a visitor, and of an operator (with this key) to a conversation. events: kinds, ended
 * by NULL.
 */
struct store_answer post(const struct visitor *v, const char *body);
struct store_answer set(const struct visitor *v, uint32_t fields);
struct store_answer operate(uint64_t key, const struct ulid *conversation, uint32_t fields);
struct store_answer lead(const struct visitor *v, const char *email, const char *name);
struct store_answer events(const struct visitor *v, const char *const *kinds);
struct store_answer rate(const struct visitor *v, int32_t score, const char *comment);

/* Records of the store. */
struct texts {
    char text[64][320];
    struct ulid id[64];
    size_t count;
    enum store_status end;
};
struct texts messages(const struct ulid *conversation, const struct ulid *after,
                      const struct ulid *before, bool newest, unsigned limit);
/* rows returns at most rows_most. */
extern size_t rows_most;
struct texts rows(enum store_rows kind, struct store_rows_query q);
struct store_conversation conversation(const struct ulid *id); /* version 0: none */
/*
 * Callbacks. note_message: fills a struct texts. note_conversation: fills a struct
 * store_conversation.
 */
void note_message(void *arg, enum store_status status, const struct store_message *m);
void note_conversation(void *arg, enum store_status status, const struct store_conversation *c);
enum store_status session(const struct ulid *a, const struct ulid *v, const struct ulid *c);

/* claim(key, v, name): an operator of that name claims the conversation, with that API key. */
struct store_answer claim(uint64_t key, const struct visitor *v, struct str name);

#endif
