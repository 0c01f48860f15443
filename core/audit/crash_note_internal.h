/*
 * Crash note: when a signal ends the process, report which page it was reading. Process-wide state.
 */
#ifndef ASSAY_CRASH_NOTE_INTERNAL_H
#define ASSAY_CRASH_NOTE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * crash_note_install(write): install signal handlers for faults, aborts and the alarm of the
 * parser. If a page is being read when the signal arrives, the handler calls ${write} with the
 * page's id and then lets the signal end the process. ${write} runs on its own stack and may call
 * only async-signal-safe functions (signal-safety(7)). Call before audit_sandbox. Does nothing
 * under sanitizers, which print reports of their own.
 */
void crash_note_install(void (*write)(uint64_t id));
bool crash_note_installed(void);

/* crash_note_set_page(id): page ${id} is being read from now on; 0: none. */
void crash_note_set_page(uint64_t id);

#endif
