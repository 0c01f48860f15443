/* HTML of the reference, to standard output. Text is escaped; NULL writes nothing. */
#ifndef ASSAY_WEB_REFERENCE_HTML_H
#define ASSAY_WEB_REFERENCE_HTML_H

#include "core/web/reference_document.h"

void html_put_char(char c);
void html_put(const char *text);
/* html_code(text): in <code>. */
void html_code(const char *text);

/*
 * Prose has `code` in backquotes, and an empty line between paragraphs.
 * html_prose(text): each paragraph in <p>. html_inline(text): the first paragraph, without <p>.
 */
void html_prose(const char *text);
void html_inline(const char *text);

/* html_method(method): a badge with the method of an operation. */
void html_method(const char *method);

/* html_sample_begin(title, detail): a figure for an example; ${detail}: NULL for none. */
void html_sample_begin(const char *title, const char *detail);
/* html_example(value): a string as it is; other values as coloured JSON. */
void html_example(json *value);
void html_sample_end(void);

void html_table_begin(const char *caption);
void html_table_end(void);

#endif
