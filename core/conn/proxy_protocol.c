#include "core/conn/proxy_protocol.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

static void set_v4(struct proxy_header *out, const void *address, in_port_t port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = port};
    memcpy(&sa.sin_addr, address, sizeof(sa.sin_addr));
    memcpy(&out->client, &sa, sizeof(sa));
    out->client_size = sizeof(sa);
}

static void set_v6(struct proxy_header *out, const void *address, in_port_t port)
{
    struct sockaddr_in6 sa = {.sin6_family = AF_INET6, .sin6_port = port};
    memcpy(&sa.sin6_addr, address, sizeof(sa.sin6_addr));
    memcpy(&out->client, &sa, sizeof(sa));
    out->client_size = sizeof(sa);
}

/* ---- version 1: a line of text ---- */

#define V1_MAX 107 /* with CR LF */
static const char v1_start[] = "PROXY ";

/* The next word; a single blank or the end of the line follows it. */
static const char *next_word(char **at)
{
    char *start = *at, *end = strchr(start, ' ');
    if (end != NULL)
        *end++ = '\0';
    *at = end == NULL ? start + strlen(start) : end;
    return start;
}

static bool port_parse(const char *text, in_port_t *port)
{
    unsigned value = 0;
    size_t n = strlen(text);
    if (n == 0 || n > 5 || (n > 1 && *text == '0'))
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        value = value * 10 + (unsigned)(*text - '0');
    }
    *port = htons((uint16_t)value);
    return value <= 65535;
}

static enum proxy_verdict v1_line(char *line, struct proxy_header *out)
{
    uint8_t from[16], to[16];
    in_port_t from_port, to_port;
    const char *protocol = next_word(&line);
    if (strcmp(protocol, "UNKNOWN") == 0)
        return PROXY_WHOLE;
    bool v4 = strcmp(protocol, "TCP4") == 0;
    int family = v4 ? AF_INET : AF_INET6;
    if (!v4 && strcmp(protocol, "TCP6") != 0)
        return PROXY_WRONG;
    if (inet_pton(family, next_word(&line), from) != 1 ||
        inet_pton(family, next_word(&line), to) != 1 || !port_parse(next_word(&line), &from_port) ||
        !port_parse(line, &to_port))
        return PROXY_WRONG;
    (v4 ? set_v4 : set_v6)(out, from, from_port);
    return PROXY_WHOLE;
}

static enum proxy_verdict v1_parse(const uint8_t *bytes, size_t n, struct proxy_header *out)
{
    char line[V1_MAX + 1];
    size_t most = n < V1_MAX ? n : V1_MAX;
    const uint8_t *end = memchr(bytes, '\n', most);
    if (end == NULL)
        return n < V1_MAX && memchr(bytes, '\0', most) == NULL ? PROXY_MORE : PROXY_WRONG;
    out->size = (size_t)(end - bytes) + 1;
    size_t length = out->size - 2;
    if (out->size < sizeof(v1_start) + 1 || end[-1] != '\r' ||
        memchr(bytes, '\r', length) != NULL || memchr(bytes, '\0', length) != NULL)
        return PROXY_WRONG;
    memcpy(line, bytes, length);
    line[length] = '\0';
    return v1_line(line + strlen(v1_start), out);
}

/* ---- version 2: 16 bytes with the length of the rest ---- */

#define V2_HEAD 16
static const uint8_t v2_start[] = {0x0d, 0x0a, 0x0d, 0x0a, 0x00, 0x0d,
                                   0x0a, 0x51, 0x55, 0x49, 0x54, 0x0a};

enum { V2_LOCAL = 0x20, V2_PROXY = 0x21 };

static in_port_t port_at(const uint8_t *bytes)
{
    in_port_t port;
    memcpy(&port, bytes, sizeof(port));
    return port;
}

static enum proxy_verdict v2_parse(const uint8_t *bytes, size_t n, struct proxy_header *out)
{
    if (n < V2_HEAD)
        return PROXY_MORE;
    size_t length = (size_t)bytes[14] << 8 | bytes[15];
    const uint8_t *address = bytes + V2_HEAD;
    out->size = V2_HEAD + length;
    if ((bytes[12] != V2_LOCAL && bytes[12] != V2_PROXY) || out->size > PROXY_HEADER_MAX)
        return PROXY_WRONG;
    if (n < out->size)
        return PROXY_MORE;
    if (bytes[12] == V2_LOCAL) /* its addresses have no meaning */
        return PROXY_WHOLE;
    switch (bytes[13]) {
    case 0x00: /* unspecified */
        return PROXY_WHOLE;
    case 0x11: /* TCP over IPv4: two addresses, two ports */
        if (length < 12)
            return PROXY_WRONG;
        set_v4(out, address, port_at(address + 8));
        return PROXY_WHOLE;
    case 0x21: /* TCP over IPv6 */
        if (length < 36)
            return PROXY_WRONG;
        set_v6(out, address, port_at(address + 32));
        return PROXY_WHOLE;
    case 0x31: /* Unix stream: two paths */
        return length < 216 ? PROXY_WRONG : PROXY_WHOLE;
    default: /* datagrams and unknown protocols */
        return PROXY_WRONG;
    }
}

enum proxy_verdict proxy_header_parse(const uint8_t *bytes, size_t n, struct proxy_header *out)
{
    size_t v1 = strlen(v1_start), v2 = sizeof(v2_start);
    *out = (struct proxy_header){.client.ss_family = AF_UNSPEC};
    if (memcmp(bytes, v1_start, n < v1 ? n : v1) == 0)
        return n < v1 ? PROXY_MORE : v1_parse(bytes, n, out);
    if (memcmp(bytes, v2_start, n < v2 ? n : v2) == 0)
        return v2_parse(bytes, n, out);
    return PROXY_WRONG;
}
