#include "core/conf/conf_internal.h"

#include <stdarg.h>
#include <string.h>

void conf_mistake(struct conf_build *build, struct conf_place place, const char *format, ...)
{
    build->mistakes_count++;
    if (build->mistakes_count > CONF_MISTAKES_MAX)
        return;
    if (place.line == 0)
        fprintf(build->mistakes, "%s: ", place.file);
    else
        fprintf(build->mistakes, "%s:%zu: ", place.file, place.line);
    va_list args;
    va_start(args, format);
    vfprintf(build->mistakes, format, args);
    va_end(args);
    fputc('\n', build->mistakes);
    if (build->mistakes_count == CONF_MISTAKES_MAX)
        fprintf(build->mistakes, "%s: %d errors are shown; there may be more\n", place.file,
                CONF_MISTAKES_MAX);
}

const char *conf_quote(const char *text, char out[CONF_QUOTE_SIZE])
{
    size_t n = strlen(text), shown = n < CONF_QUOTE_SIZE - 4 ? n : CONF_QUOTE_SIZE - 5;
    /* Cut between characters, not inside one. */
    while (shown < n && shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80)
        shown--;
    for (size_t i = 0; i < shown; i++)
        out[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
    snprintf(out + shown, CONF_QUOTE_SIZE - shown, "%s", shown < n ? "…" : "");
    return out;
}
