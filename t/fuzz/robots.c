/* Fuzz: a robots.txt after its first line, which is the path that is asked for. */
#include "core/audit/robots_internal.h"
#include "core/audit/text.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct robots_verdict out;
    struct str target, text;
    text_split((struct str){(const char *)data, size}, '\n', &target, &text);
    robots_judge(text, "Googlebot", target, &out);
    if (!out.allowed && out.line == 0)
        abort(); /* a ban has a rule */
    return 0;
}
