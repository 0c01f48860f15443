#include "t/kit/conf.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[] = "/tmp/assay-conf-XXXXXX";
char conf_kit_path[64];

void conf_kit_open(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(conf_kit_path, sizeof(conf_kit_path), "%s/c.yaml", dir);
}

void conf_kit_close(void)
{
    unlink(conf_kit_path);
    ck_assert_int_eq(rmdir(dir), 0);
}

void conf_kit_write(const char *text, size_t size)
{
    FILE *file = fopen(conf_kit_path, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(text, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

int conf_kit_load(const char *text, const char *const *sets, size_t set_count, char **mistakes,
                  struct conf **conf)
{
    size_t size;
    if (text != NULL)
        conf_kit_write(text, strlen(text));
    FILE *out = open_memstream(mistakes, &size);
    ck_assert_ptr_nonnull(out);
    int count = conf_load(text == NULL ? NULL : conf_kit_path, true, sets, set_count, out, conf);
    fclose(out);
    return count;
}

struct conf *conf_kit_loaded(const char *text, const char *const *sets, size_t set_count)
{
    char *mistakes;
    struct conf *conf;
    int count = conf_kit_load(text, sets, set_count, &mistakes, &conf);
    ck_assert_msg(count == 0, "%s", mistakes);
    ck_assert_str_eq(mistakes, "");
    free(mistakes);
    return conf;
}

char *conf_kit_dumped(const struct conf *conf)
{
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    conf_dump(conf, out);
    fclose(out);
    return text;
}

void conf_kit_has(const char *mistakes, unsigned line, const char *sentence)
{
    char start[96];
    if (line == 0)
        snprintf(start, sizeof(start), "--set: ");
    else
        snprintf(start, sizeof(start), "%s:%u: ", conf_kit_path, line);
    const char *at = mistakes;
    while ((at = strstr(at, start)) != NULL) {
        const char *end = strchr(at, '\n'), *found = strstr(at, sentence);
        if (found != NULL && found < end)
            return;
        at = end;
    }
    ck_abort_msg("wanted %s…%s in:\n%s", start, sentence, mistakes);
}
