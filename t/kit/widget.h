/* For tests of the widget: a server with an agent and an operator's key, and its visitors. */
#ifndef ASSAY_T_WIDGET_KIT_H
#define ASSAY_T_WIDGET_KIT_H

#include "t/kit/harness.h"

#define JSON "Content-Type: application/json"
#define SHOP "https://shop.example"
#define FROM_SHOP "Origin: " SHOP

extern struct server *server;
extern char *agent, *operators; /* id of an agent; a key with both scopes of conversations */

/* widget_make(origin): creates both in the workspace "main" of ${server}, which runs. */
void widget_make(const char *origin);

/* Every route below /api/v1/widget/: init first, and last a path without a route. */
enum { SURFACE = 16 };
extern const struct surface_row {
    const char *path, *method;
} surface[SURFACE];

struct visitor {
    const char *jwt, *id, *conversation, *secret;
};

/*
 * init_with(of, more): starts a session with the agent ${of} and further members (",\"locale\":…"
 * or ""). visitor_of: the visitor of that response, which must be 200.
 */
struct response *init_with(const char *of, const char *more);
struct visitor visitor_of(const struct response *r);
struct visitor visitor_new(void);

/*
 * as: a visitor's request below /api/v1/widget/; post: a POST of the visitor. operate: an
 * operator's request below /api/v1/; operate_on: a POST of the operator about the conversation of
 * the visitor. A body is JSON.
 */
struct response *as(const struct visitor *v, const char *method, const char *path,
                    const char *body);
struct response *post(const struct visitor *v, const char *path, const char *body);
struct response *operate(const char *method, const char *path, const char *body);
struct response *operate_on(const struct visitor *v, const char *what, const char *body);

#endif
