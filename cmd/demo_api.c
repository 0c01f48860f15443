/* Calls to the API over HTTP: a user's with a key and a form, a shop's with a signed JSON body. */
#include "cmd/demo.h"

#include "core/auth/request_signature.h"

#include <curl/curl.h>
#include <stdio.h>
#include <time.h>

#define TIMEOUT_S 45L
#define BODY_MAX_BYTES (4u << 20)

static size_t take_body(char *p, size_t size, size_t n, void *arg)
{
    struct buf *body = arg;
    if (body->n + size * n > BODY_MAX_BYTES)
        return 0;
    buf_add(body, p, size * n);
    return buf_ok(body) ? size * n : 0;
}

static int stop_on_signal(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)arg, (void)a, (void)b, (void)c, (void)d;
    return demo_pending() ? 1 : 0;
}

static struct curl_slist *header_add(struct curl_slist *headers, const char *name,
                                     const char *value)
{
    char line[192];
    snprintf(line, sizeof(line), "%s: %s", name, value);
    return curl_slist_append(headers, line);
}

static struct curl_slist *header_bearer(const char *credential)
{
    char value[128];
    snprintf(value, sizeof(value), "Bearer %s", credential);
    return header_add(header_add(NULL, "Authorization", value), "Accept", "application/json");
}

/* ${sent}: the body; p NULL for none. Frees ${headers}. */
static void perform(const char *method, const char *url, struct curl_slist *headers,
                    struct str sent, struct demo_answer *answer)
{
    struct buf body = {.p = NULL};
    *answer = (struct demo_answer){.status = 0};
    CURL *curl = curl_easy_init();
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, TIMEOUT_S);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, stop_on_signal);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    if (sent.p != NULL) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)sent.n);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, sent.p);
    }
    CURLcode code = curl_easy_perform(curl);
    if (code == CURLE_OK) {
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer->status);
        answer->body = json_read(buf_view(&body));
    } else {
        snprintf(answer->why, sizeof(answer->why), "%s", curl_easy_strerror(code));
    }
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    buf_free(&body);
}

void demo_call(const char *method, const char *url, const char *key, const char *form,
               struct demo_answer *answer)
{
    perform(method, url, header_add(header_bearer(key), "Prefer", "wait=30"), str_of(form), answer);
}

void demo_shop_call(const char *method, const char *url, const char *token, struct str json,
                    struct demo_answer *answer)
{
    char signature[SIGNATURE_SIZE];
    if (!signature_make(str_of(token), json, time(NULL), signature)) {
        *answer = (struct demo_answer){.why = "OpenSSL could not sign the request"};
        return;
    }
    struct curl_slist *headers = header_add(header_bearer(token), "X-Signature", signature);
    if (json.n > 0)
        headers = header_add(headers, "Content-Type", "application/json");
    perform(method, url, headers, json, answer);
}

void demo_answer_free(struct demo_answer *answer)
{
    json_free(answer->body);
    answer->body = NULL;
}

int demo_answer_refuse(const struct demo_answer *answer)
{
    const struct json *error = json_member(answer->body, "error");
    if (answer->status == 0)
        return cmd_refuse("the server did not answer: %s", answer->why);
    const char *message = json_chars(json_member(error, "message"));
    if (json_member(error, "errors") != NULL)
        message = json_chars(json_member(error, "errors"));
    return cmd_refuse("the server answered %ld: %s", answer->status,
                      message == NULL ? "no reason given" : message);
}

bool demo_escape(const char *text, char *out, size_t size)
{
    char *escaped = curl_easy_escape(NULL, text, 0);
    bool fits = escaped != NULL && (size_t)snprintf(out, size, "%s", escaped) < size;
    curl_free(escaped);
    return fits;
}
