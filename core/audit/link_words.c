#include "link_words.h"
#include "text.h"

/* language, its texts with | between them */
static const struct {
    const char *language, *texts;
} words[] = {
    {"en", "click here|click this|go|here|information|learn more|more|more info|more information|right here|read more|see more|start|this"},
    {"ja", "ここをクリック|こちらをクリック|リンク|続きを読む|続く|全文表示"},
    {"es", "click aquí|click aqui|clicka aquí|clicka aqui|pincha aquí|pincha aqui|aquí|aqui|más|mas|más información|más informacion|mas "
           "información|mas informacion|este|"
           "enlace|este enlace|empezar"},
    {"pt", "clique aqui|ir|mais informação|mais informações|mais|veja mais"},
    {"ko", "여기|여기를 클릭|클릭|링크|자세히|자세히 보기|계속|이동|전체 보기"},
    {"sv", "här|klicka här|läs mer|mer|mer info|mer information"},
    {"de", "klicke hier|hier klicken|hier|mehr|siehe|dies|das|weiterlesen"},
    {"ta", "அடுத்த பக்கம்|மறுபக்கம்|முந்தைய பக்கம்|முன்பக்கம்|மேலும் அறிக|மேலும் தகவலுக்கு|மேலும் தரவுகளுக்கு|தயவுசெய்து இங்கே அழுத்தவும்|இங்கே கிளிக் செய்யவும்"},
    {"fa", "اطلاعات بیشتر|اطلاعات|این|اینجا بزنید|اینجا کلیک کنید|اینجا|برو|بیشتر بخوانید|بیشتر بدانید|بیشتر|شروع"},
};

bool link_words_have(struct str language, struct str text)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
        if (language.n > 0 && !text_eq(language, words[i].language))
            continue;
        for (struct str rest = str_of(words[i].texts), one; text_token(&rest, "|", &one);)
            if (str_eq(one, text))
                return true;
    }
    return false;
}
