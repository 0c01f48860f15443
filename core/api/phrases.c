#include "core/api/phrases_internal.h"

#include "core/audit/text.h"

#define KINDS (PHRASE_GOODBYE + 1) /* kinds of small talk; their replies are the first phrases */

/*
 * Columns: language; greetings, thanks, goodbyes and the words allowed beside them, in lower case
 * without punctuation, separated by |; the phrases. If several languages have a greeting, the
 * agent's language is used, otherwise the first row that has it.
 */
static const struct row {
    const char *language, *talk[KINDS], *neutral, *phrases[PHRASES];
} rows[] = {
    {"en",
     {"|hello|hi|hey|hiya|howdy|good morning|good afternoon|good evening|good day|greetings|",
      "|thanks|thank you|thx|ty|cheers|many thanks|",
      "|bye|goodbye|good bye|see you|good night|have a nice day|have a good day|take care|"},
     "|ok|great|perfect|there|all|everyone|later|a lot|so much|very much|for your help|you too|",
     {"Hello! What would you like to know?", "You are welcome!", "Goodbye!",
      ("I found nothing about that on this site. Leave your e-mail address or ask for a "
       "person, and somebody will answer you."),
      "regular price", "in stock", "out of stock", "available on backorder"}},
    {"fr",
     {"|bonjour|bonsoir|salut|coucou|allô|allo|", "|merci|mille mercis|grand merci|",
      "|au revoir|bonne journée|bonne soirée|bonne nuit|à bientôt|a bientot|à plus|à plus tard|"},
     "|ok|d accord|super|parfait|beaucoup|bien|à tous|madame|monsieur|pour votre aide|",
     {"Bonjour ! Que souhaitez-vous savoir ?", "Avec plaisir !", "Au revoir !",
      ("Je n’ai rien trouvé à ce sujet sur ce site. Laissez votre adresse e-mail ou "
       "demandez à parler à une personne, et quelqu’un vous répondra."),
      "prix normal", "en stock", "en rupture de stock", "disponible sur commande"}},
    {"es",
     {"|hola|buenas|buenos días|buenos dias|buen día|buen dia|buenas tardes|buenas noches|saludos|",
      "|gracias|muchas gracias|mil gracias|muchísimas gracias|",
      "|adiós|adios|hasta luego|hasta pronto|hasta mañana|chao|nos vemos|"},
     "|ok|vale|perfecto|qué tal|que tal|a todos|por su ayuda|por tu ayuda|por la ayuda|",
     {"¡Hola! ¿Qué le gustaría saber?", "¡De nada!", "¡Hasta luego!",
      ("No he encontrado nada sobre eso en este sitio. Deje su correo electrónico o "
       "pida hablar con una persona, y alguien le responderá."),
      "precio normal", "en existencias", "agotado", "disponible bajo pedido"}},
    {"pt",
     {"|olá|ola|oi|bom dia|boa tarde|boa noite|",
      "|obrigado|obrigada|muito obrigado|muito obrigada|valeu|",
      "|tchau|adeus|até logo|ate logo|até mais|até breve|até amanhã|"},
     "|ok|perfeito|tudo bem|a todos|pela ajuda|pela sua ajuda|",
     {"Olá! O que gostaria de saber?", "De nada!", "Até logo!",
      ("Não encontrei nada sobre isso neste site. Deixe o seu e-mail ou peça para falar "
       "com uma pessoa, e alguém lhe responderá."),
      "preço normal", "em estoque", "esgotado", "disponível sob encomenda"}},
    {"it",
     {"|ciao|salve|buongiorno|buon giorno|buonasera|buona sera|",
      "|grazie|molte grazie|tante grazie|",
      "|arrivederci|a presto|buona giornata|buona serata|buonanotte|buona notte|"},
     "|ok|perfetto|mille|a tutti|per l aiuto|",
     {"Salve! Che cosa desidera sapere?", "Prego!", "Arrivederci!",
      ("Non ho trovato nulla al riguardo su questo sito. Lasci il Suo indirizzo e-mail o "
       "chieda di parlare con una persona, e qualcuno Le risponderà."),
      "prezzo normale", "disponibile", "esaurito", "disponibile su ordinazione"}},
    {"de",
     {"|hallo|hi|hey|guten tag|guten morgen|guten abend|moin|servus|grüß gott|grüß dich|grüezi|",
      "|danke|dankeschön|danke schön|danke sehr|vielen dank|besten dank|herzlichen dank|",
      "|auf wiedersehen|tschüss|tschüß|tschuess|ciao|bis bald|bis später|schönen tag|gute nacht|"},
     "|ok|super|prima|gut|alles klar|noch|zusammen|ihnen|dir|für ihre hilfe|für die hilfe|",
     {"Guten Tag! Was möchten Sie wissen?", "Gern geschehen!", "Auf Wiedersehen!",
      ("Dazu habe ich auf dieser Website nichts gefunden. Hinterlassen Sie Ihre "
       "E-Mail-Adresse oder fragen Sie nach einer Person, dann antwortet Ihnen jemand."),
      "regulärer Preis", "auf Lager", "nicht auf Lager", "auf Nachbestellung lieferbar"}},
    {"nl",
     {"|hallo|hoi|hey|hi|goedemorgen|goedemiddag|goedenavond|goedendag|dag|",
      "|bedankt|dank je|dank je wel|dank u|dank u wel|dankjewel|dankuwel|heel erg bedankt|",
      "|doei|tot ziens|tot later|tot straks|fijne dag|fijne avond|"},
     "|ok|oké|okay|super|prima|allemaal|voor je hulp|voor uw hulp|",
     {"Hallo! Wat wilt u weten?", "Graag gedaan!", "Tot ziens!",
      ("Daarover heb ik op deze site niets gevonden. Laat uw e-mailadres achter of "
       "vraag om een medewerker, dan krijgt u antwoord."),
      "normale prijs", "op voorraad", "niet op voorraad", "leverbaar op nabestelling"}},
    {"ja",
     {"|こんにちは|こんにちわ|こんばんは|おはよう|おはようございます|はじめまして|もしもし|",
      "|ありがとう|ありがとうございます|ありがとうございました|どうもありがとうございます|",
      "|さようなら|さよなら|またね|では また|失礼します|おやすみなさい|バイバイ|"},
     "|はい|どうも|了解です|わかりました|",
     {"こんにちは。何をお知りになりたいですか？", "どういたしまして。", "さようなら。",
      ("このサイトには該当する情報が見つかりませんでした。"
       "ご連絡先を残していただくか、担当者をお呼びください。"),
      "通常価格", "在庫あり", "在庫切れ", "お取り寄せ可"}},
};

#define ROWS (sizeof(rows) / sizeof(*rows))

/* The row of a tag's primary subtag (RFC 5646), or the first row. */
static const struct row *row_of(struct str language)
{
    for (size_t i = 0; i < ROWS; i++)
        if (text_starts(language, rows[i].language) && (language.n == 2 || language.p[2] == '-'))
            return &rows[i];
    return &rows[0];
}

struct str phrase_of(struct str language, enum phrase which)
{
    return str_of(row_of(language)->phrases[which]);
}

/* ---- small talk ---- */

#define WORDS_MAX 12       /* words in a message of small talk */
#define PHRASE_WORDS_MAX 5 /* words in a phrase of the table */
#define TALK_BYTES 120

/*
 * True if the character at ${p} separates words: ASCII punctuation, U+0080–U+00BF, U+2000–U+303F,
 * and from U+F000 (wide punctuation, emoji).
 */
static bool separates_words(const char *p)
{
    const unsigned char a = (unsigned char)p[0];
    if (a < 0x80)
        return !((a >= '0' && a <= '9') || (a >= 'a' && a <= 'z') || (a >= 'A' && a <= 'Z'));
    return a == 0xC2 || a == 0xE2 || (a == 0xE3 && (unsigned char)p[1] == 0x80) || a >= 0xEF;
}

static size_t character_length(struct str s, size_t at)
{
    size_t n = 1;
    while (at + n < s.n && ((unsigned char)s.p[at + n] & 0xC0) == 0x80)
        n++;
    return n;
}

struct talk {
    struct buf text;                       /* words in lower case, separated by | */
    size_t from[WORDS_MAX], to[WORDS_MAX]; /* place of each word in text */
    size_t count;
};

/* Splits a message into words. False if there are none, or too many for small talk. */
static bool split_words(struct str message, struct talk *t)
{
    for (size_t at = 0; at < message.n;) {
        size_t end = at;
        while (end < message.n && !separates_words(message.p + end))
            end += character_length(message, end);
        if (end == at) {
            at += character_length(message, at);
            continue;
        }
        if (t->count == WORDS_MAX || t->text.n > TALK_BYTES)
            return false;
        buf_adds(&t->text, "|");
        t->from[t->count] = t->text.n;
        text_fold((struct str){message.p + at, end - at}, &t->text);
        t->to[t->count++] = t->text.n;
        at = end;
    }
    buf_adds(&t->text, "|");
    return t->count > 0 && buf_ok(&t->text);
}

static bool contains(const char *list, struct str phrase)
{
    return memmem(list, strlen(list), phrase.p, phrase.n) != NULL;
}

/* The words ${first} to ${last} as one phrase, separated by spaces, with | before and after. */
static struct str phrase_at(struct talk *t, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++)
        t->text.p[t->to[i]] = ' ';
    t->text.p[t->to[last]] = '|';
    return (struct str){t->text.p + t->from[first] - 1, t->to[last] - t->from[first] + 2};
}

/*
 * True if a row has ${phrase}. ${kind}: the reply, or PHRASES for words allowed beside small talk.
 */
static bool row_replies(const struct row *row, struct str phrase, enum phrase *kind)
{
    for (*kind = PHRASE_HELLO; *kind < KINDS; ++*kind)
        if (contains(row->talk[*kind], phrase))
            return true;
    *kind = PHRASES;
    return contains(row->neutral, phrase);
}

static bool match_phrase(struct str language, struct str phrase, struct str *reply)
{
    const struct row *first = row_of(language);
    enum phrase kind;
    for (size_t i = 0; i <= ROWS; i++) {
        const struct row *row = i == 0 ? first : &rows[i - 1];
        if (!row_replies(row, phrase, &kind))
            continue;
        if (kind < KINDS)
            *reply = str_of(row->phrases[kind]);
        return true;
    }
    return false;
}

/* Number of words in the longest phrase that begins with word ${at}; 0: none. */
static size_t next_phrase(struct talk *t, size_t at, struct str language, struct str *reply)
{
    size_t most = t->count - at < PHRASE_WORDS_MAX ? t->count - at : PHRASE_WORDS_MAX;
    for (size_t n = most; n > 0; n--)
        if (match_phrase(language, phrase_at(t, at, at + n - 1), reply))
            return n;
    return 0;
}

bool phrase_small_talk(struct str language, struct str message, struct str *reply)
{
    struct talk t = {.count = 0};
    bool good = split_words(message, &t);
    *reply = (struct str){NULL, 0};
    for (size_t at = 0, n; good && at < t.count; at += n) {
        n = next_phrase(&t, at, language, reply);
        good = n > 0;
    }
    buf_free(&t.text);
    return good && reply->n > 0;
}
