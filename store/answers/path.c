#include "store/answers/path.h"

#include "store/engine/format.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const endings[] = {".db", ".db-wal", ".db-shm"};

static void path_put(char out[ANSWERS_PATH_BYTES], const char *dir, const struct answers_name *name,
                     const char *ending)
{
    char agent[ULID_TEXT + 1], store[2 * STORE_ID_BYTES + 1];
    ulid_text(&name->agent, agent);
    for (size_t i = 0; i < STORE_ID_BYTES; i++)
        snprintf(store + 2 * i, 3, "%02x", name->store_id[i]);
    snprintf(out, ANSWERS_PATH_BYTES, "%s/answers/%.*s-%u-%s%s", dir, ULID_TEXT, agent,
             name->generation, store, ending);
}

void answers_path(char out[ANSWERS_PATH_BYTES], const char *dir, const struct answers_name *name)
{
    path_put(out, dir, name, endings[0]);
}

static bool hex_read(const char *text, uint8_t *out, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char pair[3] = {text[2 * i], text[2 * i] == '\0' ? '\0' : text[2 * i + 1], '\0'};
        if (!isxdigit((unsigned char)pair[0]) || !isxdigit((unsigned char)pair[1]))
            return false;
        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return true;
}

static bool is_ending(const char *text)
{
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (strcmp(text, endings[i]) == 0)
            return true;
    return false;
}

bool answers_name_read(const char *text, struct answers_name *out)
{
    char *end;
    if (strlen(text) <= ULID_TEXT || text[ULID_TEXT] != '-' ||
        !isdigit((unsigned char)text[ULID_TEXT + 1]) ||
        !ulid_parse((struct str){text, ULID_TEXT}, &out->agent))
        return false;
    unsigned long generation = strtoul(text + ULID_TEXT + 1, &end, 10);
    out->generation = (uint32_t)generation;
    return generation <= UINT32_MAX && *end == '-' &&
           hex_read(end + 1, out->store_id, STORE_ID_BYTES) &&
           is_ending(end + 1 + 2 * STORE_ID_BYTES);
}

void answers_unlink(const char *dir, const struct answers_name *name)
{
    char path[ANSWERS_PATH_BYTES];
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
        path_put(path, dir, name, endings[i]);
        unlink(path);
    }
}
