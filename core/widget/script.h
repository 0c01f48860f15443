/*
 * The chat widget's script: the files of core/widget in one, embedded by the build. A version
 * never changes, so pages can pin it.
 */
#ifndef ASSAY_WIDGET_SCRIPT_H
#define ASSAY_WIDGET_SCRIPT_H

#include "core/base/embedded.h"
#include "core/http/handler.h"

/* Handlers of /widget.js and /widget/{version}/widget.js. */
request_fn script_newest, script_pinned;

extern const struct embedded script_file;

#define SCRIPT_VERSION_SIZE 17   /* 16 hexadecimal digits and NUL */
#define SCRIPT_INTEGRITY_SIZE 72 /* "sha384-", 64 of base64 and NUL */

/* script_version_text(out): the version in /widget/{version}/widget.js. */
void script_version_text(char out[SCRIPT_VERSION_SIZE]);

/*
 * script_integrity(out): value for the attribute integrity="…" (W3C Subresource Integrity). False
 * if OpenSSL failed.
 */
bool script_integrity(char out[SCRIPT_INTEGRITY_SIZE]);

#endif
