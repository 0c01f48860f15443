/*
 * Fuzz: a text that is logged. No credential of ours and no JWT is left in it, encoded or not, and
 * it fits.
 */
#include "core/text/redact.h"

#include <ctype.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int digit(char c)
{
    return isdigit((unsigned char)c)    ? c - '0'
           : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
                                        : -1;
}

static struct str decoded(struct str s, char *to)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '%' && s.n - i > 2 && digit(s.p[i + 1]) >= 0 && digit(s.p[i + 2]) >= 0) {
            to[n++] = (char)(digit(s.p[i + 1]) << 4 | digit(s.p[i + 2]));
            i += 2;
        } else {
            to[n++] = s.p[i];
        }
    return (struct str){to, n};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const starts[] = {"asy_key_", "asy_wp_", "eyJ"};
    char *room = malloc(size + REDACT_MORE), *plain = malloc(size + REDACT_MORE);
    struct str out = redact((struct str){(const char *)data, size}, room),
               text = decoded(out, plain);
    if (out.n > size + REDACT_MORE)
        abort();
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (memmem(text.p, text.n, starts[i], strlen(starts[i])) != NULL)
            abort();
    free(room);
    free(plain);
    return 0;
}
