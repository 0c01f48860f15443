/*
 * Prints how well the answer index answers the question sets:
 *
 *   run_answers_report [-v] [-b DOCUMENTS] tune|held DIR SET.json...
 *
 * For each language and kind of shop: questions with an answer, of them the right page first, of
 * them said to answer; questions without one, of them answered all the same. Sets of one language
 * are added up. -b: also each shop among so many generated documents. -v: the failures.
 * Indexes are made in DIR, an existing directory.
 */
#include "t/kit/answers_sets.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SETS_MAX 64

static void print(const char *language, const char *shop, const struct tally *t)
{
    unsigned a = t->answerable ? t->answerable : 1, u = t->unanswerable ? t->unanswerable : 1;
    printf("%s %-6s  answerable %3u  right first %5.1f %%  and answered %5.1f %%   unanswerable "
           "%3u  answered %5.1f %%\n",
           language, shop, t->answerable, 100.0 * t->first / a, 100.0 * t->kept / a,
           t->unanswerable, 100.0 * t->answered / u);
}

static void report(struct set *sets, size_t n, const char *use, const char *dir, size_t buried,
                   bool verbose)
{
    static const char *const shops[] = {"whole", "pair", "buried"};
    if (buried > 0)
        sets_bury(dir, sets, n, buried);
    for (enum shop shop = SHOP_WHOLE; shop <= (buried > 0 ? SHOP_BURIED : SHOP_PAIR); shop++) {
        struct tally t = {0};
        for (size_t i = 0; i < n; i++)
            set_ask(&sets[i], use, shop, dir, verbose, &t);
        print(sets[0].language, shops[shop], &t);
    }
}

int main(int argc, char **argv)
{
    struct set sets[SETS_MAX];
    bool verbose = false;
    size_t buried = 0, count = 0, next;
    for (int c; (c = getopt(argc, argv, "vb:")) != -1;) {
        if (c == 'v')
            verbose = true;
        else
            buried = strtoul(optarg, NULL, 10);
    }
    if (argc - optind < 3)
        return fprintf(stderr,
                       "usage: run_answers_report [-v] [-b DOCUMENTS] tune|held DIR SET.json...\n"),
               2;
    for (int i = optind + 2; i < argc && count < SETS_MAX; i++)
        set_load(argv[i], &sets[count++]);
    for (size_t i = 0; i < count; i = next) {
        for (next = i + 1; next < count && strcmp(sets[i].language, sets[next].language) == 0;)
            next++;
        report(sets + i, next - i, argv[optind], argv[optind + 1], buried, verbose);
    }
    for (size_t i = 0; i < count; i++)
        set_free(&sets[i]);
    return 0;
}
