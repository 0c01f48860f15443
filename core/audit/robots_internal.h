/* robots.txt (RFC 9309). Pure functions over its text. */
#ifndef ASSAY_ROBOTS_INTERNAL_H
#define ASSAY_ROBOTS_INTERNAL_H

#include "store/bytes.h"

#define ROBOTS_MAX_BYTES ((size_t)500 * 1024)

struct robots_verdict {
    bool allowed;
    struct str rule; /* the line that decided, borrowed from the text; empty: none */
    unsigned line;   /* its number, from 1; 0: none */
};

/*
 * robots_judge(text, agent, target, out): whether ${agent} (a product token), or `*` if no group
 * names it, may fetch ${target} (path and query).
 */
void robots_judge(struct str text, const char *agent, struct str target,
                  struct robots_verdict *out);

/* A line: name, colon, value; without comment and white space. */
struct robots_line {
    struct str name, value, whole;
    unsigned number;
};

/*
 * robots_line(rest, out): the next line of ${*rest} that is not empty. ${out}->number starts at 0
 * and counts on; ${out}->name is empty if the line has no colon. False at the end.
 */
bool robots_line(struct str *rest, struct robots_line *out);

#endif
