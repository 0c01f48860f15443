/* Looks up a path in the route table. Pure but for the table. */
#ifndef ASSAY_HTTP_ROUTE_H
#define ASSAY_HTTP_ROUTE_H

#include "core/http/route_table.h"

#include <h2o.h>

/*
 * route_find(method, path, internal, args, other_method): the row for ${method} (HEAD finds GET)
 * and the undecoded ${path}; ${args} gets its raw arguments. NULL: none; then *other_method is a
 * row of the same path with another method, or NULL. ${internal}: only rows with ROUTE_INTERNAL.
 */
const struct route *route_find(struct str method, struct str path, bool internal,
                               struct str args[PATH_ARGS_MAX], const struct route **other_method);

/*
 * route_path(req, query): the undecoded path of the request, without scheme and authority of an
 * absolute-form target, and its query.
 */
struct str route_path(const h2o_req_t *req, struct str *query);

/*
 * route_known(method, path): whether the table has a row with this method ("*": any) and path; true
 * for a path that ends with "*".
 */
bool route_known(struct str method, struct str path);

/* route_allow(same, out): the value of Allow for ${same}'s path: "GET, HEAD, DELETE, OPTIONS". */
void route_allow(const struct route *same, struct buf *out);

#endif
