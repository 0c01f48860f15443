/* Unknown keys, and what the user may have meant. */
#include "core/conf/conf_internal.h"
#include "core/text/nearest.h"

#include <string.h>

/*
 * The distance of ${path} from ${key}, cut to the depth of ${path} because a group is a candidate,
 * too. The cut key goes to ${candidate}.
 */
static unsigned candidate_distance(const char *path, const char *key, char candidate[CONF_KEY_SIZE])
{
    snprintf(candidate, CONF_KEY_SIZE, "%s", key);
    const char *leaf = strrchr(key, '.');
    if (leaf != NULL && strchr(path, '.') == NULL && strcmp(leaf + 1, path) == 0)
        return 1; /* the right name without its group */
    size_t dots = 0;
    for (const char *p = path; *p != '\0'; p++)
        dots += *p == '.';
    for (char *p = candidate; *p != '\0'; p++) {
        if (*p == '.' && dots-- == 0) {
            *p = '\0';
            break;
        }
    }
    return nearest_distance(str_of(path), str_of(candidate));
}

void conf_unknown(struct conf_build *build, struct conf_place place, const char *path)
{
    char quoted[CONF_QUOTE_SIZE], candidate[CONF_KEY_SIZE], best[CONF_KEY_SIZE];
    unsigned least = UINT32_MAX;
    for (size_t i = 0; i < conf_options_count; i++) {
        unsigned distance = candidate_distance(path, conf_options[i].key, candidate);
        if (distance < least) {
            least = distance;
            memcpy(best, candidate, sizeof(best));
        }
    }
    const char *leaf = strrchr(path, '.');
    size_t length = strlen(leaf == NULL ? path : leaf + 1);
    if (nearest_is_close(least, length))
        conf_mistake(build, place, "unknown key %s; did you mean %s?", conf_quote(path, quoted),
                     best);
    else
        conf_mistake(build, place, "unknown key %s", conf_quote(path, quoted));
}
