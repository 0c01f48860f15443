#include "core/audit/checks_internal.h"
#include "core/audit/text.h"

/*
 * Content Security Policy. Any enforced policy passes. Where it does not stop injected scripts, the
 * details say why, by the rules that CSP Evaluator and Lighthouse call bypasses.
 */

static const char separators[] = " \t\n\f\r";

/*
 * Sources of the first directive ${name} of ${policy} (CSP 3, 2.2.1); p is NULL if there is none.
 */
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

/*
 * What a source list allows. Sources that a nonce, a hash or 'strict-dynamic' disables are left out
 * (CSP 3).
 */
struct sources {
    bool nonce, hash, strict_dynamic, unsafe_inline, unsafe_hashes;
    struct str open; /* a source that allows any host; empty: none */
    struct str host; /* a source that allows hosts by name or scheme */
};

static struct sources sources_of(struct str list)
{
    static const char *const open[] = {
        "*", "http:", "https:", "data:", "http://*", "https://*", NULL};
    struct sources out = {.open = STR(""), .host = STR("")};
    for (struct str one; text_token(&list, separators, &one);) {
        out.nonce = out.nonce || text_starts(one, "'nonce-");
        out.hash = out.hash || text_starts(one, "'sha256-") || text_starts(one, "'sha384-") ||
                   text_starts(one, "'sha512-");
        out.strict_dynamic = out.strict_dynamic || text_eq(one, "'strict-dynamic'");
        out.unsafe_inline = out.unsafe_inline || text_eq(one, "'unsafe-inline'");
        out.unsafe_hashes = out.unsafe_hashes || text_eq(one, "'unsafe-hashes'");
        if (is_any(one, open))
            out.open = one;
        if (one.p[0] != '\'')
            out.host = one;
    }
    if (out.nonce || out.hash || out.strict_dynamic)
        out.unsafe_inline = false;
    if (out.strict_dynamic)
        out.open = out.host = STR("");
    return out;
}

/*
 * The bypasses of CSP Evaluator, with their descriptions. One that begins with a space follows the
 * source it is about.
 */
enum weakness {
    NO_SCRIPTS,
    INLINE,
    HASHES,
    ANY_SCRIPT,
    HOSTS,
    NO_OBJECTS,
    ANY_OBJECT,
    NO_BASE,
    ANY_BASE,
    WEAKNESSES
};

static const char *const descriptions[WEAKNESSES] = {
    [NO_SCRIPTS] = "No script-src: scripts may come from anywhere",
    [INLINE] = "'unsafe-inline': inline scripts may run",
    [HASHES] = "'unsafe-hashes': inline event handlers may run",
    [ANY_SCRIPT] = " allows scripts from any host",
    [HOSTS] =
        " may serve a script that attackers can use: use nonces or hashes with 'strict-dynamic'",
    [NO_OBJECTS] = "No object-src: plugins may run scripts",
    [ANY_OBJECT] = " allows plugins from any host",
    [NO_BASE] = "No base-uri: an injected <base> may load scripts from another host",
    [ANY_BASE] = " lets an injected <base> load scripts from any host",
};

struct weaknesses {
    bool has[WEAKNESSES];
    struct str source[WEAKNESSES];
    bool needs_base; /* NO_BASE counts only if set */
};

static void add_weakness(struct weaknesses *w, enum weakness weakness, bool there,
                         struct str source)
{
    w->has[weakness] = w->has[weakness] || there;
    if (source.n > 0)
        w->source[weakness] = source;
}

static void add_script_weaknesses(struct weaknesses *w, struct str list)
{
    struct sources from = sources_of(list);
    add_weakness(w, INLINE, from.unsafe_inline, STR(""));
    add_weakness(w, HASHES, from.unsafe_hashes, STR(""));
    add_weakness(w, ANY_SCRIPT, from.open.n > 0, from.open);
}

static struct weaknesses weaknesses_of(struct str policy)
{
    struct str scripts = directive_or_default(policy, "script-src"),
               objects = directive_or_default(policy, "object-src");
    struct str base = directive(policy, "base-uri");
    struct sources from = sources_of(scripts);
    struct weaknesses w = {.needs_base = from.nonce || (from.hash && from.strict_dynamic)};
    add_weakness(&w, NO_SCRIPTS, scripts.p == NULL, STR(""));
    add_weakness(&w, HOSTS, from.host.n > 0, from.host);
    add_script_weaknesses(&w, scripts);
    add_script_weaknesses(&w, directive(policy, "script-src-elem"));
    add_script_weaknesses(&w, directive(policy, "script-src-attr"));
    add_weakness(&w, NO_OBJECTS, objects.p == NULL, STR(""));
    add_weakness(&w, ANY_OBJECT, sources_of(objects).open.n > 0, sources_of(objects).open);
    add_weakness(&w, NO_BASE, base.p == NULL, STR(""));
    add_weakness(&w, ANY_BASE, sources_of(base).open.n > 0, sources_of(base).open);
    return w;
}

/*
 * Several policies all apply, so one without the weakness is enough. A policy without a rule for
 * scripts protects from no script weakness.
 */
static void merge(struct weaknesses *all, const struct weaknesses *one)
{
    bool silent = all->has[NO_SCRIPTS];
    for (unsigned k = 0; k < WEAKNESSES; k++) {
        bool is_script = k == INLINE || k == HASHES || k == HOSTS;
        if (is_script && silent)
            all->has[k] = one->has[k];
        else if (!(is_script && one->has[NO_SCRIPTS]))
            all->has[k] = all->has[k] && one->has[k];
        if (all->source[k].n == 0)
            all->source[k] = one->source[k];
    }
    all->needs_base = all->needs_base || one->needs_base;
}

static void add_details(const struct weaknesses *w, struct verdict *v)
{
    for (unsigned k = 0; k < WEAKNESSES; k++)
        if (w->has[k] && (k != NO_BASE || w->needs_base) && (k != HOSTS || !w->has[ANY_SCRIPT]))
            verdict_detail(v, "%.*s%s", STR_ARG(w->source[k]), descriptions[k]);
}

static bool has_directive(struct str policy)
{
    struct str one, name;
    while (text_token(&policy, ";", &one))
        if (text_token(&one, separators, &name))
            return true;
    return false;
}

/* Iterates over the enforced policies: those of headers first, then those of meta tags. */
struct policy_iterator {
    struct facts *facts;
    size_t header, element;
    struct str rest; /* of a comma-separated list of policies */
};

static bool next_list(struct policy_iterator *all)
{
    struct str header = facts_header(all->facts, "content-security-policy", &all->header);
    if (header.p != NULL) {
        all->rest = header;
        return true;
    }
    for (const struct page_element *e;
         (e = page_next(&all->facts->page, TAG_META, &all->element)) != NULL;) {
        if ((e->flags & ELEMENT_IN_HEAD) == 0 ||
            !text_eq(page_value(e, "http-equiv"), "content-security-policy"))
            continue;
        all->rest = page_value(e, "content");
        return true;
    }
    return false;
}

static bool next_policy(struct policy_iterator *all, struct str *out)
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
    struct policy_iterator all = {.facts = f};
    struct weaknesses together = {0};
    struct str first = STR("");
    for (struct str policy; next_policy(&all, &policy);) {
        struct weaknesses one = weaknesses_of(policy);
        if (first.n == 0) {
            first = policy;
            together = one;
        } else {
            merge(&together, &one);
        }
    }
    if (first.n == 0) {
        verdict_fail(
            v,
            "The page has no Content-Security-Policy against injected scripts. Send the header.");
        return;
    }
    verdict_text(v, first);
    verdict_pass(v);
    add_details(&together, v);
    if (v->detail_count > 0)
        verdict_advise(v, "The Content-Security-Policy does not stop all injected scripts. Fix the "
                          "weaknesses in the details.");
}
