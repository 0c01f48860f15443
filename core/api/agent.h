/*
 * An agent's settings: what a site's owner may choose of how the widget looks and asks. Kept as
 * JSON members, judged here before they are. Any process.
 */
#ifndef ASSAY_API_AGENT_H
#define ASSAY_API_AGENT_H

#include "store/store.h"

/* What somebody wants to be different; NULL: as it is. */
struct agent_wishes {
    const char *theme, *lead_form_fields; /* JSON */
    const char *language_default;
    const char *const *starter_prompts; /* ends with NULL */
};

/* Why a setting is refused. */
struct agent_mistake {
    const char *setting; /* "theme"; NULL: all of them */
    char text[256];      /* "must be …" */
};

/*
 * agent_settings(present, wishes, out, mistake): append the settings ${present} (empty: the
 * defaults) with ${wishes} in their places, in a fixed order:
 *   theme              {"color"?: #rgb or #rrggbb,"position"?: left|right,"title"?,"greeting"?}
 *   starter_prompts    at most 10 texts of 1 to 200 characters
 *   lead_form_fields   at most 20 of {"name","label"?,"type"?: text|email|tel|textarea,"required"?}
 *   language_default   a language tag such as "en" or "pt-BR"
 * False, and ${mistake} tells, when one of them would be something else.
 */
bool agent_settings(struct str present, const struct agent_wishes *wishes, struct buf *out,
                    struct agent_mistake *mistake);

/* agent_setting(agent, name): the JSON of one of its settings; n 0: there is none. */
struct str agent_setting(const struct store_agent *agent, struct str name);

#endif
