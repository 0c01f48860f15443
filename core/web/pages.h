/*
 * The start page, the API reference (/docs), and the stylesheet and script of all pages. The build
 * embeds them in the program (subdir.am) and makes the reference from core/api/openapi.json.
 */
#ifndef ASSAY_WEB_PAGES_H
#define ASSAY_WEB_PAGES_H

#include "core/base/embedded.h"
#include "core/http/handler.h"

extern const struct embedded web_home, web_docs, web_stylesheet, web_script;

/* Assets: only for the version in the path, which clients cache for ever; else 404. */
request_fn pages_home, pages_docs, pages_stylesheet, pages_script;

#endif
