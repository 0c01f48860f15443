/*
 * Hostile pages, for tests of the pages of reports: their titles, headings, links, descriptions
 * and addresses have markup, quotes, control characters, scripts and very long words. Each text of
 * a stranger has CORPUS_MARK in it.
 */
#ifndef ASSAY_T_KIT_REPORT_CORPUS_H
#define ASSAY_T_KIT_REPORT_CORPUS_H

#include "t/kit/harness.h"

#define CORPUS_MARK "qzx"

struct corpus_page {
    const char *name;
    const char *text;  /* of the title, headings, link and image; NULL: ${body} makes the page */
    const char *query; /* of its URL, not encoded; NULL: none */
    bool long_url;     /* its URL has 2,048 bytes, one word */
    const char *shown; /* what the report shows of ${text}; NULL: ${text} */
    /* the page, in new memory; *size: its bytes */
    char *(*body)(size_t *size);
};
extern const struct corpus_page corpus[];
extern const size_t corpus_count;

/*
 * corpus_serve(o): sets all pages. corpus_url(o, i): the URL of corpus[i], as somebody sends it to
 * be graded.
 */
void corpus_serve(struct origin *o);
char *corpus_url(const struct origin *o, size_t i);

#endif
