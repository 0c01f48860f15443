/*
 * Requests whose work is cut into slices, so that none holds the loop for long: each goes on in later turns, one slice a turn, one request
 * after the other, in the order in which they asked. Worker processes only.
 */
#ifndef ASSAY_LATER_H
#define ASSAY_LATER_H

#include "worker.h"

/* later_run(w): let the one that waits longest go on. later_wait_ms(w, most): how long the loop may sleep. */
void later_run(struct worker *w);
int later_wait_ms(const struct worker *w, int most);
void later_free(struct worker *w);

#endif
