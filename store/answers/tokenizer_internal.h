/*
 * FTS5 tokenizer "assay LANGUAGE".
 *
 *   unicode61 splits and folds  ->  runs of scripts without spaces become bigrams
 *                               ->  other words: remove stop words, stem, remove accents
 *
 * Queries use tokens verbatim (TOKENIZER_VERBATIM), so that nothing is stemmed twice.
 *
 * A word with accents can have two forms: the stem without its accents, and the stem of the word
 * without accents. The second is colocated (FTS5_TOKEN_COLOCATED), so "devolucion" finds
 * "devolución". In documents the first letter of a bigram is colocated, so that a question of one
 * letter finds it. A question's runs end where Hiragana begins or ends. With FTS5_TOKENIZE_PREFIX a
 * word is a prefix of tokens: neither removed as a stop word nor stemmed.
 */
#ifndef ASSAY_STORE_ANSWERS_TOKENIZER_INTERNAL_H
#define ASSAY_STORE_ANSWERS_TOKENIZER_INTERNAL_H

#include "store/answers/language_internal.h"

#include <sqlite3.h>

#define TOKENIZER_WORD_MAX 64 /* bytes of a word; the rest is cut */

/* As xToken of FTS5: offsets in the text. An SQLite result code. */
typedef int token_fn(void *arg, int flags, const char *token, int n, int from, int to);

struct tokenizer;

/*
 * A query of TOKENIZER_VERBATIM and tokens, separated by TOKENIZER_SAME, gives these tokens at one
 * place, so FTS5 searches for any of them. Both are code points that no token has.
 */
#define TOKENIZER_VERBATIM "\xee\x80\x80" /* U+E000 */
#define TOKENIZER_SAME "\xee\x80\x81"     /* U+E001 */

/* tokenizer_register(db, api): register "assay" in ${db}. ${api} is borrowed from ${db}. */
int tokenizer_register(sqlite3 *db, fts5_api **api);

/* tokenizer_new(api, language, out), tokenizer_free: a tokenizer without a table. SQLite codes. */
int tokenizer_new(fts5_api *api, const struct language *language, struct tokenizer **out);
void tokenizer_free(struct tokenizer *t);

/* tokenizer_run(t, flags, text, token, arg): ${flags} FTS5_TOKENIZE_DOCUMENT or _QUERY. */
int tokenizer_run(struct tokenizer *t, int flags, struct str text, token_fn *token, void *arg);

const struct language *tokenizer_language(const struct tokenizer *t);

#endif
