/* Small files beside the store that a backup has too. */
#ifndef ASSAY_CMD_COPY_H
#define ASSAY_CMD_COPY_H

#include <stdbool.h>

/*
 * cmd_copy_file(from, to): a copy with mode 0600, on the disk under its name when this returns;
 * what was at ${to} is replaced as a whole. Root's copy has owner and mode of what it replaces, else
 * the owner of its directory. False: errno says why, and ${to} is as it was.
 */
bool cmd_copy_file(const char *from, const char *to);

/* cmd_same_file(a, b): are both there, with the same bytes? */
bool cmd_same_file(const char *a, const char *b);

#endif
