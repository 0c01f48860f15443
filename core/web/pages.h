/*
 * Pages for people that are the same for everybody: the start page, the API's reference and their
 * stylesheet. They are in the program (made when it is built, core/web/subdir.am).
 * core/api/openapi.json is what the reference is made of.
 */
#ifndef ASSAY_WEB_PAGES_H
#define ASSAY_WEB_PAGES_H

#include "core/base/embedded.h"
#include "core/http/request.h"

extern const struct embedded web_home, web_docs, web_stylesheet;

request_fn pages_home, pages_docs, pages_stylesheet;

#endif
