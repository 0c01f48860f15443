#include "core/audit/generic_link_text_internal.h"
#include "core/audit/text.h"

#define TEXT(literal)                                                                              \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }

/* language, its texts with | before and after each */
static const struct {
    struct str language, texts;
} words[] = {
    {TEXT("en"), TEXT("|click here|click this|go|here|information|learn more|more|more info|more "
                      "information|right here|read more|see more|"
                      "start|this|")},
    {TEXT("ja"), TEXT("|ここをクリック|こちらをクリック|リンク|続きを読む|続く|全文表示|")},
    {TEXT("es"),
     TEXT("|click aquí|click aqui|clicka aquí|clicka aqui|pincha aquí|pincha "
          "aqui|aquí|aqui|más|mas|más información|"
          "más informacion|mas información|mas informacion|este|enlace|este enlace|empezar|")},
    {TEXT("pt"), TEXT("|clique aqui|ir|mais informação|mais informações|mais|veja mais|")},
    {TEXT("ko"), TEXT("|여기|여기를 클릭|클릭|링크|자세히|자세히 보기|계속|이동|전체 보기|")},
    {TEXT("sv"), TEXT("|här|klicka här|läs mer|mer|mer info|mer information|")},
    {TEXT("de"), TEXT("|klicke hier|hier klicken|hier|mehr|siehe|dies|das|weiterlesen|")},
    {TEXT("ta"),
     TEXT("|அடுத்த பக்கம்|மறுபக்கம்|முந்தைய பக்கம்|முன்பக்கம்|மேலும் அறிக|மேலும் தகவலுக்கு|மேலும் தரவுகளுக்கு|"
          "தயவுசெய்து இங்கே அழுத்தவும்|இங்கே கிளிக் செய்யவும்|")},
    {TEXT("fa"), TEXT("|اطلاعات بیشتر|اطلاعات|این|اینجا بزنید|اینجا کلیک کنید|اینجا|برو|بیشتر "
                      "بخوانید|بیشتر بدانید|بیشتر|شروع|")},
};

#define LONGEST_BYTES 96

bool is_generic_link_text(struct str language, struct str text)
{
    char whole[LONGEST_BYTES + 2];
    if (text.n == 0 || text.n > LONGEST_BYTES || memchr(text.p, '|', text.n) != NULL)
        return false;
    whole[0] = whole[text.n + 1] = '|';
    memcpy(whole + 1, text.p, text.n);
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (language.n > 0 &&
            !(language.n == words[i].language.n && text_starts(language, words[i].language.p)))
            continue;
        if (memmem(words[i].texts.p, words[i].texts.n, whole, text.n + 2) != NULL)
            return true;
    }
    return false;
}
