/*
 * The full-text index: which documents of an agent answer a question best. Private to store/; store.h knows look-ups alone.
 *
 *   put, replace, remove → what the transaction gathers → a new part, by the commit → merged with its neighbours by a later one
 *
 * The documents (synced.h) are the truth, and the index of an agent follows them in the same transactions: its live rows are the agent's
 * documents, no more and no fewer, and what it says of their words is what words.h finds in their texts (store_check proves both). A commit
 * that is there has all of it and one that is not nothing, so that a crash leaves no posting behind and there is nothing to mend.
 *
 * Writing must cost little, since a batch is a hundred documents of some sixty different words each: a posting list for each word, changed
 * where it lies, would be thousands of pages a batch. So postings lie in parts, each one value that never changes: at first what one
 * transaction put, then, as in a log-structured merge tree, some small ones that follow each other become a larger one, up to 4,096
 * documents, which a commit does in some milliseconds. A document is rewritten some four times in its life, sequentially.
 *
 * Every put gives its document the next number of the agent's; a part has a run of them, and a row for each. A document that is put again
 * or removed loses its row: a bit says so (SPACE_TEXT_DEAD), until a merge drops it. How many documents have a word must be known exactly
 * and at once, since the score is made of it: a part says for each word how many documents came with it less how many of any part went, so
 * that the sum over all parts is exact, whatever is dropped when. A part of which half is dead is merged with a neighbour.
 *
 * A look-up goes over all parts (a hundred thousand documents have some thirty) with a row of accumulators that fits the processor's
 * first cache. Each list begins with the most that any of its rows can score, so that a part that cannot reach the best found so far is
 * passed over, and frequent words add to rows already found without making new ones. The score is BM25 (k1 = 1.2, b = 0.75), in which a word
 * of the title counts as four and one of the taxonomy or the SKU as two:
 *
 *   weight(w) = ln(1 + (N - n + 0.5) / (n + 0.5))         N: documents of the agent, n: those with the word
 *   score(d)  = Σ weight(w) · f · (k1 + 1) / (f + k1 · (1 - b + b · words(d) / average))
 *
 * N is at least TEXT_LEAST_DOCUMENTS in weight(w). f is at most 255, and a document has at most 65,535 words; more are not read.
 */
#ifndef ASSAY_STORE_TEXT_H
#define ASSAY_STORE_TEXT_H

#include "internal.h"
#include "words.h"

#define TEXT_ROWS 4096           /* most rows of a part */
#define TEXT_POSTINGS (1u << 20) /* most postings of what is merged */
#define TEXT_WORDS 65535         /* words of a document */
#define TEXT_DOC_ENTRIES 16384   /* of one that came by a batch; a word is an entry each time that it stands there, an ideograph up to two */
#define TEXT_BATCH_ENTRIES 262144 /* of all that came by one batch, so that its transaction is short */
#define TEXT_SHARE 2048          /* of them that each may have in any case */
#define TEXT_UNIT 256            /* entries; a document that is cut has a whole number of them */
#define TEXT_FREQUENCY 255       /* most of a word in a row */
#define TEXT_NO_ROW UINT32_MAX

/* What is read of a document. */
struct text_doc {
    struct str title, taxonomy, sku, text;
};

/* ---- records: the head and the parts' rows behind it, by agent; the bits of dead rows, by agent and part; where a document's row is ---- */

struct PACKED text_head {
    uint64_t documents, words; /* living, exact */
    uint64_t next_seq, next_part;
};

struct PACKED text_part_row {
    uint64_t part, first, last; /* its number; those of its first and last row. A part without rows: 0 */
    uint32_t rows, dead, terms, postings;
};

struct PACKED text_row_record {
    struct ulid agent;
    uint64_t seq;
    uint16_t words, units; /* units: of entries that were read, where there are more; 0: all were */
};

struct text_manifest {
    struct text_head head;
    const struct text_part_row *parts; /* borrowed */
    size_t count;
};

/* text_manifest(s, txn, agent, out): an empty one where there is none. */
enum store_status text_manifest(struct store *s, MDB_txn *txn, const struct ulid *agent, struct text_manifest *out);

/* text_dead(s, txn, agent, part, bits): TEXT_ROWS bits of rows that are dead; false when they cannot be read. */
bool text_dead(struct store *s, MDB_txn *txn, const struct ulid *agent, uint64_t part, uint64_t *bits);

static inline void text_part_key(struct key *k, enum space space, const struct ulid *agent, uint64_t part)
{
    key_space(k, space);
    key_bytes(k, agent->b, ULID_BYTES);
    key_u64(k, part);
}

/* ---- writing (writer) ---- */

/*
 * text_set(t, agent, id, was, now): document ${id} of ${agent} was ${was} and is ${now}; NULL: it was not there, or is no more. ${was} is
 * what was put, to the letter. Errors stick in the transaction.
 */
void text_set(struct store_txn *t, const struct ulid *agent, uint64_t id, const struct text_doc *was, const struct text_doc *now);

/*
 * text_share(t, count): so many documents will be put that came together, and share what one batch may have in the index. What is put without
 * it is read up to TEXT_WORDS.
 */
void text_share(struct store_txn *t, size_t count);

/*
 * text_gather(doc, units, each, arg): every word of a document that is read, up to so many units of entries (0: all), and what it counts; how
 * many words it has.
 */
typedef void text_word_fn(void *arg, uint64_t hash, uint32_t frequency);
uint32_t text_gather(const struct text_doc *doc, uint32_t units, text_word_fn *each, void *arg);

/* text_write(t): put what the transaction gathered; by the commit. text_undo(t): forget it. text_free(t): and the memory. */
void text_write(struct store_txn *t);
void text_undo(struct store_txn *t);
void text_free(struct store_txn *t);

/*
 * text_erase(t, agent, left): the index of an agent that goes with all it has: nothing is found from the first record on; at most *left of
 * them. Its documents are then removed by text_forget(t, id), which is cheaper than text_set.
 */
void text_erase(struct store_txn *t, const struct ulid *agent, uint64_t *left);
void text_forget(struct store_txn *t, uint64_t id);

/* ---- a part (text_part.c) ---- */

/*
 * Borrowed. A part is text_part_head and then, not aligned: hashes (ascending, uint64), where each one's list begins (uint32, one more),
 * documents' ids (uint64, by row), their numbers less the first's (uint32), how many words they have (uint16), the lists.
 *
 * A list: how many rows, doubled, and one more where as many documents as rows is not what it says (then what it says follows, its sign
 * in the lowest bit). Where it has rows, the highest frequency and (2 bytes) the smallest length of them, and for each row how many are
 * between it and the last, doubled, and one more where the frequency is not 1 (then it follows in a byte). Numbers have seven bits a byte,
 * the low ones first.
 */
struct PACKED text_part_head {
    uint32_t rows, terms, list_bytes;
    uint64_t first;
};

struct text_part {
    uint32_t rows, terms;
    uint64_t first;
    const uint8_t *hashes, *at, *ids, *seqs, *lengths, *lists, *end;
};

struct text_list {
    const uint8_t *at, *end;
    int64_t documents;   /* that came with the word in this part, less those that went */
    uint32_t count, row; /* rows left; the last one read */
    uint32_t max_frequency, min_length;
};

bool text_part_read(MDB_val value, struct text_part *out);
enum store_status text_part_get(struct store *s, MDB_txn *txn, const struct ulid *agent, uint64_t part, struct text_part *out);
/* text_part_find(p, hash): which term; p->terms when there is none. text_part_list(p, term, out): false when it is malformed. */
uint32_t text_part_find(const struct text_part *p, uint64_t hash);
bool text_part_list(const struct text_part *p, uint32_t term, struct text_list *out);
/* text_part_row(p, seq): the row of that number; p->rows when there is none. */
uint32_t text_part_row(const struct text_part *p, uint64_t seq);

static inline uint64_t text_load64(const uint8_t *p, size_t i)
{
    uint64_t v;
    memcpy(&v, p + i * sizeof(v), sizeof(v));
    return v;
}

static inline uint32_t text_load32(const uint8_t *p, size_t i)
{
    uint32_t v;
    memcpy(&v, p + i * sizeof(v), sizeof(v));
    return v;
}

static inline uint32_t text_load16(const uint8_t *p, size_t i)
{
    uint16_t v;
    memcpy(&v, p + i * sizeof(v), sizeof(v));
    return v;
}

/* text_number(at, end, out): read a number of seven bits a byte; false at the end. */
static inline bool text_number(const uint8_t **at, const uint8_t *end, uint32_t *out)
{
    uint32_t v = 0;
    for (unsigned shift = 0; *at < end && shift < 35; shift += 7) {
        uint8_t b = *(*at)++;
        v |= (uint32_t)(b & 0x7f) << shift;
        if (b < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

/* text_list_next(l, frequency): step to the next row, l->row; false when there is none. */
static inline bool text_list_next(struct text_list *l, uint32_t *frequency)
{
    uint32_t v;
    if (l->count == 0 || !text_number(&l->at, l->end, &v))
        return false;
    l->count--;
    l->row += 1 + (v >> 1);
    *frequency = 1;
    if (v & 1) {
        if (l->at == l->end)
            return false;
        *frequency = *l->at++;
    }
    return true;
}

/* ---- making one: rows first, then terms in the order of their hashes, each with its rows in order ---- */

struct text_maker {
    struct buf hashes, at, lists, ids, seqs, lengths; /* at: not the last */
    struct buf postings;                              /* of the term under way */
    uint64_t first, last, hash;
    uint32_t rows, terms, all_postings;
    uint32_t count, next_row, max_frequency, min_length;
    int64_t documents;
};

uint32_t text_make_row(struct text_maker *m, uint64_t id, uint64_t seq, uint32_t words);
void text_make_term(struct text_maker *m, uint64_t hash);
void text_make_posting(struct text_maker *m, uint32_t row, uint32_t frequency); /* documents are counted apart */
void text_make_term_end(struct text_maker *m);                                  /* nothing is left of one that says nothing */
/* text_make_put(t, m, agent, part, out): put it as that part and fill its row; frees the maker's memory. */
void text_make_put(struct store_txn *t, struct text_maker *m, const struct ulid *agent, uint64_t part, struct text_part_row *out);
void text_make_free(struct text_maker *m);

/* ---- merging (text_merge.c) ---- */

/*
 * text_merge_tail(parts, count), text_merge_half_dead(parts, count, n): which parts should become one: the first of them; ${count} when
 * none. The tail goes to the end. text_merge(t, agent, parts, n, number, out): make one of ${n} parts, as part ${number}, and delete them.
 */
size_t text_merge_tail(const struct text_part_row *parts, size_t count);
size_t text_merge_half_dead(const struct text_part_row *parts, size_t count, size_t *n);
void text_merge(struct store_txn *t, const struct ulid *agent, const struct text_part_row *parts, size_t n, uint64_t number,
                struct text_part_row *out);

/* ---- look-ups (text_find.c) ---- */

#define TEXT_QUESTION_WORDS 128 /* different ones that are looked up, the first of the question */
#define TEXT_SMALL 256          /* documents of a small collection; it scores all words. In a larger one: */
#define TEXT_SCORED_WORDS 32    /* that are scored by: the rarest */
#define TEXT_SCORED_SHARE 6     /* and no more than have this many times the agent's documents together, but for the rarest */
#define TEXT_LEAST_DOCUMENTS 100 /* a smaller collection weighs words as one of so many documents */
#define TEXT_HITS_MAX 64

struct text_term {
    uint64_t hash, documents; /* that have it */
    float weight;
    bool stop;
};

/* The words of a question, those that are scored by first, the rarest first. */
struct text_question {
    struct text_term terms[TEXT_QUESTION_WORDS];
    unsigned count, scored;
    double weight; /* of all that are no stop words */
    uint64_t documents;
    double average; /* words of a document */
};

struct text_hit {
    uint64_t id, seq;
    float score;
    float share; /* of the question's weight that the document has, 0 to 1 */
};

/* text_ask(s, txn, agent, question, out): its words and what they weigh. */
enum store_status text_ask(struct store *s, MDB_txn *txn, const struct ulid *agent, struct str question, struct text_question *out);

/* text_there_fn(s, txn, arg, id): may that document be found? Asked of those alone that would be kept; STORE_NOT_FOUND: no. */
typedef enum store_status text_there_fn(struct store *s, MDB_txn *txn, void *arg, uint64_t id);

/*
 * text_find(s, txn, agent, q, limit, there, arg, hits, count): the best ${limit} (at most TEXT_HITS_MAX), the best first, of equals the one put
 * first. ${there} NULL: all that are in the index.
 */
enum store_status text_find(struct store *s, MDB_txn *txn, const struct ulid *agent, const struct text_question *q, unsigned limit,
                            text_there_fn *there, void *arg, struct text_hit *hits, unsigned *count);

/* ---- the best passage (excerpt.c) ---- */

/*
 * excerpt(q, text, most_bytes): where in ${text} the passage stands that has most of the question's weight, the earliest of equals: whole
 * sentences where they fit, else whole words. Of a text without any of its words, the beginning.
 */
struct str excerpt(const struct text_question *q, struct str text, size_t most_bytes);

#endif
