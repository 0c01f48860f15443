#include "t/kit/widget.h"

struct server *server;
char *agent, *operators;

const struct surface_row surface[SURFACE] = {
    {"init", "POST"},
    {"messages", "POST"},
    {"conversation/messages", "GET"},
    {"conversation/read", "POST"},
    {"conversation/clear", "POST"},
    {"conversation/close", "POST"},
    {"request-human", "POST"},
    {"me", "DELETE"},
    {"events", "POST"},
    {"leads", "POST"},
    {"typing", "POST"},
    {"satisfaction", "POST"},
    {"coupon/apply", "POST"},
    {"messages/stream", "POST"},
    {"conversation/stream", "GET"},
    {"nothing/here", "GET"},
};

void widget_make(const char *origin)
{
    agent = assay_ok(server, "agent", "create", "--workspace", "main", "--name", "Shop", "--origin",
                     origin, NULL);
    operators = key_new(server, "main", "conversations:read", "conversations:write", NULL);
}

struct response *init_with(const char *of, const char *more)
{
    return http(server, .method = "POST", .path = "/api/v1/widget/init", .key = "",
                .headers = {JSON, FROM_SHOP}, .body = text("{\"agent_id\":\"%s\"%s}", of, more));
}

struct visitor visitor_of(const struct response *r)
{
    expect_status(r, 200);
    return (struct visitor){str_at(r, "data.jwt"), str_at(r, "data.visitor_id"),
                            str_at(r, "data.conversation_id"), str_at(r, "data.anonymous_id")};
}

struct visitor visitor_new(void)
{
    return visitor_of(init_with(agent, ""));
}

struct response *as(const struct visitor *v, const char *method, const char *path, const char *body)
{
    return http(server, .method = method, .path = text("/api/v1/widget/%s", path), .key = v->jwt,
                .headers = {FROM_SHOP, body ? JSON : NULL}, .body = body);
}

struct response *operate(const char *method, const char *path, const char *body)
{
    return http(server, .method = method, .path = text("/api/v1/%s", path), .key = operators,
                .headers = {body ? JSON : NULL}, .body = body);
}

struct response *operate_on(const struct visitor *v, const char *what, const char *body)
{
    return operate("POST", text("conversations/%s/%s", v->conversation, what), body);
}

struct response *post(const struct visitor *v, const char *path, const char *body)
{
    return as(v, "POST", path, body);
}
