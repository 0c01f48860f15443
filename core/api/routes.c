#include "core/api/api_internal.h"
#include "core/api/widget_internal.h"
#include "core/api/wp_internal.h"
#include "core/http/pagination.h"
#include "core/web/pages.h"
#include "core/widget/script.h"

static const char *const by_project[] = {"project", NULL};
static const char *const by_url[] = {"url", NULL};
static const char *const projects_sorts[] = {"created_at", "project", NULL}; /* enum project_sort */
/* enum report_sort */
static const char *const reports_sorts[] = {"id", "generated_at", "url", "score", NULL};
static const char *const directions[] = {"desc", "asc", NULL};
static const char *const page_sizes[] = {"10", "25", "50", "100", NULL}; /* api_per_page */
/* enum report_result, minus one */
static const char *const results[] = {"good", "decent", "bad", NULL};
static const char *const statuses[] = {"pending", "done", "failed", NULL}; /* enum report_status */
static const char *const privacies[] = {"0", "1", "2", NULL};              /* enum report_privacy */
static const char *const yes_no[] = {"0", "1", NULL};
static const char *const includes[] = {"results", NULL};

/*
 * Columns: name, type, choices, minimum, maximum (length or number), default. In the order of the
 * enums in api.h.
 */
static const struct field projects_list_fields[] = {
    [PROJECTS_SEARCH] = {"search", FIELD_TEXT, NULL, 0, 0, NULL},
    [PROJECTS_SEARCH_BY] = {"search_by", FIELD_CHOICE, by_project, 0, 0, "project"},
    [PROJECTS_SORT_BY] = {"sort_by", FIELD_CHOICE, projects_sorts, 0, 0, "created_at"},
    [PROJECTS_SORT] = {"sort", FIELD_CHOICE, directions, 0, 0, "desc"},
    [PROJECTS_PER_PAGE] = {"per_page", FIELD_CHOICE, page_sizes, 0, 0, "10"},
    [PROJECTS_PAGE] = {"page", FIELD_NUMBER, NULL, 1, PAGINATION_PAGE_MAX, "1"},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field reports_list_fields[] = {
    [REPORTS_SEARCH] = {"search", FIELD_TEXT, NULL, 0, 0, NULL},
    [REPORTS_SEARCH_BY] = {"search_by", FIELD_CHOICE, by_url, 0, 0, "url"},
    [REPORTS_PROJECT] = {"project", FIELD_TEXT, NULL, 1, 0, NULL},
    [REPORTS_RESULT] = {"result", FIELD_CHOICE, results, 0, 0, NULL},
    [REPORTS_STATUS] = {"status", FIELD_CHOICE, statuses, 0, 0, NULL},
    [REPORTS_SORT_BY] = {"sort_by", FIELD_CHOICE, reports_sorts, 0, 0, "id"},
    [REPORTS_SORT] = {"sort", FIELD_CHOICE, directions, 0, 0, "desc"},
    [REPORTS_PER_PAGE] = {"per_page", FIELD_CHOICE, page_sizes, 0, 0, "10"},
    [REPORTS_PAGE] = {"page", FIELD_NUMBER, NULL, 1, PAGINATION_PAGE_MAX, "1"},
    [REPORTS_INCLUDE] = {"include", FIELD_CHOICE, includes, 0, 0, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
/* Without privacy 2 a password is ignored, so the handler checks its length. */
static const struct field reports_create_fields[] = {
    [CREATE_URL] = {"url", FIELD_TEXT, NULL, 1, 2048, NULL},
    [CREATE_PRIVACY] = {"privacy", FIELD_CHOICE, privacies, 0, 0, "0"},
    [CREATE_PASSWORD] = {"password", FIELD_TEXT, NULL, 0, 16384, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field reports_update_fields[] = {
    [UPDATE_PRIVACY] = {"privacy", FIELD_CHOICE, privacies, 0, 0, NULL},
    [UPDATE_PASSWORD] = {"password", FIELD_TEXT, NULL, 1, 255, NULL},
    [UPDATE_UPDATE] = {"update", FIELD_CHOICE, yes_no, 0, 0, "0"},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};

/* ---- the widget ---- */

static const char *const typing_statuses[] = {"on", "off", NULL};
/* widget_leave.c */
static const char *const ratings[] = {"1", "2", "3", "4", "5", "positive", "negative", NULL};
/* enum conversation_status */
static const char *const conversation_statuses[] = {"open", "waiting", "claimed", "closed", NULL};

/* enum store_search_by */
static const char *const by_text_or_visitor[] = {"text", "visitor", NULL};

static const struct field init_fields[] = {
    [INIT_AGENT] = {"agent_id", FIELD_TEXT, NULL, 1, 64,
                    NULL}, /* must be first: session_agent_of_body */
    [INIT_PAGE_URL] = {"page_url", FIELD_TEXT, NULL, 0, 0, NULL},
    [INIT_ANON] = {"anon_id", FIELD_TEXT, NULL, 0, 128, NULL},
    [INIT_LOCALE] = {"locale", FIELD_TEXT, NULL, 0, 64, NULL},
    [INIT_TITLE] = {"page_title", FIELD_CHARS, NULL, 0, 512, NULL},
    [INIT_REFERRER] = {"referrer", FIELD_TEXT, NULL, 0, 0, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field message_fields[] = {
    [MESSAGE_TEXT] = {"message", FIELD_CHARS, NULL, 1, 4000, NULL},
    [MESSAGE_PAGE_URL] = {"page_url", FIELD_TEXT, NULL, 0, 0, NULL},
    [MESSAGE_PAGE_CONTEXT] = {"page_context", FIELD_JSON, NULL, 0, 8192, NULL},
    [MESSAGE_CLIENT_ID] = {"client_message_id", FIELD_CHARS, NULL, 1, 64, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field page_fields[] = {
    [PAGE_AFTER] = {"after", FIELD_TEXT, NULL, 0, 64, NULL},
    [PAGE_BEFORE] = {"before", FIELD_TEXT, NULL, 0, 64, NULL},
    [PAGE_LIMIT] = {"limit", FIELD_NUMBER, NULL, 1, WIDGET_MESSAGES_MAX, "20"},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field events_fields[] = {
    [EVENTS_BATCH] = {"events", FIELD_JSON, NULL, 0, 0, NULL},
    [EVENTS_ONE] = {"event", FIELD_TEXT, NULL, 1, 64, NULL},
    [EVENTS_METADATA] = {"metadata", FIELD_JSON, NULL, 0, 4096, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field lead_fields[] = {
    [LEAD_EMAIL] = {"email", FIELD_TEXT, NULL, 3, 254, NULL},
    [LEAD_NAME] = {"name", FIELD_CHARS, NULL, 0, 200, NULL},
    [LEAD_PHONE] = {"phone", FIELD_CHARS, NULL, 0, 64, NULL},
    [LEAD_FIELDS] = {"fields", FIELD_JSON, NULL, 0, 8192, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field typing_fields[] = {
    [TYPING_STATUS] = {"typing_status", FIELD_CHOICE, typing_statuses, 0, 0, "on"},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field rating_fields[] = {
    [RATING_VALUE] = {"rating", FIELD_CHOICE, ratings, 0, 0, NULL},
    [RATING_COMMENT] = {"comment", FIELD_CHARS, NULL, 0, 2000, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field coupon_fields[] = {
    [COUPON_CODE] = {"code", FIELD_CHARS, NULL, 1, 64, NULL},
    [COUPON_CART] = {"cart", FIELD_JSON, NULL, 0, 32768, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field reply_fields[] = {
    [REPLY_TEXT] = {"message", FIELD_CHARS, NULL, 1, 4000, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field claim_fields[] = {
    [CLAIM_NAME] = {"name", FIELD_CHARS, NULL, 1, 80, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field note_fields[] = {
    [NOTE_TEXT] = {"note", FIELD_CHARS, NULL, 1, 4000, NULL},
    [NOTE_NAME] = {"name", FIELD_CHARS, NULL, 1, 80, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
#define ROWS_FIELDS                                                                                \
    [ROWS_AGENT] = {"agent_id", FIELD_TEXT, NULL, 0, 64, NULL},                                    \
    [ROWS_AFTER] = {"after", FIELD_TEXT, NULL, 0, 64, NULL}, [ROWS_SINCE] = {"since", FIELD_TEXT,  \
                                                                             NULL,    0,           \
                                                                             64,      NULL},       \
    [ROWS_UNTIL] = {"until", FIELD_TEXT, NULL, 0, 64, NULL}, [ROWS_PER_PAGE] = {"per_page",        \
                                                                                FIELD_CHOICE,      \
                                                                                page_sizes,        \
                                                                                0,                 \
                                                                                0,                 \
                                                                                "10"}
static const struct field rows_fields[] = {ROWS_FIELDS, {NULL, FIELD_TEXT, NULL, 0, 0, NULL}};
static const struct field conversations_fields[] = {
    ROWS_FIELDS,
    [ROWS_STATUS] = {"status", FIELD_CHOICE, conversation_statuses, 0, 0, NULL},
    [ROWS_SEARCH] = {"search", FIELD_CHARS, NULL, 0, STORE_PATTERN_CHARS, NULL},
    [ROWS_SEARCH_BY] = {"search_by", FIELD_CHOICE, by_text_or_visitor, 0, 0, "text"},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};

/* ---- bulk sync ---- */

static const struct field handshake_fields[] = {
    [WP_HANDSHAKE_SITE] = {"site_url", FIELD_TEXT, NULL, 1, 0, NULL},
    [WP_HANDSHAKE_PLUGIN] = {"plugin_version", FIELD_TEXT, NULL, 1, 64, NULL},
    [WP_HANDSHAKE_COMMERCE] = {"woocommerce_active", FIELD_BOOL, NULL, 0, 0, NULL},
    [WP_HANDSHAKE_WORDPRESS] = {"wordpress_version", FIELD_TEXT, NULL, 0, 64, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
#define BATCH_FIELDS(items)                                                                        \
    {                                                                                              \
        [WP_AGENT] = {"agent_id", FIELD_TEXT, NULL, 1, 64, NULL}, [WP_SITE] = {"site_url",         \
                                                                               FIELD_TEXT,         \
                                                                               NULL,               \
                                                                               1,                  \
                                                                               0,                  \
                                                                               NULL},              \
        [WP_PLUGIN] = {"plugin_version", FIELD_TEXT, NULL, 1, 64, NULL}, [WP_ZONE] = {"timezone",  \
                                                                                      FIELD_TEXT,  \
                                                                                      NULL,        \
                                                                                      1,           \
                                                                                      64,          \
                                                                                      NULL},       \
        [WP_SYNC_ID] = {"sync_id", FIELD_TEXT, NULL, 1, 128, NULL}, [WP_COMPLETE] = {"complete",   \
                                                                                     FIELD_BOOL,   \
                                                                                     NULL,         \
                                                                                     0,            \
                                                                                     0,            \
                                                                                     NULL},        \
        [WP_ACTION] = {"action", FIELD_TEXT, NULL, 0, 16, NULL}, [WP_ITEMS] = {items, FIELD_TREE,  \
                                                                               NULL,  0,           \
                                                                               0,     NULL},       \
        {NULL, FIELD_TEXT, NULL, 0, 0, NULL},                                                      \
    }
static const struct field posts_fields[] = BATCH_FIELDS("posts");
static const struct field products_fields[] = BATCH_FIELDS("products");
static const struct field coupons_fields[] = BATCH_FIELDS("coupons");
static const struct field status_fields[] = {
    [WP_STATUS_AGENT] = {"agent_id", FIELD_TEXT, NULL, 1, 64, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
static const struct field pending_fields[] = {
    [WP_PENDING_CONVERSATION] = {"conversation_id", FIELD_TEXT, NULL, 1, 64, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};

#define FORM_MAX 16384
#define WIDGET_MAX 65536

/* One route of bulk sync, under both of its paths. */
#define WP_POST(path, flags, fields, handler)                                                      \
    {"POST", "/v1/wp/" path, AUTH_WP_TOKEN, SCOPE_WP_SYNC, LIMITER_BULK_SYNC, BODY_SYNC,           \
     0,      flags,          fields,        handler},                                              \
    {                                                                                              \
        "POST", "/api/v1/wp/" path, AUTH_WP_TOKEN, SCOPE_WP_SYNC, LIMITER_BULK_SYNC, BODY_SYNC, 0, \
            flags, fields, handler                                                                 \
    }
#define WP_GET(path, fields, handler)                                                              \
    {"GET", "/v1/wp/" path, AUTH_WP_TOKEN, SCOPE_WP_SYNC, LIMITER_BULK_SYNC, BODY_NONE, 0,         \
     0,     fields,         handler},                                                              \
    {                                                                                              \
        "GET", "/api/v1/wp/" path, AUTH_WP_TOKEN, SCOPE_WP_SYNC, LIMITER_BULK_SYNC, BODY_NONE, 0,  \
            0, fields, handler                                                                     \
    }

/*
 * Columns: method, path, credential, scope, limiter, kind of body, its maximum size, flags, fields
 * of the query or body, handler.
 */
const struct route routes[] = {
    {"GET", "/api/v1/projects", AUTH_API_KEY, SCOPE_PROJECTS_READ, LIMITER_API, BODY_NONE, 0, 0,
     projects_list_fields, projects_list},
    {"GET", "/api/v1/projects/{project}", AUTH_API_KEY, SCOPE_PROJECTS_READ, LIMITER_API, BODY_NONE,
     0, 0, NULL, projects_get},
    {"DELETE", "/api/v1/projects/{project}", AUTH_API_KEY, SCOPE_PROJECTS_WRITE, LIMITER_API,
     BODY_NONE, 0, 0, NULL, projects_delete},
    {"GET", "/api/v1/reports", AUTH_API_KEY, SCOPE_REPORTS_READ, LIMITER_API, BODY_NONE, 0, 0,
     reports_list_fields, reports_list},
    {"POST", "/api/v1/reports", AUTH_API_KEY, SCOPE_REPORTS_WRITE, LIMITER_API, BODY_FIELDS,
     FORM_MAX, ROUTE_IDEMPOTENT, reports_create_fields, reports_create},
    {"GET", "/api/v1/reports/{id}", AUTH_API_KEY, SCOPE_REPORTS_READ, LIMITER_API, BODY_NONE, 0, 0,
     NULL, reports_get},
    {"PUT", "/api/v1/reports/{id}", AUTH_API_KEY, SCOPE_REPORTS_WRITE, LIMITER_API, BODY_FIELDS,
     FORM_MAX, 0, reports_update_fields, reports_update},
    {"DELETE", "/api/v1/reports/{id}", AUTH_API_KEY, SCOPE_REPORTS_WRITE, LIMITER_API, BODY_NONE, 0,
     0, NULL, reports_delete},
    {"POST", "/api/v1/widget/init", AUTH_NONE, 0, LIMITER_WIDGET_INIT, BODY_FIELDS, WIDGET_MAX,
     ROUTE_BODY_FIRST, init_fields, widget_init},
    {"POST", "/api/v1/widget/messages", AUTH_JWT, 0, LIMITER_WIDGET_SESSION, BODY_FIELDS,
     WIDGET_MAX, ROUTE_IDEMPOTENT | ROUTE_CHAT, message_fields, widget_message},
    {"POST", "/api/v1/widget/messages/stream", AUTH_JWT, 0, LIMITER_WIDGET_SESSION, BODY_FIELDS,
     WIDGET_MAX, ROUTE_IDEMPOTENT | ROUTE_TEXT | ROUTE_CHAT, message_fields, widget_message},
    {"GET", "/api/v1/widget/conversation/messages", AUTH_JWT, 0, LIMITER_WIDGET_SESSION, BODY_NONE,
     0, 0, page_fields, widget_messages},
    {"GET", "/api/v1/widget/conversation/stream", AUTH_JWT, 0, LIMITER_WIDGET_SESSION, BODY_NONE, 0,
     ROUTE_TEXT, NULL, widget_stream},
    {"POST", "/api/v1/widget/conversation/read", AUTH_JWT, 0, LIMITER_WIDGET_SESSION, BODY_FIELDS,
     WIDGET_MAX, 0, NULL, widget_read},
    {"POST", "/api/v1/widget/conversation/clear", AUTH_JWT, 0, LIMITER_WIDGET_SESSION, BODY_FIELDS,
     WIDGET_MAX, 0, NULL, widget_clear},
    {"POST", "/api/v1/widget/conversation/close", AUTH_JWT, 0, LIMITER_WIDGET_SESSION, BODY_FIELDS,
     WIDGET_MAX, 0, NULL, widget_close},
    {"POST", "/api/v1/widget/request-human", AUTH_JWT, 0, LIMITER_WIDGET_SESSION, BODY_FIELDS,
     WIDGET_MAX, ROUTE_CHAT, NULL, widget_request_human},
    {"DELETE", "/api/v1/widget/me", AUTH_JWT, 0, LIMITER_WIDGET_SESSION, BODY_NONE, 0, ROUTE_ERASED,
     NULL, widget_erase},
    {"POST", "/api/v1/widget/events", AUTH_JWT, 0, LIMITER_WIDGET_SESSION, BODY_FIELDS, WIDGET_MAX,
     0, events_fields, widget_events},
    {"POST", "/api/v1/widget/leads", AUTH_JWT, 0, LIMITER_WIDGET_LEADS, BODY_FIELDS, WIDGET_MAX,
     ROUTE_IDEMPOTENT, lead_fields, widget_lead},
    {"POST", "/api/v1/widget/typing", AUTH_JWT, 0, LIMITER_WIDGET_TYPING, BODY_FIELDS, WIDGET_MAX,
     0, typing_fields, widget_typing},
    {"POST", "/api/v1/widget/satisfaction", AUTH_JWT, 0, LIMITER_WIDGET_SATISFACTION, BODY_FIELDS,
     WIDGET_MAX, 0, rating_fields, widget_rating},
    {"POST", "/api/v1/widget/coupon/apply", AUTH_JWT, 0, LIMITER_WIDGET_COUPON, BODY_FIELDS,
     WIDGET_MAX, 0, coupon_fields, widget_coupon},
    {"GET", "/api/v1/conversations", AUTH_API_KEY, SCOPE_CONVERSATIONS_READ, LIMITER_API, BODY_NONE,
     0, 0, conversations_fields, conversations_list},
    {"GET", "/api/v1/conversations/{id}", AUTH_API_KEY, SCOPE_CONVERSATIONS_READ, LIMITER_API,
     BODY_NONE, 0, 0, page_fields, conversations_get},
    {"POST", "/api/v1/conversations/{id}/messages", AUTH_API_KEY, SCOPE_CONVERSATIONS_WRITE,
     LIMITER_API, BODY_FIELDS, WIDGET_MAX, ROUTE_IDEMPOTENT, reply_fields, conversations_reply},
    {"POST", "/api/v1/conversations/{id}/notes", AUTH_API_KEY, SCOPE_CONVERSATIONS_WRITE,
     LIMITER_API, BODY_FIELDS, WIDGET_MAX, ROUTE_IDEMPOTENT, note_fields, conversations_note},
    {"POST", "/api/v1/conversations/{id}/claim", AUTH_API_KEY, SCOPE_CONVERSATIONS_WRITE,
     LIMITER_API, BODY_FIELDS, WIDGET_MAX, 0, claim_fields, conversations_claim},
    {"POST", "/api/v1/conversations/{id}/release", AUTH_API_KEY, SCOPE_CONVERSATIONS_WRITE,
     LIMITER_API, BODY_FIELDS, WIDGET_MAX, 0, NULL, conversations_release},
    {"POST", "/api/v1/conversations/{id}/close", AUTH_API_KEY, SCOPE_CONVERSATIONS_WRITE,
     LIMITER_API, BODY_FIELDS, WIDGET_MAX, 0, NULL, conversations_close},
    {"POST", "/api/v1/conversations/{id}/reopen", AUTH_API_KEY, SCOPE_CONVERSATIONS_WRITE,
     LIMITER_API, BODY_FIELDS, WIDGET_MAX, 0, NULL, conversations_reopen},
    {"POST", "/api/v1/conversations/{id}/typing", AUTH_API_KEY, SCOPE_CONVERSATIONS_WRITE,
     LIMITER_API, BODY_FIELDS, WIDGET_MAX, 0, typing_fields, conversations_typing},
    {"GET", "/api/v1/leads", AUTH_API_KEY, SCOPE_CONVERSATIONS_READ, LIMITER_API, BODY_NONE, 0, 0,
     rows_fields, leads_list},
    {"GET", "/api/v1/events", AUTH_API_KEY, SCOPE_CONVERSATIONS_READ, LIMITER_API, BODY_NONE, 0, 0,
     rows_fields, events_list},
    {"GET", "/api/v1/ratings", AUTH_API_KEY, SCOPE_CONVERSATIONS_READ, LIMITER_API, BODY_NONE, 0, 0,
     rows_fields, ratings_list},
    WP_POST("handshake", 0, handshake_fields, wp_handshake),
    WP_POST("posts/sync", ROUTE_IDEMPOTENT, posts_fields, wp_posts_sync),
    WP_POST("posts/changed", ROUTE_IDEMPOTENT, posts_fields, wp_posts_changed),
    WP_POST("products/sync", ROUTE_IDEMPOTENT, products_fields, wp_products_sync),
    WP_POST("products/changed", ROUTE_IDEMPOTENT, products_fields, wp_products_changed),
    WP_POST("coupons/sync", ROUTE_IDEMPOTENT, coupons_fields, wp_coupons_sync),
    WP_GET("status", status_fields, wp_status),
    WP_GET("coupons/pending", pending_fields, wp_coupons_pending),
    {"GET", "/widget.js", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0, ROUTE_TEXT | ROUTE_PUBLIC, NULL,
     script_newest},
    {"GET", "/widget/{version}/widget.js", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0,
     ROUTE_TEXT | ROUTE_PUBLIC, NULL, script_pinned},
    {"GET", "/api/v1/openapi.json", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0, 0, NULL,
     platform_openapi},
    {"GET", "/", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0, ROUTE_TEXT | ROUTE_PAGE, NULL,
     pages_home},
    {"GET", "/docs", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0, ROUTE_TEXT | ROUTE_PAGE, NULL,
     pages_docs},
    {"GET", "/assets/{version}/assay.css", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0,
     ROUTE_TEXT | ROUTE_PAGE, NULL, pages_stylesheet},
    {"GET", "/healthz", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0, ROUTE_INTERNAL, NULL,
     platform_healthz},
    {"GET", "/readyz", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0, ROUTE_INTERNAL, NULL,
     platform_readyz},
    {"GET", "/metrics", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0,
     ROUTE_INTERNAL | ROUTE_PRIVATE | ROUTE_TEXT, NULL, platform_metrics},
};
const size_t routes_count = sizeof(routes) / sizeof(routes[0]);
