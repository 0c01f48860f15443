/* What the words of a question are worth in one table: how many documents have them. */
#include "store/answers/question_internal.h"

#include <math.h>

enum store_status question_weigh(struct question *q, struct file *f, struct file_table *t)
{
    enum store_status status = STORE_OK;
    for (unsigned i = 0; i < q->count && status == STORE_OK; i++)
        status = question_count_documents(&q->words[i], f, t);
    if (status == STORE_OK)
        question_split_compounds(q, f, t);
    if (status == STORE_OK)
        status = question_seek_relatives(q, f, t);
    for (unsigned i = 0; i < q->count; i++) {
        const struct question_word *w = &q->words[i];
        double n = (double)(w->own_documents > 0 ? w->own_documents : w->documents);
        double all = (double)t->documents;
        q->words[i].rarity = n > all ? 0 : log(1 + (all - n + 0.5) / (n + 0.5));
    }
    return status;
}
