/* Fuzz: a URL. What is accepted is stable, public, and of the ports that are open. */
#include "core/audit/guard_internal.h"
#include "core/audit/url.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct conf conf = {.audit_ports = {80, 443}, .audit_ports_count = 2};
    struct url url, again;
    const char *why;
    if (url_judge((struct str){(const char *)data, size},
                  size % 2 == 0 ? NULL : "https://example.com/a/b", &conf, &url, &why)) {
        struct ip ip;
        if (!url_judge(str_of(url.text), NULL, &conf, &again, &why) ||
            strcmp(url.text, again.text) != 0 || strcmp(url.host, again.host) != 0)
            abort();
        if ((url.port != 80 && url.port != 443) || url.private_host ||
            (ip_parse(url.host, &ip) && guard_ip_denied(&ip)))
            abort();
        url_free(&again);
    }
    url_free(&url);
    return 0;
}
