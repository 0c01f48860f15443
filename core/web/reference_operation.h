/* An operation of the reference: credential, parameters, body, responses, errors and samples. */
#ifndef ASSAY_WEB_REFERENCE_OPERATION_H
#define ASSAY_WEB_REFERENCE_OPERATION_H

#include "core/web/reference_document.h"

/* Columns: name in the document, name in HTML, shell variable in samples. */
#define CREDENTIALS 3
extern const struct credential {
    const char *scheme, *name, *variable;
} credentials[CREDENTIALS];

/* operation_credential(o): the credential it needs; NULL: none. */
const struct credential *operation_credential(const struct operation *o);

/* operation_is_alias(o): it is another path of an operation, by its id: syncPostsAlias. */
bool operation_is_alias(const struct operation *o);
bool operation_has_tag(const struct operation *o, const char *tag);

/* operation_parameter_each(o, call, of): the parameters of its path, then its own. */
typedef void parameter_fn(json *parameter, void *of);
void operation_parameter_each(const struct operation *o, parameter_fn *call, void *of);

/*
 * operation_codes(response): the error codes of this status; NULL: it is not an error.
 * operation_codes_put(response): write them.
 */
json *operation_codes(json *response);
void operation_codes_put(json *response);

/* operation_put(o, tag): write its article, if it has ${tag} (a string) and is not an alias. */
void operation_put(const struct operation *o, const void *tag);

#endif
