#include "core/api/zone_internal.h"

#include "core/text/time_in.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ZONES "/usr/share/zoneinfo/"

/* Refuses names that leave the directory of zones. */
static bool name_valid(struct str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            memchr("_+-/", c, 4) == NULL)
            return false;
    }
    return name.n > 0 && name.n <= ZONE_NAME_MAX && name.p[0] >= 'A' && name.p[0] <= 'Z';
}

bool zone_known(struct str name)
{
    char path[sizeof(ZONES) + ZONE_NAME_MAX];
    if (!name_valid(name))
        return false;
    if (str_eq(name, STR("UTC")))
        return true;
    snprintf(path, sizeof(path), ZONES "%.*s", (int)name.n, name.p);
    FILE *file = fopen(path, "re");
    char magic[4] = "";
    bool known = file != NULL && fread(magic, 1, sizeof(magic), file) == sizeof(magic) &&
                 memcmp(magic, "TZif", sizeof(magic)) == 0;
    if (file != NULL)
        fclose(file);
    return known;
}

/*
 * Sets the zone of the process. Its environment variable is created once, so that other threads can
 * read the environment.
 */
static void zone_set(struct str name)
{
    static char entry[4 + ZONE_NAME_MAX + 1] = "TZ=UTC0";
    static bool placed;
    if (!placed)
        putenv(entry);
    placed = true;
    snprintf(entry, sizeof(entry), "TZ=%.*s", (int)name.n, name.p);
    tzset();
}

/* ${ms}: the local time, as if it were UTC. */
static bool local_to_utc(int64_t ms, struct str name, int64_t *out)
{
    time_t seconds = ms / 1000;
    struct tm tm;
    gmtime_r(&seconds, &tm);
    tm.tm_isdst = -1;
    zone_set(name);
    time_t utc = mktime(&tm);
    zone_set(STR("UTC0"));
    *out = (int64_t)utc * 1000 + ms % 1000;
    return utc > 0;
}

bool zone_date(struct str text, struct str name, int64_t *out)
{
    enum { DATE = 10, WHOLE = 19, MOST = 40 };
    char utc[MOST + 12];
    *out = time_read(text);
    if (*out > 0)
        return true;
    if (text.n != DATE &&
        (text.n < WHOLE || text.n > MOST || (text.p[DATE] != 'T' && text.p[DATE] != ' ')))
        return false;
    snprintf(utc, sizeof(utc), "%.*s%s", (int)text.n, text.p, text.n == DATE ? "T00:00:00Z" : "Z");
    utc[DATE] = 'T';
    int64_t ms = time_read(str_of(utc));
    if (ms <= 0)
        return false;
    if (name.n == 0 || str_eq(name, STR("UTC"))) {
        *out = ms;
        return true;
    }
    return zone_known(name) && local_to_utc(ms, name, out);
}
