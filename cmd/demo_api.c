/* The API as a user's program calls it: libcurl, a form, JSON back. */
#include "cmd/demo.h"
#include "store/bytes.h"

#include <curl/curl.h>
#include <stdio.h>

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

void demo_call(const char *method, const char *url, const char *key, const char *form, struct demo_answer *answer)
{
    char authorization[128];
    struct buf body = {.p = NULL};
    *answer = (struct demo_answer){.status = 0};
    CURL *curl = curl_easy_init();
    snprintf(authorization, sizeof(authorization), "Authorization: Bearer %s", key);
    struct curl_slist *headers = curl_slist_append(NULL, authorization);
    headers = curl_slist_append(headers, "Accept: application/json");
    headers = curl_slist_append(headers, "Prefer: wait=30");
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
    if (form != NULL)
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, form);
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

void demo_answer_free(struct demo_answer *answer)
{
    json_free(answer->body);
    answer->body = NULL;
}

bool demo_escape(const char *text, char *out, size_t size)
{
    char *escaped = curl_easy_escape(NULL, text, 0);
    bool fits = escaped != NULL && (size_t)snprintf(out, size, "%s", escaped) < size;
    curl_free(escaped);
    return fits;
}
