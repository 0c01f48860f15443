/*
 * The configuration reader on arbitrary bytes: what is accepted must dump to what reads back to the
 * same.
 */
#include "core/conf/conf.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The configuration in ${text}; NULL when it has mistakes. */
static struct conf *load(const void *text, size_t size, FILE *mistakes)
{
    char path[32];
    struct conf *conf = NULL;
    int fd = memfd_create("conf", MFD_CLOEXEC);
    if (fd < 0 || write(fd, text, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int count = conf_load(path, true, NULL, 0, mistakes, &conf);
    if ((count == 0) != (conf != NULL))
        abort();
    close(fd);
    return conf;
}

static char *dumped(const struct conf *conf)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        abort();
    conf_dump(conf, out);
    fclose(out);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *mistakes = fopen("/dev/null", "w");
    struct conf *first = load(data, size, mistakes);
    if (first != NULL) {
        char *text = dumped(first);
        struct conf *second = load(text, strlen(text), stderr);
        if (second == NULL)
            abort();
        char *again = dumped(second);
        if (strcmp(text, again) != 0)
            abort();
        free(text);
        free(again);
        conf_free(first);
        conf_free(second);
    }
    fclose(mistakes);
    return 0;
}
