/*
 * The settings of an agent: how the widget looks and what it asks. They are checked here and stored
 * as JSON members. Any process.
 */
#ifndef ASSAY_API_AGENT_H
#define ASSAY_API_AGENT_H

#include "store/store.h"

/* The settings to change; NULL: keep the current one. */
struct agent_change {
    const char *theme, *lead_form_fields; /* JSON */
    const char *language_default;
    const char *const *starter_prompts; /* ends with NULL */
};

/* Why a setting is refused. */
struct agent_mistake {
    const char *setting; /* such as "theme"; NULL: the settings as a whole */
    char text[256];      /* "must be …" */
};

/*
 * agent_settings(present, change, out, mistake): append the settings ${present} (empty: the
 * defaults), changed by ${change}, in a fixed order:
 *   theme              {"color"?: #rgb or #rrggbb,"position"?: left|right,"title"?,"greeting"?}
 *   starter_prompts    at most 10 texts of 1 to 200 characters
 *   lead_form_fields   at most 20 of {"name","label"?,"type"?: text|email|tel|textarea,"required"?}
 *   language_default   a language tag such as "en" or "pt-BR"
 * False if a setting is invalid; ${mistake} says which and why.
 */
bool agent_settings(struct str present, const struct agent_change *change, struct buf *out,
                    struct agent_mistake *mistake);

/* agent_setting(agent, name): the JSON of one setting; n 0 if it is missing. */
struct str agent_setting(const struct store_agent *agent, struct str name);

#endif
