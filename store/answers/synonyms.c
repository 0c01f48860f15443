#include "store/answers/file_internal.h"
#include "store/answers/question_internal.h"
#include "store/answers/tokenizer_internal.h"
#include "store/bytes.h"

#include <stdlib.h>

struct reading {
    struct file_table *t;
    int group;
    bool policy, asks, answers;
};

static int take_form(void *arg, int flags, const char *token, int n, int from, int to)
{
    struct reading *r = arg;
    (void)from, (void)to;
    if ((flags & FTS5_TOKEN_COLOCATED) != 0 || n > TOKENIZER_WORD_MAX)
        return SQLITE_OK;
    struct synonym s = {.group = r->group,
                        .policy = r->policy,
                        .asks = r->asks,
                        .answers = r->answers,
                        .n = (uint8_t)n};
    memcpy(s.form, token, (size_t)n);
    buf_add(&r->t->synonyms, &s, sizeof(s));
    return buf_ok(&r->t->synonyms) ? SQLITE_OK : SQLITE_NOMEM;
}

/* The words of a group: of one with ">", those before it ask and those behind it answer. */
static int read_group(struct reading *r, struct str group)
{
    const char *arrow = memchr(group.p, '>', group.n);
    r->policy = group.n > 0 && group.p[0] == '!';
    int rc = SQLITE_OK;
    for (size_t n; group.n > 0 && rc == SQLITE_OK; group.p += n, group.n -= n) {
        n = 1;
        while (n < group.n && group.p[n] != ' ')
            n++;
        r->asks = arrow == NULL || group.p < arrow;
        r->answers = arrow == NULL || group.p > arrow;
        rc = tokenizer_run(r->t->tokenizer, FTS5_TOKENIZE_QUERY, (struct str){group.p, n},
                           take_form, r);
    }
    return rc;
}

static int read_groups(struct file_table *t, const char *groups)
{
    struct reading r = {.t = t};
    int rc = SQLITE_OK;
    for (size_t n; *groups != '\0' && rc == SQLITE_OK; groups += n + (groups[n] != '\0')) {
        n = strcspn(groups, ";");
        rc = read_group(&r, (struct str){groups, n});
        r.group++;
    }
    return rc;
}

int synonyms_make(struct file_table *t)
{
    return t->synonyms.n > 0 ? SQLITE_OK : read_groups(t, synonyms_of(t->language));
}

static bool is_form(const struct synonym *s, const struct question_word *w, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (str_eq((struct str){w->forms[i].p, w->forms[i].n}, (struct str){s->form, s->n}))
            return true;
    return false;
}

static void add(const struct synonym *s, struct question_word *w)
{
    if (w->form_count == QUESTION_FORMS || is_form(s, w, w->form_count))
        return;
    struct question_form *f = &w->forms[w->form_count++];
    memcpy(f->p, s->form, s->n);
    f->n = s->n;
}

void synonyms_add(const struct file_table *t, struct question_word *w)
{
    const struct synonym *all = (const struct synonym *)(const void *)t->synonyms.p;
    size_t n = t->synonyms.n / sizeof(*all);
    for (size_t from = 0, to; from < n; from = to) {
        bool has_word = false;
        for (to = from; to < n && all[to].group == all[from].group; to++)
            has_word = has_word || (all[to].asks && is_form(&all[to], w, w->own));
        w->policy = w->policy || (has_word && all[from].policy);
        for (size_t i = from; i < to && has_word; i++)
            if (all[i].answers)
                add(&all[i], w);
    }
}
