/* The file of `audit --html`, and the exit statuses of audit. */
#ifndef ASSAY_AUDIT_FILE_H
#define ASSAY_AUDIT_FILE_H

#include "cmd/cmd.h"

enum { AUDIT_GOOD = 0, AUDIT_NOT_GOOD = 1, AUDIT_FAILED = 2 };

/*
 * audit_file(cmd, path, grade): run ${grade} in a child process, since the sandbox of grading
 * creates no files, and write what it sends through the descriptor ${html} to ${path}; "-": to
 * standard output. An existing file is replaced when the new one is complete. The child process
 * returns, too. Returns the status of ${grade}, or AUDIT_FAILED after a message.
 */
int audit_file(struct cmd *cmd, const char *path, int (*grade)(struct cmd *cmd, int html));

/* audit_file_write(fd, text): write all of ${text}. False with errno. */
bool audit_file_write(int fd, struct str text);

#endif
