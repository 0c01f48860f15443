#include "api.h"
#include "../http/pagination.h"

static const char *const by_project[] = {"project", NULL};
static const char *const by_url[] = {"url", NULL};
static const char *const projects_sorts[] = {"created_at", "project", NULL};              /* enum project_sort */
static const char *const reports_sorts[] = {"id", "generated_at", "url", "score", NULL}; /* enum report_sort */
static const char *const directions[] = {"desc", "asc", NULL};
static const char *const page_sizes[] = {"10", "25", "50", "100", NULL}; /* api_per_page */
static const char *const results[] = {"good", "decent", "bad", NULL};    /* enum report_result, less one */
static const char *const privacies[] = {"0", "1", "2", NULL};            /* enum report_privacy */
static const char *const yes_no[] = {"0", "1", NULL};
static const char *const includes[] = {"results", NULL};

/* Columns: name, type, choices, least, most (length or number), initial value. The order is that of the enums in api.h. */
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
    [REPORTS_SORT_BY] = {"sort_by", FIELD_CHOICE, reports_sorts, 0, 0, "id"},
    [REPORTS_SORT] = {"sort", FIELD_CHOICE, directions, 0, 0, "desc"},
    [REPORTS_PER_PAGE] = {"per_page", FIELD_CHOICE, page_sizes, 0, 0, "10"},
    [REPORTS_PAGE] = {"page", FIELD_NUMBER, NULL, 1, PAGINATION_PAGE_MAX, "1"},
    [REPORTS_INCLUDE] = {"include", FIELD_CHOICE, includes, 0, 0, NULL},
    {NULL, FIELD_TEXT, NULL, 0, 0, NULL},
};
/* A password beside another privacy than 2 is ignored whatever it is, so its length is the handler's to judge. */
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

#define FORM_MAX 16384

/* Columns: method, path, credential, scope, limiter, body, its most bytes, flags, fields of the query or form, handler. */
const struct route routes[] = {
    {"GET", "/api/v1/projects", AUTH_API_KEY, SCOPE_PROJECTS_READ, LIMITER_API, BODY_NONE, 0, 0, projects_list_fields, projects_list},
    {"GET", "/api/v1/projects/{project}", AUTH_API_KEY, SCOPE_PROJECTS_READ, LIMITER_API, BODY_NONE, 0, 0, NULL, projects_get},
    {"DELETE", "/api/v1/projects/{project}", AUTH_API_KEY, SCOPE_PROJECTS_WRITE, LIMITER_API, BODY_NONE, 0, 0, NULL, projects_delete},
    {"GET", "/api/v1/reports", AUTH_API_KEY, SCOPE_REPORTS_READ, LIMITER_API, BODY_NONE, 0, 0, reports_list_fields, reports_list},
    {"POST", "/api/v1/reports", AUTH_API_KEY, SCOPE_REPORTS_WRITE, LIMITER_API, BODY_FORM, FORM_MAX, ROUTE_IDEMPOTENT, reports_create_fields, reports_create},
    {"GET", "/api/v1/reports/{id}", AUTH_API_KEY, SCOPE_REPORTS_READ, LIMITER_API, BODY_NONE, 0, 0, NULL, reports_get},
    {"PUT", "/api/v1/reports/{id}", AUTH_API_KEY, SCOPE_REPORTS_WRITE, LIMITER_API, BODY_FORM, FORM_MAX, 0, reports_update_fields, reports_update},
    {"DELETE", "/api/v1/reports/{id}", AUTH_API_KEY, SCOPE_REPORTS_WRITE, LIMITER_API, BODY_NONE, 0, 0, NULL, reports_delete},
    {"GET", "/api/v1/openapi.json", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0, 0, NULL, platform_openapi},
    {"GET", "/healthz", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0, ROUTE_INTERNAL, NULL, platform_healthz},
    {"GET", "/readyz", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0, ROUTE_INTERNAL, NULL, platform_readyz},
    {"GET", "/metrics", AUTH_NONE, 0, LIMITER_NONE, BODY_NONE, 0, ROUTE_INTERNAL | ROUTE_PRIVATE | ROUTE_TEXT, NULL, platform_metrics},
};
const size_t routes_count = sizeof(routes) / sizeof(routes[0]);
