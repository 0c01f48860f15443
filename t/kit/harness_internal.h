/* Shared by the files of the harness. */
#ifndef ASSAY_T_HARNESS_INTERNAL_H
#define ASSAY_T_HARNESS_INTERNAL_H

#include "t/kit/harness.h"

#include <stdarg.h>

/* ---- programs (harness_run.c) ---- */

enum { ARGS_MAX = 32 };

/*
 * program_become: in a child, die with ${parent}, take default signals, these descriptors, that
 * program. program_words: put ${args}, which end with NULL, behind the first ${count} of ${argv};
 * how many there are. program_wait: an exit status, 128 + signal, or -1 after ${within_ms}.
 */
_Noreturn void program_become(pid_t parent, int out, int err, char *const *argv);
size_t program_words(char **argv, size_t count, va_list args);
int program_wait(pid_t pid, int within_ms);

/* file_text(path): what a file holds. */
char *file_text(const char *path);

/* ---- bytes (harness_client.c) ---- */

/* Bytes that grow; a NUL stands behind them. */
struct bytes {
    char *data;
    size_t size;
};
void bytes_add(struct bytes *b, const char *data, size_t size);

/* bytes_shown(data, size): as one can read them in a message. */
char *bytes_shown(const char *data, size_t size);

/*
 * response_head(r, head): fill in status and headers from ${head}, which ends with its empty line.
 * response_json(r): parse its body, where it is JSON.
 */
void response_head(struct response *r, const char *head);
void response_json(struct response *r);

#endif
