#include "core/api/api_internal.h"
#include "core/api/widget_internal.h"
#include "core/api/wp_internal.h"
#include "core/http/pagination.h"
#include "core/web/pages.h"
#include "core/web/report_page.h"
#include "core/web/report_password.h"
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

/* clang-format off */

/* A field: its name, then its minimum and maximum (length or number), choices or default. */
#define TEXT(name, min, max)            {name, FIELD_TEXT, NULL, min, max, NULL}
#define CHARS(name, min, max)           {name, FIELD_CHARS, NULL, min, max, NULL}
#define JSON(name, max)                 {name, FIELD_JSON, NULL, 0, max, NULL}
#define TREE(name)                      {name, FIELD_TREE, NULL, 0, 0, NULL}
#define BOOL(name)                      {name, FIELD_BOOL, NULL, 0, 0, NULL}
#define CHOICE(name, choices, initial)  {name, FIELD_CHOICE, choices, 0, 0, initial}
#define NUMBER(name, min, max, initial) {name, FIELD_NUMBER, NULL, min, max, initial}
#define FIELDS_END                      {NULL, FIELD_TEXT, NULL, 0, 0, NULL}

/* In the order of the enums in the headers of the handlers. */
static const struct field projects_list_fields[] = {
    [PROJECTS_SEARCH] = TEXT("search", 0, 0),
    [PROJECTS_SEARCH_BY] = CHOICE("search_by", by_project, "project"),
    [PROJECTS_SORT_BY] = CHOICE("sort_by", projects_sorts, "created_at"),
    [PROJECTS_SORT] = CHOICE("sort", directions, "desc"),
    [PROJECTS_PER_PAGE] = CHOICE("per_page", page_sizes, "10"),
    [PROJECTS_PAGE] = NUMBER("page", 1, PAGINATION_PAGE_MAX, "1"),
    FIELDS_END,
};
static const struct field reports_list_fields[] = {
    [REPORTS_SEARCH] = TEXT("search", 0, 0),
    [REPORTS_SEARCH_BY] = CHOICE("search_by", by_url, "url"),
    [REPORTS_PROJECT] = TEXT("project", 1, 0),
    [REPORTS_RESULT] = CHOICE("result", results, NULL),
    [REPORTS_STATUS] = CHOICE("status", statuses, NULL),
    [REPORTS_SORT_BY] = CHOICE("sort_by", reports_sorts, "id"),
    [REPORTS_SORT] = CHOICE("sort", directions, "desc"),
    [REPORTS_PER_PAGE] = CHOICE("per_page", page_sizes, "10"),
    [REPORTS_PAGE] = NUMBER("page", 1, PAGINATION_PAGE_MAX, "1"),
    [REPORTS_INCLUDE] = CHOICE("include", includes, NULL),
    FIELDS_END,
};
static const struct field history_fields[] = {
    [HISTORY_AFTER] = NUMBER("after", 1, UINT32_MAX, NULL),
    [HISTORY_PER_PAGE] = CHOICE("per_page", page_sizes, "10"),
    FIELDS_END,
};
/* Without privacy 2 a password is ignored, so the handler checks its length. */
static const struct field reports_create_fields[] = {
    [CREATE_URL] = TEXT("url", 1, 2048),
    [CREATE_PRIVACY] = CHOICE("privacy", privacies, "0"),
    [CREATE_PASSWORD] = TEXT("password", 0, 16384),
    FIELDS_END,
};
static const struct field reports_update_fields[] = {
    [UPDATE_PRIVACY] = CHOICE("privacy", privacies, NULL),
    [UPDATE_PASSWORD] = TEXT("password", 1, 255),
    [UPDATE_UPDATE] = CHOICE("update", yes_no, "0"),
    FIELDS_END,
};

/* ---- pages ---- */

static const struct field report_page_fields[] = {
    [PAGE_LANG] = CHOICE("lang", page_languages, NULL),
    [REPORT_PAGE_AGAINST] = NUMBER("against", 1, UINT32_MAX, NULL),
    FIELDS_END,
};
/* A missing password is a mistake that the handler shows in the form. */
static const struct field report_password_fields[] = {
    [REPORT_PASSWORD] = TEXT("password", 0, 255),
    FIELDS_END,
};
static const struct field badge_fields[] = {
    [PAGE_LANG] = CHOICE("lang", page_languages, NULL),
    FIELDS_END,
};

/* ---- the widget ---- */

static const char *const typing_statuses[] = {"on", "off", NULL};
/* widget_records.c */
static const char *const ratings[] = {"1", "2", "3", "4", "5", "positive", "negative", NULL};
/* enum conversation_status */
static const char *const conversation_statuses[] = {"open", "waiting", "claimed", "closed", NULL};

/* enum store_search_by */
static const char *const by_text_or_visitor[] = {"text", "visitor", NULL};

static const struct field init_fields[] = {
    [INIT_AGENT] = TEXT("agent_id", 1, 64), /* first: session_agent_of_body */
    [INIT_PAGE_URL] = TEXT("page_url", 0, 0),
    [INIT_ANON] = TEXT("anon_id", 0, 128),
    [INIT_LOCALE] = TEXT("locale", 0, 64),
    [INIT_TITLE] = CHARS("page_title", 0, 512),
    [INIT_REFERRER] = TEXT("referrer", 0, 0),
    FIELDS_END,
};
static const struct field message_fields[] = {
    [MESSAGE_TEXT] = CHARS("message", 1, 4000),
    [MESSAGE_PAGE_URL] = TEXT("page_url", 0, 0),
    [MESSAGE_PAGE_CONTEXT] = JSON("page_context", 8192),
    [MESSAGE_CLIENT_ID] = CHARS("client_message_id", 1, 64),
    FIELDS_END,
};
static const struct field page_fields[] = {
    [PAGE_AFTER] = TEXT("after", 0, 64),
    [PAGE_BEFORE] = TEXT("before", 0, 64),
    [PAGE_LIMIT] = NUMBER("limit", 1, WIDGET_MESSAGES_MAX, "20"),
    FIELDS_END,
};
static const struct field events_fields[] = {
    [EVENTS_BATCH] = JSON("events", 0),
    [EVENTS_ONE] = TEXT("event", 1, 64),
    [EVENTS_METADATA] = JSON("metadata", 4096),
    FIELDS_END,
};
static const struct field lead_fields[] = {
    [LEAD_EMAIL] = TEXT("email", 3, 254),
    [LEAD_NAME] = CHARS("name", 0, 200),
    [LEAD_PHONE] = CHARS("phone", 0, 64),
    [LEAD_FIELDS] = JSON("fields", 8192),
    FIELDS_END,
};
static const struct field typing_fields[] = {
    [TYPING_STATUS] = CHOICE("typing_status", typing_statuses, "on"),
    FIELDS_END,
};
static const struct field rating_fields[] = {
    [RATING_VALUE] = CHOICE("rating", ratings, NULL),
    [RATING_COMMENT] = CHARS("comment", 0, 2000),
    FIELDS_END,
};
static const struct field coupon_fields[] = {
    [COUPON_CODE] = CHARS("code", 1, 64),
    [COUPON_CART] = JSON("cart", 32768),
    FIELDS_END,
};
static const struct field reply_fields[] = {
    [REPLY_TEXT] = CHARS("message", 1, 4000),
    FIELDS_END,
};
static const struct field claim_fields[] = {
    [CLAIM_NAME] = CHARS("name", 1, 80),
    FIELDS_END,
};
static const struct field note_fields[] = {
    [NOTE_TEXT] = CHARS("note", 1, 4000),
    [NOTE_NAME] = CHARS("name", 1, 80),
    FIELDS_END,
};
#define ROWS_FIELDS \
    [ROWS_AGENT] = TEXT("agent_id", 0, 64), \
    [ROWS_AFTER] = TEXT("after", 0, 64), \
    [ROWS_SINCE] = TEXT("since", 0, 64), \
    [ROWS_UNTIL] = TEXT("until", 0, 64), \
    [ROWS_PER_PAGE] = CHOICE("per_page", page_sizes, "10")
static const struct field rows_fields[] = {ROWS_FIELDS, FIELDS_END};
static const struct field conversations_fields[] = {
    ROWS_FIELDS,
    [ROWS_STATUS] = CHOICE("status", conversation_statuses, NULL),
    [ROWS_SEARCH] = CHARS("search", 0, STORE_PATTERN_CHARS),
    [ROWS_SEARCH_BY] = CHOICE("search_by", by_text_or_visitor, "text"),
    FIELDS_END,
};

/* ---- bulk sync ---- */

static const struct field handshake_fields[] = {
    [WP_HANDSHAKE_SITE] = TEXT("site_url", 1, 0),
    [WP_HANDSHAKE_PLUGIN] = TEXT("plugin_version", 1, 64),
    [WP_HANDSHAKE_COMMERCE] = BOOL("woocommerce_active"),
    [WP_HANDSHAKE_WORDPRESS] = TEXT("wordpress_version", 0, 64),
    FIELDS_END,
};
#define BATCH_FIELDS(items) { \
    [WP_AGENT] = TEXT("agent_id", 1, 64), \
    [WP_SITE] = TEXT("site_url", 1, 0), \
    [WP_PLUGIN] = TEXT("plugin_version", 1, 64), \
    [WP_ZONE] = TEXT("timezone", 1, 64), \
    [WP_SYNC_ID] = TEXT("sync_id", 1, 128), \
    [WP_COMPLETE] = BOOL("complete"), \
    [WP_ACTION] = TEXT("action", 0, 16), \
    [WP_ITEMS] = TREE(items), \
    FIELDS_END \
}
static const struct field posts_fields[] = BATCH_FIELDS("posts");
static const struct field products_fields[] = BATCH_FIELDS("products");
static const struct field coupons_fields[] = BATCH_FIELDS("coupons");
static const struct field status_fields[] = {
    [WP_STATUS_AGENT] = TEXT("agent_id", 1, 64),
    FIELDS_END,
};
static const struct field pending_fields[] = {
    [WP_PENDING_CONVERSATION] = TEXT("conversation_id", 1, 64),
    FIELDS_END,
};

/* ---- routes ---- */

/* Columns that belong together: credential, scope and limiter; kind of body and maximum size. */
#define API_KEY(scope)   AUTH_API_KEY, SCOPE_##scope, LIMITER_API
#define VISITOR(limiter) AUTH_JWT, 0, LIMITER_##limiter
#define PLUGIN           AUTH_WP_TOKEN, SCOPE_WP_SYNC, LIMITER_BULK_SYNC
#define ANYONE(limiter)  AUTH_NONE, 0, LIMITER_##limiter
#define NO_BODY          BODY_NONE, 0
#define FORM             BODY_FIELDS, 16384
#define LARGE_FORM       BODY_FIELDS, 65536
#define BATCH            BODY_SYNC, 0

/* A route of bulk sync, under both of its paths. */
#define BULK_SYNC(method, path, body, flags, fields, handler) \
    {method, "/v1/wp/" path, PLUGIN, body, flags, fields, handler}, \
    {method, "/api/v1/wp/" path, PLUGIN, body, flags, fields, handler}

/*
 * Columns, first line: method, path, credential with scope and limiter; second line: body, flags,
 * fields of the query or body, handler.
 */
const struct route routes[] = {
    {"GET",    "/api/v1/projects",                          API_KEY(PROJECTS_READ),
        NO_BODY, 0, projects_list_fields, projects_list},
    {"GET",    "/api/v1/projects/{project}",                API_KEY(PROJECTS_READ),
        NO_BODY, 0, NULL, projects_get},
    {"DELETE", "/api/v1/projects/{project}",                API_KEY(PROJECTS_WRITE),
        NO_BODY, 0, NULL, projects_delete},
    {"GET",    "/api/v1/reports",                           API_KEY(REPORTS_READ),
        NO_BODY, 0, reports_list_fields, reports_list},
    {"POST",   "/api/v1/reports",                           API_KEY(REPORTS_WRITE),
        FORM, ROUTE_IDEMPOTENT, reports_create_fields, reports_create},
    {"GET",    "/api/v1/reports/{id}",                      API_KEY(REPORTS_READ),
        NO_BODY, 0, NULL, reports_get},
    {"GET",    "/api/v1/reports/{id}/history",              API_KEY(REPORTS_READ),
        NO_BODY, 0, history_fields, reports_history},
    {"PUT",    "/api/v1/reports/{id}",                      API_KEY(REPORTS_WRITE),
        FORM, 0, reports_update_fields, reports_update},
    {"DELETE", "/api/v1/reports/{id}",                      API_KEY(REPORTS_WRITE),
        NO_BODY, 0, NULL, reports_delete},
    {"POST",   "/api/v1/widget/init",                       ANYONE(WIDGET_INIT),
        LARGE_FORM, ROUTE_BODY_FIRST, init_fields, widget_init},
    {"POST",   "/api/v1/widget/messages",                   VISITOR(WIDGET_SESSION),
        LARGE_FORM, ROUTE_IDEMPOTENT | ROUTE_CHAT, message_fields, widget_message},
    {"POST",   "/api/v1/widget/messages/stream",            VISITOR(WIDGET_SESSION),
        LARGE_FORM, ROUTE_IDEMPOTENT | ROUTE_TEXT | ROUTE_CHAT, message_fields, widget_message},
    {"GET",    "/api/v1/widget/conversation/messages",      VISITOR(WIDGET_SESSION),
        NO_BODY, 0, page_fields, widget_messages},
    {"GET",    "/api/v1/widget/conversation/stream",        VISITOR(WIDGET_SESSION),
        NO_BODY, ROUTE_TEXT, NULL, widget_stream},
    {"POST",   "/api/v1/widget/conversation/read",          VISITOR(WIDGET_SESSION),
        LARGE_FORM, 0, NULL, widget_read},
    {"POST",   "/api/v1/widget/conversation/clear",         VISITOR(WIDGET_SESSION),
        LARGE_FORM, 0, NULL, widget_clear},
    {"POST",   "/api/v1/widget/conversation/close",         VISITOR(WIDGET_SESSION),
        LARGE_FORM, 0, NULL, widget_close},
    {"POST",   "/api/v1/widget/request-human",              VISITOR(WIDGET_SESSION),
        LARGE_FORM, ROUTE_CHAT, NULL, widget_request_human},
    {"DELETE", "/api/v1/widget/me",                         VISITOR(WIDGET_SESSION),
        NO_BODY, ROUTE_ERASED, NULL, widget_erase},
    {"POST",   "/api/v1/widget/events",                     VISITOR(WIDGET_SESSION),
        LARGE_FORM, 0, events_fields, widget_events},
    {"POST",   "/api/v1/widget/leads",                      VISITOR(WIDGET_LEADS),
        LARGE_FORM, ROUTE_IDEMPOTENT, lead_fields, widget_lead},
    {"POST",   "/api/v1/widget/typing",                     VISITOR(WIDGET_TYPING),
        LARGE_FORM, 0, typing_fields, widget_typing},
    {"POST",   "/api/v1/widget/satisfaction",               VISITOR(WIDGET_SATISFACTION),
        LARGE_FORM, 0, rating_fields, widget_rating},
    {"POST",   "/api/v1/widget/coupon/apply",               VISITOR(WIDGET_COUPON),
        LARGE_FORM, 0, coupon_fields, widget_coupon},
    {"GET",    "/api/v1/conversations",                     API_KEY(CONVERSATIONS_READ),
        NO_BODY, 0, conversations_fields, conversations_list},
    {"GET",    "/api/v1/conversations/{id}",                API_KEY(CONVERSATIONS_READ),
        NO_BODY, 0, page_fields, conversations_get},
    {"POST",   "/api/v1/conversations/{id}/messages",       API_KEY(CONVERSATIONS_WRITE),
        LARGE_FORM, ROUTE_IDEMPOTENT, reply_fields, conversations_reply},
    {"POST",   "/api/v1/conversations/{id}/notes",          API_KEY(CONVERSATIONS_WRITE),
        LARGE_FORM, ROUTE_IDEMPOTENT, note_fields, conversations_note},
    {"POST",   "/api/v1/conversations/{id}/claim",          API_KEY(CONVERSATIONS_WRITE),
        LARGE_FORM, 0, claim_fields, conversations_claim},
    {"POST",   "/api/v1/conversations/{id}/release",        API_KEY(CONVERSATIONS_WRITE),
        LARGE_FORM, 0, NULL, conversations_release},
    {"POST",   "/api/v1/conversations/{id}/close",          API_KEY(CONVERSATIONS_WRITE),
        LARGE_FORM, 0, NULL, conversations_close},
    {"POST",   "/api/v1/conversations/{id}/reopen",         API_KEY(CONVERSATIONS_WRITE),
        LARGE_FORM, 0, NULL, conversations_reopen},
    {"POST",   "/api/v1/conversations/{id}/typing",         API_KEY(CONVERSATIONS_WRITE),
        LARGE_FORM, 0, typing_fields, conversations_typing},
    {"GET",    "/api/v1/leads",                             API_KEY(CONVERSATIONS_READ),
        NO_BODY, 0, rows_fields, leads_list},
    {"GET",    "/api/v1/events",                            API_KEY(CONVERSATIONS_READ),
        NO_BODY, 0, rows_fields, events_list},
    {"GET",    "/api/v1/ratings",                           API_KEY(CONVERSATIONS_READ),
        NO_BODY, 0, rows_fields, ratings_list},
    BULK_SYNC("POST", "handshake",
        BATCH, 0, handshake_fields, wp_handshake),
    BULK_SYNC("POST", "posts/sync",
        BATCH, ROUTE_IDEMPOTENT, posts_fields, wp_posts_sync),
    BULK_SYNC("POST", "posts/changed",
        BATCH, ROUTE_IDEMPOTENT, posts_fields, wp_posts_changed),
    BULK_SYNC("POST", "products/sync",
        BATCH, ROUTE_IDEMPOTENT, products_fields, wp_products_sync),
    BULK_SYNC("POST", "products/changed",
        BATCH, ROUTE_IDEMPOTENT, products_fields, wp_products_changed),
    BULK_SYNC("POST", "coupons/sync",
        BATCH, ROUTE_IDEMPOTENT, coupons_fields, wp_coupons_sync),
    BULK_SYNC("GET",  "status",
        NO_BODY, 0, status_fields, wp_status),
    BULK_SYNC("GET",  "coupons/pending",
        NO_BODY, 0, pending_fields, wp_coupons_pending),
    {"GET",    "/widget.js",                                ANYONE(NONE),
        NO_BODY, ROUTE_TEXT | ROUTE_PUBLIC, NULL, script_newest},
    {"GET",    "/widget/{version}/widget.js",               ANYONE(NONE),
        NO_BODY, ROUTE_TEXT | ROUTE_PUBLIC, NULL, script_pinned},
    {"GET",    "/api/v1/openapi.json",                      ANYONE(NONE),
        NO_BODY, 0, NULL, platform_openapi},
    {"GET",    "/",                                         ANYONE(NONE),
        NO_BODY, ROUTE_TEXT | ROUTE_PAGE, NULL, pages_home},
    {"GET",    "/docs",                                     ANYONE(NONE),
        NO_BODY, ROUTE_TEXT | ROUTE_PAGE, NULL, pages_docs},
    {"GET",    "/assets/{version}/assay.css",               ANYONE(NONE),
        NO_BODY, ROUTE_TEXT | ROUTE_PAGE, NULL, pages_stylesheet},
    {"GET",    "/assets/{version}/page.js",                 ANYONE(NONE),
        NO_BODY, ROUTE_TEXT | ROUTE_PAGE, NULL, pages_script},
    {"GET",    "/reports/{id}",                             ANYONE(NONE),
        NO_BODY, ROUTE_TEXT | ROUTE_PAGE, report_page_fields, report_page},
    {"POST",   "/reports/{id}/password",                    ANYONE(REPORT_PASSWORD),
        FORM, ROUTE_TEXT | ROUTE_PAGE, report_password_fields, report_password},
    {"GET",    "/reports/{id}/badge.svg",                   ANYONE(NONE),
        NO_BODY, ROUTE_TEXT | ROUTE_PAGE, badge_fields, report_badge},
    {"GET",    "/healthz",                                  ANYONE(NONE),
        NO_BODY, ROUTE_INTERNAL, NULL, platform_healthz},
    {"GET",    "/readyz",                                   ANYONE(NONE),
        NO_BODY, ROUTE_INTERNAL, NULL, platform_readyz},
    {"GET",    "/metrics",                                  ANYONE(NONE),
        NO_BODY, ROUTE_INTERNAL | ROUTE_PRIVATE | ROUTE_TEXT, NULL, platform_metrics},
};
/* clang-format on */
const size_t routes_count = sizeof(routes) / sizeof(routes[0]);
