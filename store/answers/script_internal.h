/* Scripts written without spaces, in well-formed UTF-8 (FTS5's unicode61 writes it). */
#ifndef ASSAY_STORE_ANSWERS_SCRIPT_INTERNAL_H
#define ASSAY_STORE_ANSWERS_SCRIPT_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

enum script { SCRIPT_SPACED, SCRIPT_HIRAGANA, SCRIPT_KATAKANA, SCRIPT_DENSE };

/* script_of(p, end, n): the script of the letter at ${p}; *n: its bytes. */
enum script script_of(const char *p, const char *end, size_t *n);

#endif
