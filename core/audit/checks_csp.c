#include "core/audit/checks_internal.h"
#include "core/audit/text.h"

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

/* What a list of sources lets in, as CSP 3 reads it: what a nonce, a hash or 'strict-dynamic' makes void is left out. */
struct sources {
    bool nonce, hash, strict_dynamic, unsafe_inline, unsafe_hashes;
    struct str open; /* one that lets any host in; empty for none */
    struct str host; /* one that lets a host in by its name or scheme */
};

static struct sources sources_of(struct str list)
{
    static const char *const open[] = {"*", "http:", "https:", "data:", "http://*", "https://*", NULL};
    struct sources out = {.open = STR(""), .host = STR("")};
    for (struct str one; text_token(&list, separators, &one);) {
        out.nonce = out.nonce || text_starts(one, "'nonce-");
        out.hash = out.hash || text_starts(one, "'sha256-") || text_starts(one, "'sha384-") || text_starts(one, "'sha512-");
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

/* What CSP Evaluator calls a bypass, and the words for it after the source that is meant, if it is one. */
enum weakness { NO_SCRIPTS, INLINE, HASHES, ANY_SCRIPT, HOSTS, NO_OBJECTS, ANY_OBJECT, NO_BASE, ANY_BASE, WEAKNESSES };

static const char *const sentences[WEAKNESSES] = {
    [NO_SCRIPTS] = "No script-src: scripts may come from anywhere",
    [INLINE] = "'unsafe-inline': scripts in the page may run",
    [HASHES] = "'unsafe-hashes': event handlers in the page may run",
    [ANY_SCRIPT] = " lets scripts come from any host",
    [HOSTS] = " may lend attackers a script: use nonces or hashes with 'strict-dynamic'",
    [NO_OBJECTS] = "No object-src: plugins may run scripts",
    [ANY_OBJECT] = " lets plugins come from any host",
    [NO_BASE] = "No base-uri: an injected base may lead scripts elsewhere",
    [ANY_BASE] = " lets an injected base lead scripts to any host",
};

struct weaknesses {
    bool has[WEAKNESSES];
    struct str source[WEAKNESSES];
    bool needs_base; /* NO_BASE is one only then */
};

static void note(struct weaknesses *w, enum weakness weakness, bool there, struct str source)
{
    w->has[weakness] = w->has[weakness] || there;
    if (source.n > 0)
        w->source[weakness] = source;
}

static void note_scripts(struct weaknesses *w, struct str list)
{
    struct sources from = sources_of(list);
    note(w, INLINE, from.unsafe_inline, STR(""));
    note(w, HASHES, from.unsafe_hashes, STR(""));
    note(w, ANY_SCRIPT, from.open.n > 0, from.open);
}

static struct weaknesses weaknesses_of(struct str policy)
{
    struct str scripts = directive_or_default(policy, "script-src"), objects = directive_or_default(policy, "object-src");
    struct str base = directive(policy, "base-uri");
    struct sources from = sources_of(scripts);
    struct weaknesses w = {.needs_base = from.nonce || (from.hash && from.strict_dynamic)};
    note(&w, NO_SCRIPTS, scripts.p == NULL, STR(""));
    note(&w, HOSTS, from.host.n > 0, from.host);
    note_scripts(&w, scripts);
    note_scripts(&w, directive(policy, "script-src-elem"));
    note_scripts(&w, directive(policy, "script-src-attr"));
    note(&w, NO_OBJECTS, objects.p == NULL, STR(""));
    note(&w, ANY_OBJECT, sources_of(objects).open.n > 0, sources_of(objects).open);
    note(&w, NO_BASE, base.p == NULL, STR(""));
    note(&w, ANY_BASE, sources_of(base).open.n > 0, sources_of(base).open);
    return w;
}

/* Each of several policies applies, so that one without a weakness is enough; but one that says nothing of scripts helps no other. */
static void join(struct weaknesses *all, const struct weaknesses *one)
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

static void tell(const struct weaknesses *w, struct verdict *v)
{
    for (unsigned k = 0; k < WEAKNESSES; k++)
        if (w->has[k] && (k != NO_BASE || w->needs_base) && (k != HOSTS || !w->has[ANY_SCRIPT]))
            verdict_detail(v, "%.*s%s", STR_ARG(w->source[k]), sentences[k]);
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
    struct weaknesses together = {0};
    struct str first = STR("");
    for (struct str policy; next_policy(&all, &policy);) {
        struct weaknesses one = weaknesses_of(policy);
        if (first.n == 0) {
            first = policy;
            together = one;
        } else {
            join(&together, &one);
        }
    }
    if (first.n == 0) {
        verdict_fail(v, "No Content-Security-Policy guards the page against injected scripts. Send one.");
        return;
    }
    verdict_text(v, first);
    verdict_pass(v);
    tell(&together, v);
    if (v->detail_count > 0)
        verdict_advise(v, "The Content-Security-Policy does not stop all injected scripts. See the details.");
}
