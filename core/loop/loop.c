#include "core/loop/loop.h"

#include <sys/random.h>

static void write_hex(char *to, uint64_t v)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *to++ = "0123456789abcdef"[v >> shift & 15];
}

/* Add 1 to a hexadecimal number of ${n} digits. */
static void increment(char *digits, size_t n)
{
    while (n-- > 0) {
        if (digits[n] != 'f') {
            digits[n] = digits[n] == '9' ? 'a' : (char)(digits[n] + 1);
            return;
        }
        digits[n] = '0';
    }
}

bool loop_start_ids(struct loop *l)
{
    uint64_t prefix;
    if (getrandom(&prefix, sizeof(prefix), 0) != sizeof(prefix))
        return false;
    write_hex(l->id, prefix);
    write_hex(l->id + sizeof(l->id) / 2, 0);
    return true;
}

struct str loop_next_id(struct loop *l)
{
    increment(l->id, sizeof(l->id));
    return (struct str){l->id, sizeof(l->id)};
}
