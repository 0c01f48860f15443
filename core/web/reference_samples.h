/* Samples of an operation, from the examples in the document. It fails if one is missing. */
#ifndef ASSAY_WEB_REFERENCE_SAMPLES_H
#define ASSAY_WEB_REFERENCE_SAMPLES_H

#include "core/web/reference_document.h"

/* samples_request_put(o): the request as a curl command. */
void samples_request_put(const struct operation *o);
/* samples_responses_put(o): the successful responses. */
void samples_responses_put(const struct operation *o);

#endif
