/*
 * Which page a process was reading when a signal ends it, said in its last moment. Of one process; nothing here is shared.
 */
#ifndef ASSAY_LAST_WORDS_H
#define ASSAY_LAST_WORDS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * last_words_hear(say): when a fault, an abort or the watchdog's alarm ends the process while it reads a page, ${say} is called with the
 * page's id first, in the signal's handler on a stack of its own: it may call nothing but what signal-safety(7) allows. Before
 * audit_sandbox. Does nothing under sanitizers, whose own reports tell more.
 */
void last_words_hear(void (*say)(uint64_t id));
bool last_words_heard(void); /* somebody asked for them */

/* last_words_page(id): from now on the page ${id} is read; 0: none is. */
void last_words_page(uint64_t id);

#endif
