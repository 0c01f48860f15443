/* Fuzz: bytes of a page, from charset to results. The first line, if it has one, is the Content-Type. */
#include "audit/checks.h"
#include "audit/results.h"
#include "audit/text.h"

#include <locale.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct facts facts;
    struct audit_findings findings = {0};
    struct buf json = {0};
    struct str type, body;
    setlocale(LC_CTYPE, "C.UTF-8");
    text_split((struct str){(const char *)data, size}, '\n', &type, &body);
    facts_init(&facts);
    facts.response.status = 200;
    facts.response.url = STR("https://example.com/a/b?c");
    facts.response.origin = STR("https://example.com");
    facts.response.host = STR("example.com");
    facts.response.target = STR("/a/b?c");
    facts.response.https = true;
    facts.response.headers[0] = (struct fact_header){STR("content-type"), type};
    facts.response.headers[1] = (struct fact_header){STR("link"), type};
    facts.response.headers[2] = (struct fact_header){STR("strict-transport-security"), type};
    facts.response.headers[3] = (struct fact_header){STR("x-robots-tag"), type};
    facts.response.headers[4] = (struct fact_header){STR("content-security-policy"), type};
    facts.response.header_count = 5;
    facts.robots = (struct fact_probe){.state = PROBE_DONE, .status = 200, .body = body};
    enum page_status status = facts_read(&facts, body, 5000);
    if (status == PAGE_OK) {
        bool ok = results_make(&facts, &findings, &json);
        if (!ok && !facts.arena.full)
            abort();
        if (ok && (findings.score < 0 || findings.score > 100 || json.n > RESULTS_MAX_BYTES))
            abort();
    }
    buf_free(&json);
    facts_free(&facts);
    return 0;
}
