/*
 * The chat widget's script: the files of core/widget as one, in the program (made when it is
 * built). The same bytes for everybody until the program is another, so pages may pin them.
 */
#ifndef ASSAY_WIDGET_SCRIPT_H
#define ASSAY_WIDGET_SCRIPT_H

#include "core/base/embedded.h"

#include <stdbool.h>

extern const struct embedded script_file;

#define SCRIPT_VERSION_SIZE 17   /* 16 hexadecimal digits and NUL */
#define SCRIPT_INTEGRITY_SIZE 72 /* "sha384-", 64 of base64 and NUL */

/* script_version_text(out): as it stands in /widget/{version}/widget.js. */
void script_version_text(char out[SCRIPT_VERSION_SIZE]);

/*
 * script_integrity(out): what integrity="…" says of it (W3C Subresource Integrity). False: OpenSSL
 * could not.
 */
bool script_integrity(char out[SCRIPT_INTEGRITY_SIZE]);

#endif
