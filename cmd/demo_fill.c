/* The demo's templates: embedded files with {{name}} where a value goes. */
#include "cmd/demo.h"

#include <string.h>

struct str demo_text(const char *name)
{
    const struct demo_file *file = demo_files;
    while (file->name != NULL && strcmp(file->name, name) != 0)
        file++;
    return file->text;
}

static struct str value_of(const struct demo_slot *slot, struct str name)
{
    while (slot->name != NULL && !str_eq(str_of(slot->name), name))
        slot++;
    return slot->value;
}

void demo_fill(struct str text, const struct demo_slot *slots, struct buf *out)
{
    const char *at = text.p, *end = text.p + text.n;
    for (const char *open; (open = memmem(at, (size_t)(end - at), "{{", 2)) != NULL;) {
        const char *close = memmem(open, (size_t)(end - open), "}}", 2);
        if (close == NULL)
            break;
        buf_add(out, at, (size_t)(open - at));
        buf_str(out, value_of(slots, (struct str){open + 2, (size_t)(close - open) - 2}));
        at = close + 2;
    }
    buf_add(out, at, (size_t)(end - at));
}

void demo_html(const char *text, struct buf *out)
{
    for (; text != NULL && *text != '\0'; text++) {
        if (*text == '&')
            buf_adds(out, "&amp;");
        else if (*text == '<')
            buf_adds(out, "&lt;");
        else if (*text == '"')
            buf_adds(out, "&quot;");
        else
            buf_add(out, text, 1);
    }
}
