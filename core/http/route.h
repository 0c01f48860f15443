/*
 * From a path to a row of the route table. Pure but for the table.
 */
#ifndef ASSAY_HTTP_ROUTE_H
#define ASSAY_HTTP_ROUTE_H

#include "core/http/request.h"

#define ROUTES_MAX 127

/*
 * route_find(method, path, internal, args, other):
 * The row for ${method} (HEAD finds GET's) and the undecoded ${path}, with its raw arguments in
 * ${args}. NULL: none; then *other is a row of the same path with another method, or NULL where no
 * row has the path. ${internal}: only rows with ROUTE_INTERNAL are there.
 */
const struct route *route_find(struct str method, struct str path, bool internal,
                               struct str args[PATH_ARGS_MAX], const struct route **other);

/*
 * route_path(req, query): the path asked for, undecoded; an absolute-form target's without scheme
 * and authority; and its query.
 */
struct str route_path(const h2o_req_t *req, struct str *query);

/*
 * route_known(method, path): whether there is a row of that method ("*": any) and path, as the
 * table has them; an open path ("…*") is.
 */
bool route_known(struct str method, struct str path);

/*
 * route_allow(same, out): the methods of all rows with ${same}'s path, as an Allow header has them:
 * "GET, HEAD, DELETE, OPTIONS".
 */
void route_allow(const struct route *same, struct buf *out);

#endif
