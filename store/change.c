#include "store/change.h"

#include "store/store.h"

/* Numbers are sent as the bytes before the first string, strings as lengths and bytes. */
#define NUMBERS_SIZE offsetof(struct store_change, facts.protocol)
#define STRINGS ((sizeof(struct store_change) - NUMBERS_SIZE) / sizeof(struct str))

static struct str *strings(struct store_change *c)
{
    return (struct str *)(void *)((char *)c + NUMBERS_SIZE);
}

static const struct str *strings_of(const struct store_change *c)
{
    return (const struct str *)(const void *)((const char *)c + NUMBERS_SIZE);
}

size_t change_size(const struct store_change *change)
{
    const struct str *s = strings_of(change);
    size_t n = NUMBERS_SIZE + STRINGS * sizeof(uint32_t);
    for (size_t i = 0; i < STRINGS; i++)
        n += s[i].n;
    return n;
}

void change_encode(const struct store_change *change, struct buf *out)
{
    const struct str *s = strings_of(change);
    uint32_t lengths[STRINGS];
    for (size_t i = 0; i < STRINGS; i++)
        lengths[i] = (uint32_t)s[i].n;
    buf_add(out, change, NUMBERS_SIZE);
    buf_add(out, lengths, sizeof(lengths));
    for (size_t i = 0; i < STRINGS; i++)
        buf_str(out, s[i]);
}

bool change_decode(struct str wire, struct store_change *out)
{
    uint32_t lengths[STRINGS];
    if (wire.n < NUMBERS_SIZE + sizeof(lengths))
        return false;
    memcpy(out, wire.p, NUMBERS_SIZE);
    memcpy(lengths, wire.p + NUMBERS_SIZE, sizeof(lengths));
    size_t at = NUMBERS_SIZE + sizeof(lengths);
    for (size_t i = 0; i < STRINGS; i++) {
        if (lengths[i] > wire.n - at)
            return false;
        strings(out)[i] = (struct str){wire.p + at, lengths[i]};
        at += lengths[i];
    }
    return at == wire.n && out->kind >= 1 && out->kind < CHANGE_KINDS;
}
