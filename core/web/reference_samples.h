/*
 * Samples of an operation, made of the examples in the document. A missing example is a failure.
 */
#ifndef ASSAY_REFERENCE_SAMPLES_H
#define ASSAY_REFERENCE_SAMPLES_H

#include "core/web/reference_document.h"

/* samples_request_put(o): the request, as a command of curl. */
void samples_request_put(const struct operation *o);
/* samples_responses_put(o): the successful responses. */
void samples_responses_put(const struct operation *o);

#endif
