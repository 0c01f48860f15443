#include "config.h"

#include "core/audit/fetch_state_internal.h"
#include "core/audit/text.h"

struct str fetch_header(const struct fetch *f, const char *name)
{
    struct str rest = buf_view(&f->head), line, field, value;
    while (text_split(rest, '\n', &line, &rest) || line.n > 0)
        if (text_split(line, ':', &field, &value) && text_eq(field, name))
            return text_trim(value);
    return STR("");
}

static bool is_redirect(long status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

long fetch_status(const struct fetch *f)
{
    return f->status;
}

struct str fetch_body(const struct fetch *f)
{
    return buf_view(&f->body);
}

struct str fetch_location(const struct fetch *f)
{
    return is_redirect(f->status) ? fetch_header(f, "location") : STR("");
}

const char *fetch_reason(const struct fetch *f)
{
    return f->reason;
}

/* A number of seconds, or a date. libcurl reads anything else, and a number too large, as "now". */
static bool is_delay(struct str value)
{
    char date[64];
    size_t digits = 0;
    while (digits < value.n && text_is_digit(value.p[digits]))
        digits++;
    if (digits == value.n)
        return digits > 0 && digits <= 18;
    snprintf(date, sizeof(date), "%.*s", (int)(value.n < sizeof(date) ? value.n : 0), value.p);
    return strchr(date, ':') != NULL && curl_getdate(date, NULL) != -1;
}

int64_t fetch_retry_after(const struct fetch *f)
{
    curl_off_t seconds = 0;
    if ((f->status != 429 && f->status != 503) || !is_delay(fetch_header(f, "retry-after")) ||
        curl_easy_getinfo(f->easy, CURLINFO_RETRY_AFTER, &seconds) != CURLE_OK)
        return -1;
    return seconds > 0 ? seconds : 0; /* a date in the past is now */
}

static void describe_headers(const struct fetch *f, struct arena *arena, struct fact_response *out)
{
    struct str rest = buf_view(&f->head), line, name, value;
    while ((text_split(rest, '\n', &line, &rest) || line.n > 0) &&
           out->header_count < FACT_HEADERS_MAX) {
        /*
         * Lines that begin with white space continue the one before (RFC 9112, 5.2). Headers that
         * checks read are never folded.
         */
        if (line.n == 0 || text_is_space(line.p[0]) || !text_split(line, ':', &name, &value))
            continue;
        struct fact_header *h = &out->headers[out->header_count++];
        h->name = charset_copy_utf8(arena, text_trim(name));
        h->value = charset_copy_utf8(arena, text_trim(value));
    }
}

static void describe_certificate(const struct fetch *f, struct arena *arena,
                                 struct fact_certificate *out)
{
    struct curl_certinfo *info = NULL;
    out->verified = f->verified;
    if (curl_easy_getinfo(f->easy, CURLINFO_CERTINFO, &info) != CURLE_OK || info == NULL ||
        info->num_of_certs == 0)
        return;
    const struct {
        const char *label;
        struct str *to;
    } fields[] = {{"Issuer:", &out->issuer},
                  {"Start date:", &out->not_before},
                  {"Expire date:", &out->not_after}};
    for (const struct curl_slist *l = info->certinfo[0]; l != NULL; l = l->next)
        for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
            if (text_starts(str_of(l->data), fields[i].label))
                *fields[i].to =
                    charset_copy_utf8(arena, text_from(str_of(l->data), strlen(fields[i].label)));
}

static unsigned version_number(long version)
{
    switch (version) {
    case CURL_HTTP_VERSION_1_0:
        return 10;
    case CURL_HTTP_VERSION_2_0:
        return 20;
    case CURL_HTTP_VERSION_3:
        return 30;
    default:
        return 11;
    }
}

void fetch_describe(const struct fetch *f, struct arena *arena, struct fact_response *out)
{
    curl_off_t begun = 0, answered = 0, whole = 0, wire = 0;
    long version = 0;
    curl_easy_getinfo(f->easy, CURLINFO_PRETRANSFER_TIME_T, &begun);
    curl_easy_getinfo(f->easy, CURLINFO_STARTTRANSFER_TIME_T, &answered);
    curl_easy_getinfo(f->easy, CURLINFO_TOTAL_TIME_T, &whole);
    curl_easy_getinfo(f->easy, CURLINFO_SIZE_DOWNLOAD_T, &wire);
    curl_easy_getinfo(f->easy, CURLINFO_HTTP_VERSION, &version);
    out->status = f->status;
    out->http_version = version_number(version);
    out->load_ms = (unsigned)(whole / 1000);
    out->ttfb_ms = answered > begun ? (unsigned)((answered - begun) / 1000) : 0;
    out->wire_bytes = (uint64_t)wire;
    out->decoded_bytes = f->decoded_bytes;
    describe_headers(f, arena, out);
    describe_certificate(f, arena, &out->certificate);
}
