#include "core/master/generations.h"

#include "core/base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ${mistakes}: lines of text; warnings only when the configuration can be used */
static void log_mistakes(char *mistakes, bool usable, bool reload)
{
    char *line = mistakes == NULL ? NULL : strtok(mistakes, "\n");
    for (; line != NULL; line = strtok(NULL, "\n"))
        if (usable)
            log_warn("%s", line);
        else
            log_error("%s%s", reload ? "reload refused: " : "", line);
}

bool generations_add(struct generations *generations, struct conf *conf)
{
    char *text = NULL;
    size_t size = 0;
    FILE *mistakes = open_memstream(&text, &size);
    struct generation *g = calloc(1, sizeof(*g));
    struct generation *newest = generations->newest;
    bool ok = mistakes != NULL && g != NULL && tls_load(conf, &g->tls, mistakes) == 0;
    if (mistakes != NULL)
        fclose(mistakes);
    log_mistakes(text, ok, newest != NULL);
    if (mistakes == NULL || g == NULL)
        log_error("configuration: out of memory");
    free(text);
    if (!ok) {
        free(g);
        return false;
    }
    g->conf = conf;
    g->number = newest == NULL ? 0 : newest->number + 1;
    g->next = newest;
    generations->newest = g;
    return true;
}

static void generation_free(struct generation *g)
{
    tls_free(&g->tls);
    conf_free(g->conf);
    free(g);
}

/* the newest stays also while it has no children */
static void free_unused(struct generations *generations)
{
    struct generation **at = &generations->newest->next;
    while (*at != NULL) {
        struct generation *g = *at;
        if (g->children > 0) {
            at = &g->next;
            continue;
        }
        *at = g->next;
        generation_free(g);
    }
}

void generations_release(struct generations *generations, unsigned number)
{
    for (struct generation *g = generations->newest; g != NULL; g = g->next)
        if (g->number == number)
            g->children--;
    free_unused(generations);
}

unsigned generations_draining(const struct generations *generations)
{
    unsigned count = 0;
    for (const struct generation *g = generations->newest->next; g != NULL; g = g->next)
        count += g->children > 0;
    return count;
}

void generations_free(struct generations *generations)
{
    while (generations->newest != NULL) {
        struct generation *g = generations->newest;
        generations->newest = g->next;
        generation_free(g);
    }
}
