#include "core/audit/charset_internal.h"

/*
 * Labels of the encodings that browsers know (WHATWG Encoding, 4.2), without - _ : and (), and
 * iconv's names for them. iconv knows more encodings, such as UTF-7, that no browser reads.
 */
static const struct {
    const char *labels, *name;
} encodings[] = {
    {" utf8 unicode11utf8 unicode20utf8 xunicode20utf8 ", "utf-8"},
    {" cp1252 windows1252 xcp1252 ascii usascii ansix3.41968 iso88591 iso885911987 latin1 l1 "
     "csisolatin1 isoir100 ibm819 cp819 "
     "xuserdefined ",
     "windows-1252"},
    {" iso88592 iso885921987 latin2 l2 csisolatin2 isoir101 ", "iso-8859-2"},
    {" iso88593 iso885931988 latin3 l3 csisolatin3 isoir109 ", "iso-8859-3"},
    {" iso88594 iso885941988 latin4 l4 csisolatin4 isoir110 ", "iso-8859-4"},
    {" iso88595 iso885951988 cyrillic csisolatincyrillic isoir144 ", "iso-8859-5"},
    {" iso88596 iso88596e iso88596i iso885961987 arabic asmo708 ecma114 csiso88596e csiso88596i "
     "csisolatinarabic isoir127 ",
     "iso-8859-6"},
    {" iso88597 iso885971987 greek greek8 ecma118 elot928 suneugreek csisolatingreek isoir126 ",
     "iso-8859-7"},
    {" iso88598 iso88598e iso88598i iso885981988 hebrew logical visual csiso88598e csiso88598i "
     "csisolatinhebrew isoir138 ",
     "iso-8859-8"},
    {" iso885910 latin6 l6 csisolatin6 isoir157 ", "iso-8859-10"},
    {" iso885913 ", "iso-8859-13"},
    {" iso885914 ", "iso-8859-14"},
    {" iso885915 latin9 l9 csisolatin9 ", "iso-8859-15"},
    {" iso885916 ", "iso-8859-16"},
    {" cp866 ibm866 866 csibm866 ", "cp866"},
    {" koi8r koi8 koi csko18r cskoi8r ", "koi8-r"},
    {" koi8u koi8ru ", "koi8-u"},
    {" macintosh mac xmacroman csmacintosh ", "macintosh"},
    {" xmaccyrillic xmacukrainian ", "maccyrillic"},
    {" windows874 dos874 iso885911 tis620 ", "windows-874"},
    {" windows1250 cp1250 xcp1250 ", "windows-1250"},
    {" windows1251 cp1251 xcp1251 ", "windows-1251"},
    {" windows1253 cp1253 xcp1253 ", "windows-1253"},
    {" windows1254 cp1254 xcp1254 iso88599 iso885991989 latin5 l5 csisolatin5 isoir148 ",
     "windows-1254"},
    {" windows1255 cp1255 xcp1255 ", "windows-1255"},
    {" windows1256 cp1256 xcp1256 ", "windows-1256"},
    {" windows1257 cp1257 xcp1257 ", "windows-1257"},
    {" windows1258 cp1258 xcp1258 ", "windows-1258"},
    {" gb18030 gbk xgbk gb2312 gb231280 chinese csgb2312 csiso58gb231280 isoir58 ", "gb18030"},
    {" big5 big5hkscs cnbig5 csbig5 xxbig5 ", "big5-hkscs"},
    {" eucjp xeucjp cseucpkdfmtjapanese ", "euc-jp"},
    {" iso2022jp csiso2022jp ", "iso-2022-jp"},
    {" shiftjis sjis xsjis mskanji ms932 windows31j csshiftjis ", "cp932"},
    {" euckr cseuckr korean ksc5601 ksc56011987 ksc56011989 csksc56011987 isoir149 windows949 ",
     "cp949"},
    {" utf16 utf16le iso10646ucs2 ucs2 unicode unicodefeff csunicode ", "utf-16le"},
    {" utf16be unicodefffe ", "utf-16be"},
};

const char *charset_iconv_name(const char *label)
{
    char bare[CHARSET_NAME_BYTES + 2] = " ";
    size_t n = 1;
    for (; *label != '\0' && n < sizeof(bare) - 2; label++)
        if (strchr("-_:()", *label) == NULL)
            bare[n++] = *label;
    bare[n++] = ' ';
    bare[n] = '\0';
    for (size_t i = 0; n > 2 && i < sizeof(encodings) / sizeof(*encodings); i++)
        if (strstr(encodings[i].labels, bare) != NULL)
            return encodings[i].name;
    return NULL;
}
