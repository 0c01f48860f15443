#include "core/audit/checks_internal.h"
#include "core/audit/text.h"

/*
 * nginx/1.22, PHP 8, 2.4.57: digits after a slash, a space, or a dot between digits. "h2o" has
 * none.
 */
static bool has_version(struct str value)
{
    for (size_t i = 0; i + 1 < value.n; i++) {
        char c = value.p[i];
        if ((c == '/' || c == ' ') && text_is_digit(value.p[i + 1]))
            return true;
        if (c == '.' && i > 0 && text_is_digit(value.p[i - 1]) && text_is_digit(value.p[i + 1]))
            return true;
    }
    return false;
}

void check_server_signature(struct facts *f, struct verdict *v)
{
    static const char *const names[] = {"Server", "X-Powered-By"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        size_t from = 0;
        for (struct str value; (value = facts_header(f, names[i], &from)).p != NULL;) {
            if (!has_version(value))
                continue;
            count++;
            verdict_detail(v, "%s: %.*s", names[i], STR_ARG(value));
        }
    }
    if (count > 0)
        verdict_fail(v, "The Server or X-Powered-By header shows a version, which helps attackers. "
                        "Hide it in the server's configuration.");
    else
        verdict_pass(v);
}

void check_http2(struct facts *f, struct verdict *v)
{
    verdict_text(v, facts_protocol(f));
    if (f->response.http_version < 20)
        verdict_fail(v, "The server sent the page with an old version of HTTP. Enable HTTP/2 in "
                        "the web server.");
    else
        verdict_pass(v);
}

/* The ${directive} of an enforced policy. Commas separate policies, semicolons directives. */
static struct str find_policy(struct facts *f, const char *directive)
{
    size_t from = 0;
    for (struct str header; (header = facts_header(f, "content-security-policy", &from)).p != NULL;)
        for (struct str rest = header, one; text_token(&rest, ";,", &one);) {
            struct str name;
            one = text_trim(one);
            struct str words = one;
            if (text_token(&words, " \t", &name) && text_eq(name, directive))
                return one;
        }
    return STR("");
}

/*
 * ${value} lets nobody, or only the same site, frame the page; in a list each member must (WHATWG
 * HTML, 7.6).
 */
static bool denies_framing(struct str value)
{
    struct str one;
    bool denies = false;
    while (text_token(&value, ", \t", &one)) {
        denies = text_eq(one, "deny") || text_eq(one, "sameorigin");
        if (!denies)
            return false;
    }
    return denies;
}

void check_clickjacking(struct facts *f, struct verdict *v)
{
    struct str policy = find_policy(f, "frame-ancestors"), options;
    if (policy.n > 0) {
        verdict_text(v, policy);
        verdict_pass(v);
        return;
    }
    for (size_t from = 0; (options = facts_header(f, "x-frame-options", &from)).p != NULL;) {
        verdict_text(v, text_trim(options));
        if (denies_framing(options)) {
            verdict_pass(v);
            return;
        }
    }
    verdict_fail(v, "Other sites can show the page in a frame and trick its visitors. Send "
                    "Content-Security-Policy: frame-ancestors 'self'.");
}

void check_nosniff(struct facts *f, struct verdict *v)
{
    struct str header = text_trim(facts_header_first(f, "x-content-type-options")), value, rest;
    text_split(header, ',', &value, &rest);
    if (header.n > 0)
        verdict_text(v, header);
    if (text_eq(text_trim(value), "nosniff"))
        verdict_pass(v);
    else
        verdict_fail(v, "Browsers may guess the type of the page's files. Send "
                        "X-Content-Type-Options: nosniff.");
}
