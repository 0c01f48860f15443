#include "core/text/time_in.h"

#include <time.h>

/* Whether ${text} starts like ${shape}: d is a digit, other characters match in either case. */
static bool shaped(struct str text, const char *shape)
{
    for (size_t i = 0; shape[i] != '\0'; i++)
        if (i >= text.n || (shape[i] == 'd' ? text.p[i] < '0' || text.p[i] > '9'
                                            : (text.p[i] | 0x20) != (shape[i] | 0x20)))
            return false;
    return true;
}

static int digits_at(const char *p, size_t n)
{
    int number = 0;
    while (n-- > 0)
        number = number * 10 + (*p++ - '0');
    return number;
}

static bool calendar_has(const struct tm *tm)
{
    struct tm day = {.tm_year = tm->tm_year, .tm_mon = tm->tm_mon, .tm_mday = tm->tm_mday};
    return tm->tm_year >= 70 && tm->tm_mon >= 0 && tm->tm_mon < 12 && timegm(&day) >= 0 &&
           day.tm_mon == tm->tm_mon && tm->tm_hour < 24 && tm->tm_min < 60 &&
           tm->tm_sec <= 60; /* a leap second */
}

/* Read ".123…" from ${rest}; digits after milliseconds are ignored. */
static bool fraction_take(struct str *rest, int *millis)
{
    int scale = 100;
    *millis = 0;
    if (!shaped(*rest, "."))
        return true;
    if (!shaped(*rest, ".d"))
        return false;
    for (*rest = (struct str){rest->p + 1, rest->n - 1}; shaped(*rest, "d");
         *rest = (struct str){rest->p + 1, rest->n - 1}, scale /= 10)
        *millis += (*rest->p - '0') * scale;
    return true;
}

/* "Z" or "+01:00", and nothing else. */
static bool zone_read(struct str zone, int *minutes)
{
    *minutes = 0;
    if (zone.n == 1 && shaped(zone, "Z"))
        return true;
    if (zone.n != 6 || (!shaped(zone, "+dd:dd") && !shaped(zone, "-dd:dd")))
        return false;
    int hour = digits_at(zone.p + 1, 2), minute = digits_at(zone.p + 4, 2);
    *minutes = (hour * 60 + minute) * (zone.p[0] == '-' ? -1 : 1);
    return hour < 24 && minute < 60;
}

int64_t time_read(struct str text)
{
    static const char shape[] = "dddd-dd-ddTdd:dd:dd";
    int millis, zone;
    if (!shaped(text, shape))
        return 0;
    struct tm tm = {.tm_year = digits_at(text.p, 4) - 1900,
                    .tm_mon = digits_at(text.p + 5, 2) - 1,
                    .tm_mday = digits_at(text.p + 8, 2),
                    .tm_hour = digits_at(text.p + 11, 2),
                    .tm_min = digits_at(text.p + 14, 2),
                    .tm_sec = digits_at(text.p + 17, 2)};
    struct str rest = {text.p + sizeof(shape) - 1, text.n - (sizeof(shape) - 1)};
    if (!calendar_has(&tm) || !fraction_take(&rest, &millis) || !zone_read(rest, &zone))
        return 0;
    return ((int64_t)timegm(&tm) - (int64_t)zone * 60) * 1000 + millis;
}
