#include "config.h"

#include "core/audit/page_internal.h"
#include "core/audit/text.h"

/*
 * Public identifiers that select quirks mode (WHATWG HTML, 13.2.6.4.1 "the initial insertion
 * mode").
 */
static const char *const quirks_public[] = {
    "-//W3O//DTD W3 HTML Strict 3.0//EN//",
    "-/W3C/DTD HTML 4.0 Transitional/EN",
    "HTML",
};

static const char *const quirks_public_prefix[] = {
    "+//Silmaril//dtd html Pro v0r11 19970101//",
    "-//AS//DTD HTML 3.0 asWedit + extensions//",
    "-//AdvaSoft Ltd//DTD HTML 3.0 asWedit + extensions//",
    "-//IETF//DTD HTML 2.0 Level 1//",
    "-//IETF//DTD HTML 2.0 Level 2//",
    "-//IETF//DTD HTML 2.0 Strict Level 1//",
    "-//IETF//DTD HTML 2.0 Strict Level 2//",
    "-//IETF//DTD HTML 2.0 Strict//",
    "-//IETF//DTD HTML 2.0//",
    "-//IETF//DTD HTML 2.1E//",
    "-//IETF//DTD HTML 3.0//",
    "-//IETF//DTD HTML 3.2 Final//",
    "-//IETF//DTD HTML 3.2//",
    "-//IETF//DTD HTML 3//",
    "-//IETF//DTD HTML Level 0//",
    "-//IETF//DTD HTML Level 1//",
    "-//IETF//DTD HTML Level 2//",
    "-//IETF//DTD HTML Level 3//",
    "-//IETF//DTD HTML Strict Level 0//",
    "-//IETF//DTD HTML Strict Level 1//",
    "-//IETF//DTD HTML Strict Level 2//",
    "-//IETF//DTD HTML Strict Level 3//",
    "-//IETF//DTD HTML Strict//",
    "-//IETF//DTD HTML//",
    "-//Metrius//DTD Metrius Presentational//",
    "-//Microsoft//DTD Internet Explorer 2.0 HTML Strict//",
    "-//Microsoft//DTD Internet Explorer 2.0 HTML//",
    "-//Microsoft//DTD Internet Explorer 2.0 Tables//",
    "-//Microsoft//DTD Internet Explorer 3.0 HTML Strict//",
    "-//Microsoft//DTD Internet Explorer 3.0 HTML//",
    "-//Microsoft//DTD Internet Explorer 3.0 Tables//",
    "-//Netscape Comm. Corp.//DTD HTML//",
    "-//Netscape Comm. Corp.//DTD Strict HTML//",
    "-//O'Reilly and Associates//DTD HTML 2.0//",
    "-//O'Reilly and Associates//DTD HTML Extended 1.0//",
    "-//O'Reilly and Associates//DTD HTML Extended Relaxed 1.0//",
    "-//SQ//DTD HTML 2.0 HoTMetaL + extensions//",
    "-//SoftQuad Software//DTD HoTMetaL PRO 6.0::19990601::extensions to HTML 4.0//",
    "-//SoftQuad//DTD HoTMetaL PRO 4.0::19971010::extensions to HTML 4.0//",
    "-//Spyglass//DTD HTML 2.0 Extended//",
    "-//Sun Microsystems Corp.//DTD HotJava HTML//",
    "-//Sun Microsystems Corp.//DTD HotJava Strict HTML//",
    "-//W3C//DTD HTML 3 1995-03-24//",
    "-//W3C//DTD HTML 3.2 Draft//",
    "-//W3C//DTD HTML 3.2 Final//",
    "-//W3C//DTD HTML 3.2//",
    "-//W3C//DTD HTML 3.2S Draft//",
    "-//W3C//DTD HTML 4.0 Frameset//",
    "-//W3C//DTD HTML 4.0 Transitional//",
    "-//W3C//DTD HTML Experimental 19960712//",
    "-//W3C//DTD HTML Experimental 970421//",
    "-//W3C//DTD W3 HTML//",
    "-//W3O//DTD W3 HTML 3.0//",
    "-//WebTechs//DTD Mozilla HTML 2.0//",
    "-//WebTechs//DTD Mozilla HTML//",
};

/* Quirks mode without a system identifier, limited quirks mode with one. */
static const char *const loose_prefix[] = {
    "-//W3C//DTD HTML 4.01 Frameset//",
    "-//W3C//DTD HTML 4.01 Transitional//",
};

static const char *const limited_prefix[] = {
    "-//W3C//DTD XHTML 1.0 Frameset//",
    "-//W3C//DTD XHTML 1.0 Transitional//",
};

static const char quirks_system[] = "http://www.ibm.com/data/dtd/v11/ibmxhtml1-transitional.dtd";

static bool starts_with_any(struct str s, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (text_starts(s, list[i]))
            return true;
    return false;
}

#define STARTS_WITH_ANY(s, list) starts_with_any(s, list, sizeof(list) / sizeof(*(list)))

/*
 * Read the quoted string at the start of ${rest}. False if there is none or it does not end, which
 * selects quirks mode.
 */
static bool quoted(struct str *rest, struct str *out)
{
    struct str s = text_trim(*rest);
    if (s.n == 0 || (s.p[0] != '"' && s.p[0] != '\''))
        return false;
    return text_split(text_from(s, 1), s.p[0], out, rest);
}

enum page_mode page_mode_of(struct str doctype)
{
    struct str rest = text_trim(text_from(doctype, 7)), name, public_id = {0}, system_id = {0};
    bool has_public = false, has_system = false;
    if (!text_starts(doctype, "doctype") || !text_token(&rest, " \t\n\f\r", &name) ||
        !text_eq(name, "html"))
        return PAGE_QUIRKS;
    rest = text_trim(rest);
    if (text_starts(rest, "public")) {
        rest = text_from(rest, 6);
        has_public = quoted(&rest, &public_id);
        if (!has_public)
            return PAGE_QUIRKS;
        rest = text_trim(rest);
        has_system = rest.n > 0 && quoted(&rest, &system_id);
        if (!has_system && rest.n > 0)
            return PAGE_QUIRKS;
    } else if (text_starts(rest, "system")) {
        rest = text_from(rest, 6);
        has_system = quoted(&rest, &system_id);
        if (!has_system)
            return PAGE_QUIRKS;
    } else if (rest.n > 0) {
        return PAGE_QUIRKS;
    }
    if (has_system && text_eq(system_id, quirks_system))
        return PAGE_QUIRKS;
    if (!has_public)
        return PAGE_NO_QUIRKS;
    for (size_t i = 0; i < sizeof(quirks_public) / sizeof(*quirks_public); i++)
        if (text_eq(public_id, quirks_public[i]))
            return PAGE_QUIRKS;
    if (STARTS_WITH_ANY(public_id, quirks_public_prefix))
        return PAGE_QUIRKS;
    if (STARTS_WITH_ANY(public_id, loose_prefix))
        return has_system ? PAGE_LIMITED_QUIRKS : PAGE_QUIRKS;
    return STARTS_WITH_ANY(public_id, limited_prefix) ? PAGE_LIMITED_QUIRKS : PAGE_NO_QUIRKS;
}
