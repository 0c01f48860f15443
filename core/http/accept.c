#include "core/http/accept.h"

#include "core/text/chars.h"

static struct str cut(struct str *rest, char mark)
{
    return blanks_trim(chars_cut(rest, mark));
}

/* "0.5" → 500; malformed → 1000 */
static int quality(struct str q)
{
    int value = 0, scale = 1000;
    if (q.n == 0 || q.n > 5 || (q.p[0] != '0' && q.p[0] != '1') || (q.n > 1 && q.p[1] != '.'))
        return 1000;
    value = (q.p[0] - '0') * 1000;
    for (size_t i = 2; i < q.n; i++) {
        if (q.p[i] < '0' || q.p[i] > '9')
            return 1000;
        scale /= 10;
        value += (q.p[i] - '0') * scale;
    }
    return value > 1000 ? 1000 : value;
}

static int quality_of(struct str parameters)
{
    while (parameters.n > 0) {
        struct str p = cut(&parameters, ';');
        if (p.n >= 2 && (p.p[0] | 0x20) == 'q' && p.p[1] == '=')
            return quality((struct str){p.p + 2, p.n - 2});
    }
    return 1000;
}

/* -1: the header does not name it */
static int range_quality(struct str header, struct str name)
{
    int found = -1;
    while (header.n > 0) {
        struct str item = cut(&header, ',');
        if (chars_equal(cut(&item, ';'), name))
            found = quality_of(item);
    }
    return found;
}

int accept_quality(struct str header, struct str want, struct str any)
{
    int found = range_quality(header, want);
    if (found < 0)
        found = range_quality(header, any);
    return found < 0 ? 0 : found;
}

static bool is_variant(struct str name, struct str code)
{
    return name.n > code.n && name.p[code.n] == '-' &&
           chars_equal((struct str){name.p, code.n}, code);
}

/* One pass: a header can name thousands of variants. */
int accept_language(struct str header, struct str code)
{
    int own = -1, any = 0, variant = 0;
    while (header.n > 0) {
        struct str item = cut(&header, ','), name = cut(&item, ';');
        int found = quality_of(item);
        if (chars_equal(name, code))
            own = found;
        else if (chars_equal(name, STR("*")))
            any = found;
        else if (is_variant(name, code) && found > variant)
            variant = found;
    }
    own = own < 0 ? any : own;
    return variant > own ? variant : own;
}

/* Of application/json, by the most specific range (RFC 9110 §12.5.1). */
static int json_quality(struct str header)
{
    static const struct str ranges[] = {STR("application/json"), STR("application/*"), STR("*/*")};
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        int found = range_quality(header, ranges[i]);
        if (found >= 0)
            return found;
    }
    return 0;
}

bool accept_json(struct str header)
{
    return blanks_trim(header).n == 0 || json_quality(header) > 0;
}

bool accept_prefers_html(struct str header)
{
    return range_quality(header, STR("text/html")) > json_quality(header);
}
