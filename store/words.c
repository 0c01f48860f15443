#include "words.h"

#include "fold.h"

#define HASH_SEED UINT64_C(0x2545f4914f6cdd1d)

static inline uint64_t hash_more(uint64_t h, uint32_t c)
{
    h = (h ^ c) * UINT64_C(0x9fb21c651e98df25);
    return h ^ h >> 32;
}

static inline uint64_t hash_end(uint64_t h)
{
    h = (h ^ h >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ h >> 32) * UINT64_C(0x94d049bb133111eb);
    return h ^ h >> 31;
}

static uint64_t hash_folded(uint64_t h, uint32_t c)
{
    uint32_t out[2];
    size_t n = fold(c, out);
    for (size_t i = 0; i < n; i++)
        h = hash_more(h, out[i]);
    return h;
}

uint32_t words_decode(const uint8_t *at, const uint8_t *end, size_t *n)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    size_t more = *at < 0xc2 ? 0 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : *at < 0xf5 ? 3 : 0;
    uint32_t c = *at & (0x3fu >> more);
    *n = 1;
    if (more == 0 || (size_t)(end - at) <= more)
        return *at < 0x80 ? *at : 0;
    for (size_t i = 1; i <= more; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (at[i] & 0x3f);
    }
    if (c < least[more])
        return 0;
    *n = 1 + more;
    return c;
}

void words_begin(struct words *w, struct str text, bool whole)
{
    const uint8_t *p = (const uint8_t *)text.p;
    *w = (struct words){.begin = p, .at = p, .end = text.n == 0 ? p : p + text.n, .whole = whole};
}

/* The letter that comes next, without stepping over it; marks before it are stepped over. */
static enum letter look(struct words *w, uint32_t *c, size_t *n)
{
    while (w->at < w->end) {
        *c = words_decode(w->at, w->end, n);
        enum letter l = fold_class(*c);
        if (l != LETTER_MARK)
            return l;
        w->at += *n;
    }
    *n = 0;
    return LETTER_NONE;
}

static struct word word_of(const struct words *w, uint64_t h, const uint8_t *from, const uint8_t *to, bool counts)
{
    return (struct word){hash_end(h), (uint32_t)(from - w->begin), (uint32_t)(to - w->begin), counts};
}

static struct word last_alone(const struct words *w, const uint8_t *to, bool counts)
{
    return word_of(w, hash_more(HASH_SEED, w->last), w->last_at, to, counts);
}

static struct word spaced_word(struct words *w)
{
    const uint8_t *from = w->at;
    uint64_t h = HASH_SEED;
    for (;;) {
        while (w->at < w->end && *w->at < 0x80 && fold_ascii[*w->at] != 0)
            h = hash_more(h, fold_ascii[*w->at++]);
        if (w->at == w->end || *w->at < 0x80)
            break;
        size_t n;
        uint32_t c = words_decode(w->at, w->end, &n);
        enum letter l = fold_class(c);
        if (l != LETTER_WORD && l != LETTER_MARK)
            break;
        if (l == LETTER_WORD)
            h = hash_folded(h, c);
        w->at += n;
    }
    return word_of(w, h, from, w->at, true);
}

/* A letter of a run is seen; the word that it makes with the one before, if there is one. */
static bool dense_letter(struct words *w, enum letter l, uint32_t c, size_t n, struct word *out)
{
    uint32_t folded[2];
    bool made = w->run > 0;
    fold(c, folded);
    if (made) {
        *out = word_of(w, hash_more(hash_more(HASH_SEED, w->last), folded[0]), w->last_at, w->at + n, true);
        w->waiting = w->whole && w->last_ideograph;
        w->next = last_alone(w, w->at, false);
    }
    w->run++;
    w->last = folded[0];
    w->last_at = w->at;
    w->last_ideograph = l == LETTER_IDEOGRAPH;
    w->at += n;
    return made;
}

/* The run has ended before what comes next; is its last letter a word? */
static bool dense_end(struct words *w, struct word *out)
{
    bool alone = w->run == 1, made = alone || (w->run > 1 && w->whole && w->last_ideograph);
    if (made)
        *out = last_alone(w, w->at, alone);
    w->run = 0;
    return made;
}

bool words_next(struct words *w, struct word *out)
{
    if (w->waiting) {
        w->waiting = false;
        *out = w->next;
        return true;
    }
    for (;;) {
        uint32_t c;
        size_t n;
        enum letter l = look(w, &c, &n);
        if (l >= LETTER_DENSE) {
            if (dense_letter(w, l, c, n, out))
                return true;
            continue;
        }
        if (dense_end(w, out))
            return true;
        if (l == LETTER_WORD) {
            *out = spaced_word(w);
            return true;
        }
        if (n == 0)
            return false;
        w->at += n;
    }
}

uint64_t words_hash(struct str text)
{
    struct words w;
    struct word word = {0};
    words_begin(&w, text, false);
    return words_next(&w, &word) ? word.hash : 0;
}

/* ---- words that say nothing ---- */

/* Of questions in the languages that shops write most; folded. What else is frequent is told by the documents themselves. */
static const char *const stops =
    "a an and any are as at be been but by can could do does did for from had has have he her hi hello hey his how i if in into is it its "
    "just me my no not of on or our please s she should so some t tell than thank thanks that the their them then there these they this "
    "those to us was we were what when where which who whom whose why will with would you your about d ll m re ve know want need like get "
    "aber als am an auch auf aus bei bin bis das dass dem den der des die dies diese dieser doch du ein eine einem einen einer eines er es "
    "fur gibt habe haben hallo hat hier ich ihr ihre im in ist ja kann kein keine konnen mein mit nach nicht noch nur oder sich sie sind "
    "so "
    "uber um und uns unter vom von vor wann war warum was welche wenn wer werden wie wir wird wo zu zum zur bitte danke "
    "au aux avec ce ces cette c dans de des du elle elles en est et etes il ils j je l la le les leur lui ma mais mes moi mon n ne nos "
    "notre nous on ou par pas pour pourquoi quand que quel quelle quelles quels qui quoi sa sans se ses son sont sur ta te tes toi ton tu "
    "un une vos votre vous y bonjour merci avez comment "
    "al como con cual cuales cuando de del donde el ella ellos eres es esta estan este esto ha hay la las lo los mas me mi muy nos o para "
    "pero por porque que quien se ser si sin sobre son su sus tiene tienen un una uno unos y ya yo hola gracias "
    "che chi ci come cosa da dal dalla dei del della delle di do dove e ed gli ha hanno ho i il in io la le lo ma mi nel nella non per "
    "perche piu quale quali quando questo questa se si sono sul sulla tra un una vi voi ciao grazie "
    "ao aos as com como da das de do dos e ele ela em eu foi isso mais mas na nas no nos nao o os ou para pela pelo por qual quando que "
    "quem se sem seu sua tem um uma voce ola obrigado "
    "aan als bij dat de deze die dit door een en er het hoe ik in is je jij jullie kan maar met mijn naar niet of om ook op over te tot "
    "uit "
    "van veel voor waar wanneer wat welke wie wij zijn zo hoi bedankt";

#define STOP_SLOTS 1024                 /* a power of two, over twice their number */
static uint64_t stop_slots[STOP_SLOTS]; /* filled by the first who asks; a process asks in one thread */
static bool stops_known;

static uint64_t *stop_slot(uint64_t hash)
{
    size_t at = hash % STOP_SLOTS;
    while (stop_slots[at] != 0 && stop_slots[at] != hash)
        at = (at + 1) % STOP_SLOTS;
    return &stop_slots[at];
}

bool words_is_stop(uint64_t hash)
{
    if (!stops_known) {
        struct words w;
        struct word word;
        words_begin(&w, (struct str){stops, strlen(stops)}, false);
        while (words_next(&w, &word))
            *stop_slot(word.hash) = word.hash;
        stops_known = true;
    }
    return *stop_slot(hash) == hash && hash != 0;
}
