/*
 * For tests of the configuration: a private directory with one configuration file, loaded and
 * dumped.
 */
#ifndef ASSAY_CONF_KIT_H
#define ASSAY_CONF_KIT_H

#include "core/conf/conf.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))
#define NO_SETS NULL, 0

/* conf_kit_open, conf_kit_close: a fixture. conf_kit_path: its file. */
extern char conf_kit_path[64];
void conf_kit_open(void);
void conf_kit_close(void);

/* conf_kit_write(text, size): writes the file. */
void conf_kit_write(const char *text, size_t size);

/*
 * conf_kit_load(text, sets, set_count, mistakes, conf): conf_load of a file with ${text} (NULL: no
 * file). ${mistakes}, which the caller frees, has all messages.
 */
int conf_kit_load(const char *text, const char *const *sets, size_t set_count, char **mistakes,
                  struct conf **conf);

/*
 * conf_kit_loaded(text, sets, set_count): the same, and there must be no mistake.
 * conf_kit_dumped(conf): the dump, which the caller frees.
 */
struct conf *conf_kit_loaded(const char *text, const char *const *sets, size_t set_count);
char *conf_kit_dumped(const struct conf *conf);

/*
 * conf_kit_has(mistakes, line, sentence): there must be a line "FILE:LINE: …SENTENCE…", or for line
 * 0 "--set: …SENTENCE…".
 */
void conf_kit_has(const char *mistakes, unsigned line, const char *sentence);

#endif
