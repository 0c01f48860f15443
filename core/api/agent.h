/*
 * An agent's settings: what a site's owner may choose of how the widget looks and asks. Kept as rendered JSON members, judged here before
 * they are. Any process.
 */
#ifndef ASSAY_API_AGENT_H
#define ASSAY_API_AGENT_H

#include "../../store/store.h"

struct json_object;

/*
 * agent_settings(settings, out, why): append the members of ${settings} in their fixed order, what is missing at its default:
 *   theme              an object of texts, numbers and booleans, at most 32
 *   starter_prompts    at most 10 texts of 1 to 200 characters
 *   lead_form_fields   at most 20 of {"name","label"?,"type"?: text|email|tel|textarea,"required"?}
 *   language_default   a language tag such as "en" or "pt-BR"
 * False, and ${why} is one sentence, when one of them is something else.
 */
bool agent_settings(struct json_object *settings, struct buf *out, const char **why);

#endif
