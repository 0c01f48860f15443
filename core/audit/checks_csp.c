#include "checks.h"
#include "text.h"

/*
 * Content Security Policy. An enforced one passes; where it would not stop injected scripts, the details say why, by the rules of CSP
 * Evaluator that Lighthouse calls bypasses.
 */

static const char separators[] = " \t\n\f\r";

/* The sources of the first ${name} of ${policy} (CSP 3, 2.2.1); p is NULL without one. */
static struct str directive(struct str policy, const char *name)
{
    for (struct str one, first; text_token(&policy, ";", &one);)
        if (text_token(&one, separators, &first) && text_eq(first, name))
            return one;
    return (struct str){0};
}

static struct str directive_or_default(struct str policy, const char *name)
{
    struct str own = directive(policy, name);
    return own.p != NULL ? own : directive(policy, "default-src");
}

static bool is_any(struct str source, const char *const *list)
{
    for (; *list != NULL; list++)
        if (text_eq(source, *list))
            return true;
    return false;
}

struct sources {
    bool nonce, hash, strict_dynamic, unsafe_inline;
    struct str open; /* one that lets any host in; empty for none */
};

static struct sources sources_of(struct str list)
{
    static const char *const open[] = {"*", "http:", "https:", "data:", "http://*", "https://*", NULL};
    struct sources out = {.open = STR("")};
    for (struct str one; text_token(&list, separators, &one);) {
        out.nonce = out.nonce || text_starts(one, "'nonce-");
        out.hash = out.hash || text_starts(one, "'sha256-") || text_starts(one, "'sha384-") || text_starts(one, "'sha512-");
        out.strict_dynamic = out.strict_dynamic || text_eq(one, "'strict-dynamic'");
        out.unsafe_inline = out.unsafe_inline || text_eq(one, "'unsafe-inline'");
        if (is_any(one, open))
            out.open = one;
    }
    return out;
}

/* Tell what is weak about ${policy}. */
static void tell_weaknesses(struct str policy, struct verdict *v)
{
    struct str scripts = directive_or_default(policy, "script-src"), objects = directive_or_default(policy, "object-src");
    struct sources from = sources_of(scripts);
    if (scripts.p == NULL)
        verdict_detail(v, "No script-src: scripts may come from anywhere");
    else if (from.unsafe_inline && !from.nonce && !from.hash)
        verdict_detail(v, "'unsafe-inline': scripts in the page may run");
    if (from.open.n > 0 && !from.strict_dynamic)
        verdict_detail(v, "%.*s lets scripts come from any host", STR_ARG(from.open));
    if (objects.p == NULL)
        verdict_detail(v, "No object-src: plugins may run scripts");
    if ((from.nonce || (from.hash && from.strict_dynamic)) && directive(policy, "base-uri").p == NULL)
        verdict_detail(v, "No base-uri: an injected base may lead scripts elsewhere");
}

static bool has_directive(struct str policy)
{
    struct str one, name;
    while (text_token(&policy, ";", &one))
        if (text_token(&one, separators, &name))
            return true;
    return false;
}

/* Where a reading of the enforced policies stands: those of the headers first, then those of the page. */
struct policies {
    struct facts *facts;
    size_t header, element;
    struct str rest; /* of a list of policies, which commas part */
};

static bool next_list(struct policies *all)
{
    struct str header = facts_header(all->facts, "content-security-policy", &all->header);
    if (header.p != NULL) {
        all->rest = header;
        return true;
    }
    for (const struct page_element *e; (e = page_next(&all->facts->page, TAG_META, &all->element)) != NULL;) {
        if ((e->flags & ELEMENT_IN_HEAD) == 0 || !text_eq(page_value(e, "http-equiv"), "content-security-policy"))
            continue;
        all->rest = page_value(e, "content");
        return true;
    }
    return false;
}

static bool next_policy(struct policies *all, struct str *out)
{
    do {
        while (text_token(&all->rest, ",", out))
            if (has_directive(*out)) {
                *out = text_trim(*out);
                return true;
            }
    } while (next_list(all));
    return false;
}

void check_csp(struct facts *f, struct verdict *v)
{
    struct policies all = {.facts = f};
    struct str first = STR("");
    bool strong = false;
    for (struct str policy; next_policy(&all, &policy);) {
        struct verdict told = {.arena = v->arena};
        tell_weaknesses(policy, &told);
        strong = strong || told.detail_count == 0;
        if (first.n == 0)
            first = policy;
    }
    if (first.n == 0) {
        verdict_fail(v, "No Content-Security-Policy guards the page against injected scripts. Send one.");
        return;
    }
    verdict_text(v, first);
    verdict_pass(v);
    if (strong)
        return;
    tell_weaknesses(first, v);
    verdict_advise(v, "The Content-Security-Policy does not stop all injected scripts. See the details.");
}
