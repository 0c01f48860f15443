/*
 * Which page a process was reading when a signal ends it, said in its last moment. Of one process; nothing here is shared.
 */
#ifndef ASSAY_CRASH_NOTE_INTERNAL_H
#define ASSAY_CRASH_NOTE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * crash_note_install(say): when a fault, an abort or the watchdog's alarm ends the process while it reads a page, ${say} is called with the
 * page's id first, in the signal's handler on a stack of its own: it may call nothing but what signal-safety(7) allows. Before
 * audit_sandbox. Does nothing under sanitizers, whose own reports tell more.
 */
void crash_note_install(void (*say)(uint64_t id));
bool crash_note_installed(void); /* somebody asked for them */

/* crash_note_set_page(id): from now on the page ${id} is read; 0: none is. */
void crash_note_set_page(uint64_t id);

#endif
