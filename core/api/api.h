/*
 * What the handlers of core/api/ share. Worker processes only; each handler is a request_fn of a
 * row in routes.c.
 */
#ifndef ASSAY_API_H
#define ASSAY_API_H

#include "core/http/fields.h"
#include "core/http/request.h"

/*
 * The fields of each route, in the order of their tables in routes.c: the place of a value in
 * r->values.
 */
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
enum { CREATE_URL, CREATE_PRIVACY, CREATE_PASSWORD };
enum { UPDATE_PRIVACY, UPDATE_PASSWORD, UPDATE_UPDATE };

/* per_page by the number of its choice. */
extern const unsigned api_per_page[];

request_fn projects_list, projects_get, projects_delete;
request_fn reports_list, reports_get, reports_create, reports_update, reports_delete;
request_fn platform_openapi, platform_healthz, platform_readyz, platform_metrics;
request_fn script_newest, script_pinned;

/*
 * api_report_reply(r, status, report): send the whole record: {"data":…,"status":…}; 200, 201 or
 * 202.
 */
void api_report_reply(struct request *r, int status, const struct store_report *report);

/*
 * api_body(r): an empty buffer for the body of the answer: the worker's own, so it is good until
 * the reply. api_reply(r, status, body): send it, or 503 where memory ran out.
 */
struct buf *api_body(struct request *r);
void api_reply(struct request *r, int status, const struct buf *body);

/* api_id(text, id): an id as it stands in a path: digits, 1 to 2^63-1. */
bool api_id(struct str text, uint64_t *id);

/* api_is_number(text): all digits: an id, however large, never a project's name. */
bool api_is_number(struct str text);

/* api_lower(r, text): ${text} in lower case (ASCII), in the request's memory. */
struct str api_lower(struct request *r, struct str text);

/* api_copy(r, s): ${s} in the request's memory. */
struct str api_copy(struct request *r, struct str s);

/*
 * api_version(id, version): the version that makes the ETag of a list (by its workspace) or a
 * project. Their addresses may come to mean another workspace's list or a later project of the same
 * name, with versions that start anew, so the id is in it. A report's address is its id: its
 * version stands alone. api_version_match(change, id) makes the versions of If-Match the store's
 * again.
 */
uint64_t api_version(uint64_t id, uint64_t version);
void api_version_match(struct request *r, struct store_change *change, uint64_t id);

#define API_LIST_MAX ((size_t)1 << 20) /* bytes of a list's body */

/*
 * api_ignored(r): the JSON array of the names in the query that the route does not know; n 0: there
 * are none.
 */
struct str api_ignored(struct request *r);

/* api_list_begin(out): make ${out} the start of a list. Any thread. */
void api_list_begin(struct buf *out);

/*
 * api_list_reply(r, out, path, query, total, count): end the list with its envelope and send it:
 * 200, or 422 on per_page where the body is larger than API_LIST_MAX. ${query} is what the store
 * was asked.
 */
void api_list_reply(struct request *r, struct buf *out, struct str path,
                    const struct store_list_query *query, uint64_t total, size_t count);

#endif
