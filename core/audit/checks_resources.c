#include "core/audit/checks_internal.h"
#include "core/audit/css_internal.h"
#include "core/audit/text.h"

#include <stdlib.h>

#define REQUESTS_MAX 50
#define BLOCKING_STYLESHEETS_MAX 3

static bool is_lazy(const struct page_element *e)
{
    return text_eq(page_value(e, "loading"), "lazy");
}

static bool is_loaded(struct str url)
{
    return url.n > 0 && !text_starts(url, "data:") && !text_starts(url, "about:") &&
           !text_starts(url, "javascript:") && url.p[0] != '#';
}

static bool loads(const struct page_element *e, const char *attribute)
{
    return is_loaded(page_value(e, attribute));
}

static bool is_stylesheet(const struct page_element *e)
{
    struct str rel = page_value(e, "rel"), disabled;
    return e->tag == TAG_LINK && text_has_token(rel, "stylesheet") &&
           !text_has_token(rel, "alternate") && !page_attribute(e, "disabled", &disabled) &&
           loads(e, "href");
}

enum request {
    REQUEST_NONE,
    REQUEST_SCRIPT,
    REQUEST_STYLESHEET,
    REQUEST_IMAGE,
    REQUEST_FRAME,
    REQUEST_MEDIA,
    REQUESTS
};

static enum request request_of(const struct page_element *e)
{
    switch (e->tag) {
    case TAG_SCRIPT:
        return loads(e, "src") ? REQUEST_SCRIPT : REQUEST_NONE;
    case TAG_LINK:
        return is_stylesheet(e) ? REQUEST_STYLESHEET : REQUEST_NONE;
    case TAG_IMG:
        return !is_lazy(e) && (loads(e, "src") || loads(e, "srcset")) ? REQUEST_IMAGE
                                                                      : REQUEST_NONE;
    case TAG_INPUT:
        return text_eq(page_value(e, "type"), "image") && loads(e, "src") ? REQUEST_IMAGE
                                                                          : REQUEST_NONE;
    case TAG_IFRAME:
        return !is_lazy(e) && loads(e, "src") ? REQUEST_FRAME : REQUEST_NONE;
    case TAG_FRAME:
        return loads(e, "src") ? REQUEST_FRAME : REQUEST_NONE;
    case TAG_VIDEO:
    case TAG_AUDIO:
        return REQUEST_MEDIA;
    case TAG_EMBED:
        return loads(e, "src") ? REQUEST_MEDIA : REQUEST_NONE;
    case TAG_OBJECT:
        return loads(e, "data") ? REQUEST_MEDIA : REQUEST_NONE;
    default:
        return REQUEST_NONE;
    }
}

/*
 * Counts what the page's CSS certainly loads: images of style attributes, and imported stylesheets.
 * Images and fonts of a rule are loaded only where the rule applies, which is unknown here.
 */
static void count_css(const struct page_element *e, size_t counts[REQUESTS])
{
    bool is_sheet = e->tag == TAG_STYLE;
    struct str css = is_sheet ? e->text : page_value(e, "style");
    for (struct css_url one; css_url(&css, &one);)
        if (is_loaded(one.url) && one.is_import == is_sheet)
            counts[is_sheet ? REQUEST_STYLESHEET : REQUEST_IMAGE]++;
}

void check_http_requests(struct facts *f, struct verdict *v)
{
    static const char *const names[REQUESTS] = {"",       "Scripts", "Stylesheets",
                                                "Images", "Frames",  "Media"};
    size_t counts[REQUESTS] = {0}, total = 0;
    for (size_t i = 0; i < f->page.count; i++) {
        counts[request_of(f->page.elements[i])]++;
        count_css(f->page.elements[i], counts);
    }
    for (unsigned r = REQUEST_NONE + 1; r < REQUESTS; r++) {
        total += counts[r];
        if (counts[r] > 0)
            verdict_detail(v, "%s: %zu", names[r], counts[r]);
    }
    verdict_number(v, (double)total);
    if (total > REQUESTS_MAX)
        verdict_fail(v,
                     "The page loads %zu files. Reduce them to at most %d: combine scripts and "
                     "stylesheets, and load images lazily.",
                     total, REQUESTS_MAX);
    else
        verdict_pass(v);
}

/*
 * ---- image formats, by declared type or file extension; images of unknown format do not count
 * ----
 */

enum format { FORMAT_UNKNOWN, FORMAT_OLD, FORMAT_MODERN };

static const struct {
    const char *name;
    enum format format;
} formats[] = {
    {"avif", FORMAT_MODERN},    {"webp", FORMAT_MODERN}, {"svg", FORMAT_MODERN},
    {"svg+xml", FORMAT_MODERN}, {"jpg", FORMAT_OLD},     {"jpeg", FORMAT_OLD},
    {"jpe", FORMAT_OLD},        {"jfif", FORMAT_OLD},    {"pjpeg", FORMAT_OLD},
    {"png", FORMAT_OLD},        {"apng", FORMAT_OLD},    {"gif", FORMAT_OLD},
    {"bmp", FORMAT_OLD},        {"tif", FORMAT_OLD},     {"tiff", FORMAT_OLD},
};

static enum format format_named(struct str name)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++)
        if (text_eq(name, formats[i].name))
            return formats[i].format;
    return FORMAT_UNKNOWN;
}

static enum format format_of_url(struct str url)
{
    struct str path, rest;
    if (text_starts(url, "data:"))
        return FORMAT_UNKNOWN; /* not a separate file */
    text_split(url, '#', &path, &rest);
    text_split(path, '?', &path, &rest);
    size_t dot = path.n;
    while (dot > 0 && path.p[dot - 1] != '.' && path.p[dot - 1] != '/')
        dot--;
    return dot > 0 && path.p[dot - 1] == '.' ? format_named(text_from(path, dot)) : FORMAT_UNKNOWN;
}

/* Format of the first candidate of a srcset whose format is known. */
static enum format format_of_set(struct str set)
{
    for (struct str candidate, url; text_token(&set, ",", &candidate);) {
        enum format format =
            text_token(&candidate, " \t\n\f\r", &url) ? format_of_url(url) : FORMAT_UNKNOWN;
        if (format != FORMAT_UNKNOWN)
            return format;
    }
    return FORMAT_UNKNOWN;
}

static bool is_modern_source(const struct page_element *source)
{
    struct str type = page_value(source, "type");
    if (text_starts(type, "image/"))
        return format_named(text_from(type, 6)) == FORMAT_MODERN;
    return format_of_set(page_value(source, "srcset")) == FORMAT_MODERN;
}

void check_image_format(struct facts *f, struct verdict *v)
{
    size_t count = 0, old = 0;
    bool modern_source = false; /* the current picture has a source in a modern format */
    for (size_t i = 0; i < f->page.count; i++) {
        const struct page_element *e = f->page.elements[i];
        if (e->tag == TAG_PICTURE)
            modern_source = false;
        if (e->tag == TAG_SOURCE && (e->flags & ELEMENT_IN_PICTURE) != 0)
            modern_source = modern_source || is_modern_source(e);
        if (e->tag != TAG_IMG)
            continue;
        enum format format = format_of_set(page_value(e, "srcset"));
        if (format == FORMAT_UNKNOWN)
            format = format_of_url(page_value(e, "src"));
        if ((e->flags & ELEMENT_IN_PICTURE) != 0 && modern_source)
            format = FORMAT_MODERN;
        count += format != FORMAT_UNKNOWN;
        if (format != FORMAT_OLD)
            continue;
        old++;
        verdict_element(v, e);
    }
    if (count == 0)
        return;
    verdict_number(v, (double)old);
    if (old > 0)
        verdict_fail(
            v,
            "%zu of %zu %s in an old format. Offer %s as AVIF or WebP, at about a third of the "
            "size.",
            old, count,
            verdict_plural(count, "image is", verdict_plural(old, "images is", "images are")),
            verdict_plural(old, "it", "them"));
    else
        verdict_pass(v);
}

/* ---- what delays the first paint ---- */

static bool is_javascript(struct str type)
{
    return type.n == 0 || text_ends(type, "javascript") || text_ends(type, "ecmascript") ||
           text_ends(type, "jscript");
}

void check_defer_javascript(struct facts *f, struct verdict *v)
{
    size_t count = 0, at = 0;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_SCRIPT, &at)) != NULL;) {
        struct str unused;
        if ((e->flags & ELEMENT_IN_HEAD) == 0 || !loads(e, "src") ||
            !is_javascript(page_value(e, "type")) || page_attribute(e, "async", &unused) ||
            page_attribute(e, "defer", &unused))
            continue;
        count++;
        verdict_element(v, e);
    }
    verdict_number(v, (double)count);
    if (count > 0)
        verdict_fail(
            v, "%zu %s rendering. Add defer or async to each.", count,
            verdict_plural(count, "script in the head blocks", "scripts in the head block"));
    else
        verdict_pass(v);
}

void check_render_blocking_css(struct facts *f, struct verdict *v)
{
    size_t count = 0, at = 0;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_LINK, &at)) != NULL;) {
        struct str media = page_value(e, "media");
        if (!is_stylesheet(e) || text_eq(media, "print") || text_eq(media, "speech"))
            continue;
        count++;
        verdict_element(v, e);
    }
    verdict_number(v, (double)count);
    if (count > BLOCKING_STYLESHEETS_MAX)
        verdict_fail(v, "%zu stylesheets block rendering. Combine them into at most %d.", count,
                     BLOCKING_STYLESHEETS_MAX);
    else
        verdict_pass(v);
}

/* ---- sizes of images ---- */

static bool has_length(const struct page_element *e, const char *name)
{
    unsigned long n;
    return text_number(page_value(e, name), &n);
}

/*
 * The value of ${property} in the style attribute; empty if it is not set or has no value of its
 * own.
 */
static struct str style_of(const struct page_element *e, const char *property)
{
    static const char *const nothing[] = {"auto", "initial", "unset", "inherit"};
    struct str out = STR("");
    for (struct str rest = page_value(e, "style"), one; text_token(&rest, ";", &one);) {
        struct str name, value;
        if (text_split(one, ':', &name, &value) && text_eq(text_trim(name), property))
            out = text_trim(value);
    }
    for (size_t i = 0; i < sizeof(nothing) / sizeof(*nothing); i++)
        if (text_eq(out, nothing[i]))
            return STR("");
    return out;
}

static bool is_sized(const struct page_element *e)
{
    bool width = has_length(e, "width") || style_of(e, "width").n > 0;
    bool height = has_length(e, "height") || style_of(e, "height").n > 0;
    bool ratio = style_of(e, "aspect-ratio").n > 0;
    struct str position = style_of(e, "position");
    if (text_eq(position, "fixed") || text_eq(position, "absolute"))
        return true; /* loading it moves nothing */
    return (width && height) || (ratio && (width || height));
}

void check_unsized_images(struct facts *f, struct verdict *v)
{
    size_t count = 0, unsized = 0, at = 0;
    for (const struct page_element *e; (e = page_next(&f->page, TAG_IMG, &at)) != NULL;) {
        if ((e->flags & ELEMENT_HIDDEN) != 0 || text_starts(page_value(e, "src"), "data:image/svg"))
            continue;
        count++;
        if (is_sized(e))
            continue;
        unsized++;
        verdict_element(v, e);
    }
    verdict_number(v, (double)unsized);
    if (unsized > 0)
        verdict_fail(
            v,
            "%zu of %zu %s no width and height, so the page shifts while %s. Add both attributes.",
            unsized, count,
            verdict_plural(count, "image has",
                           verdict_plural(unsized, "images has", "images have")),
            verdict_plural(unsized, "it loads", "they load"));
    else
        verdict_pass(v);
}

void check_inline_css(struct facts *f, struct verdict *v)
{
    verdict_number(v, (double)f->page.style_attributes);
    for (size_t i = 0; i < f->page.style_attributes && i < VERDICT_DETAILS_MAX; i++)
        verdict_detail(v, "%.*s", STR_ARG(f->page.style_samples[i]));
    if (f->page.style_attributes > 1)
        verdict_fail(v, "%zu elements have a style attribute. Move the styles to a stylesheet.",
                     f->page.style_attributes);
    else
        verdict_pass(v);
}
