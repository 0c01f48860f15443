/*
 * What the handlers of core/api/ share. Each handler is the request_fn of a row in routes.c. Worker
 * processes only.
 */
#ifndef ASSAY_API_H
#define ASSAY_API_H

#include "core/http/fields.h"
#include "core/http/handler.h"

/* Indexes into r->values: the fields of each route, in the order of their tables in routes.c. */
enum {
    PROJECTS_SEARCH,
    PROJECTS_SEARCH_BY,
    PROJECTS_SORT_BY,
    PROJECTS_SORT,
    PROJECTS_PER_PAGE,
    PROJECTS_PAGE
};
enum {
    REPORTS_SEARCH,
    REPORTS_SEARCH_BY,
    REPORTS_PROJECT,
    REPORTS_RESULT,
    REPORTS_STATUS,
    REPORTS_SORT_BY,
    REPORTS_SORT,
    REPORTS_PER_PAGE,
    REPORTS_PAGE,
    REPORTS_INCLUDE
};
enum { HISTORY_AFTER, HISTORY_PER_PAGE };
enum { CREATE_URL, CREATE_PRIVACY, CREATE_PASSWORD };
enum { UPDATE_PRIVACY, UPDATE_PASSWORD, UPDATE_UPDATE };

/* Values of per_page, by index of the choice. */
extern const unsigned api_per_page[];

request_fn projects_list, projects_get, projects_delete;
request_fn reports_list, reports_get, reports_create, reports_update, reports_delete;
request_fn reports_history;
request_fn platform_openapi, platform_healthz, platform_readyz, platform_metrics;

/*
 * api_report_reply(r, status, report): send the whole report as {"data":…,"status":…}. ${status}:
 * 200, 201 or 202.
 */
void api_report_reply(struct request *r, int status, const struct store_report *report);

/*
 * api_body(r): an empty buffer for a response body. It belongs to the worker and is valid until the
 * reply.
 * api_reply(r, status, body): send ${body}, or 503 if memory ran out.
 */
struct buf *api_body(struct request *r);
void api_reply(struct request *r, int status, const struct buf *body);

/* api_reply_data(r, status, body): send {"data":${body}}, no-store unless an ETag is set. */
void api_reply_data(struct request *r, int status, struct str body);
/* api_reply_data_buf(r, status, body): the same for a buffer of the caller; 503 if it is failed. */
void api_reply_data_buf(struct request *r, int status, const struct buf *body);

/* api_id(text, id): parse an id in a path: digits, 1 to 2^63-1. */
bool api_id(struct str text, uint64_t *id);

/*
 * api_is_number(text): true if ${text} has only digits. It is then an id, never a project's name.
 */
bool api_is_number(struct str text);

/* api_lower(r, text): ${text} in lower case (ASCII), in the request's memory. */
struct str api_lower(struct request *r, struct str text);

/* api_copy(r, s): ${s} in the request's memory. */
struct str api_copy(struct request *r, struct str s);

/* api_hash(hash, p, n): continue the FNV-1a hash ${hash}; the first is API_HASH_START. */
#define API_HASH_START UINT64_C(0xcbf29ce484222325)
uint64_t api_hash(uint64_t hash, const void *p, size_t n);

/*
 * api_version(id, version): the version for the ETag of a list (${id}: its workspace) or a project.
 * One address can later name another workspace's list or a new project of the same name, whose
 * versions start again, so the id is part of it. A report's address has its id, so its version is
 * used alone.
 * api_version_match(r, change, id): turn the versions of If-Match back into the store's.
 */
uint64_t api_version(uint64_t id, uint64_t version);
void api_version_match(struct request *r, struct store_change *change, uint64_t id);

#define API_LIST_MAX ((size_t)1 << 20) /* bytes of a list's body */

/*
 * api_ignored(r): JSON array of the query parameters that the route does not know; n 0 if there are
 * none.
 */
struct str api_ignored(struct request *r);

/* api_list_begin(out): begin a list in ${out}. Any thread. */
void api_list_begin(struct buf *out);

/*
 * api_list_reply(r, out, path, query, total, count): end the list with its envelope and send it:
 * 200, or 422 on per_page if the body is larger than API_LIST_MAX. ${query}: the query that the
 * store answered.
 */
void api_list_reply(struct request *r, struct buf *out, struct str path,
                    const struct store_list_query *query, uint64_t total, size_t count);

#endif
