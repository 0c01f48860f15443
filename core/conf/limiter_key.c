/* Keys of limiters: from a caller to binary, and between binary and text. */
#include "core/conf/limiters.h"
#include "core/conf/values.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

/* Set in the first byte, the kind of key, if an address replaces an unknown credential. */
#define INSTEAD 0x80

static const char *const by_names[LIMITER_BYS] = {
    [BY_IP_AGENT] = "ip+agent", [BY_JWT] = "jwt",       [BY_TOKEN] = "token",
    [BY_API_KEY] = "api_key",   [BY_REPORT] = "report", [BY_IP] = "ip"};

const char *limiter_by_name(enum limiter_by by)
{
    return by < LIMITER_BYS ? by_names[by] : "?";
}

enum limiter_by limiter_by_find(const char *name)
{
    unsigned by = 0;
    while (by < LIMITER_BYS && strcmp(by_names[by], name) != 0)
        by++;
    return by;
}

/* ---- binary ---- */

static void add(struct limiter_key *key, const void *bytes, size_t n)
{
    memcpy(key->bytes + key->size, bytes, n);
    key->size = (uint8_t)(key->size + n);
}

/* Of an IPv6 address only the prefix: its owner can choose the rest. */
static void add_ip(struct limiter_key *key, const struct ip *ip, unsigned ipv6_prefix)
{
    struct ip net = *ip;
    if (!ip_is_v4(ip))
        for (unsigned bit = ipv6_prefix; bit < 128; bit += 8 - bit % 8)
            net.b[bit / 8] &= (uint8_t)(0xff00u >> bit % 8);
    add(key, net.b, sizeof(net.b));
}

static void add_id(struct limiter_key *key, uint64_t id)
{
    add(key, &id, sizeof(id));
}

static void add_ulid(struct limiter_key *key, const uint8_t *ulid)
{
    static const uint8_t unknown[LIMITER_ULID];
    add(key, ulid == NULL ? unknown : ulid, LIMITER_ULID);
}

bool limiter_key_make(enum limiter_by by, unsigned ipv6_prefix, const struct limiter_caller *caller,
                      struct limiter_key *out)
{
    memset(out, 0, sizeof(*out));
    out->size = 1;
    out->bytes[0] = (uint8_t)by;
    switch (by) {
    case BY_API_KEY:
        if (caller->api_key == 0)
            break;
        add_id(out, caller->api_key);
        return true;
    case BY_TOKEN:
        if (caller->token == 0)
            break;
        add_id(out, caller->token);
        return true;
    case BY_REPORT:
        add_id(out, caller->report);
        return caller->report != 0;
    case BY_JWT:
        if (caller->visitor == NULL || caller->agent == NULL)
            break;
        add_ulid(out, caller->visitor);
        add_ulid(out, caller->agent);
        return true;
    case BY_IP_AGENT:
        add_ip(out, caller->ip, ipv6_prefix);
        add_ulid(out, caller->agent);
        return true;
    case BY_IP:
    case LIMITER_BYS:
        add_ip(out, caller->ip, ipv6_prefix);
        return true;
    }
    out->bytes[0] |= INSTEAD;
    add_ip(out, caller->ip, ipv6_prefix);
    return true;
}

/* ---- text: ULIDs, in Crockford's base 32 ---- */

#define ULID_TEXT 26
static const char digits32[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static void ulid_text(const uint8_t *ulid, char out[ULID_TEXT + 1])
{
    for (int i = 0; i < ULID_TEXT; i++) {
        /* 26 digits have 130 bits, so the first digit has only three */
        int from = i * 5 - 2;
        unsigned value = 0;
        for (int bit = from; bit < from + 5; bit++)
            value = value << 1 | (bit < 0 ? 0 : ulid[bit / 8] >> (7 - bit % 8) & 1u);
        out[i] = digits32[value];
    }
    out[ULID_TEXT] = '\0';
}

static bool ulid_parse(const char *text, size_t n, uint8_t out[LIMITER_ULID])
{
    memset(out, 0, LIMITER_ULID);
    if (n != ULID_TEXT)
        return false;
    for (int i = 0; i < ULID_TEXT; i++) {
        char c = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - 32) : text[i];
        const char *digit = c == '\0' ? NULL : strchr(digits32, c);
        if (digit == NULL || (i == 0 && digit - digits32 > 7))
            return false;
        for (int bit = i == 0 ? 2 : 0; bit < 5; bit++)
            if (((digit - digits32) >> (4 - bit) & 1) != 0)
                out[(i * 5 - 2 + bit) / 8] |= (uint8_t)(1u << (7 - (i * 5 - 2 + bit) % 8));
    }
    return true;
}

/* ---- text: addresses and ids ---- */

/* An address, or the network that is one key. */
static bool network_parse(const char *text, size_t n, unsigned ipv6_prefix, struct ip *out)
{
    char copy[64];
    struct cidr net;
    if (n >= sizeof(copy))
        return false;
    memcpy(copy, text, n);
    copy[n] = '\0';
    if (!cidr_parse(copy, &net))
        return false;
    *out = net.net;
    return net.bits == 128 || (!ip_is_v4(out) && net.bits == ipv6_prefix);
}

static bool id_parse(const char *text, uint64_t *id)
{
    return value_number(text, id) && *id != 0;
}

/* "…/AGENT" */
static bool agent_parse(const char *text, size_t *before, uint8_t agent[LIMITER_ULID], bool *known)
{
    const char *slash = strrchr(text, '/');
    if (slash == NULL)
        return false;
    *before = (size_t)(slash - text);
    *known = strcmp(slash + 1, "-") != 0;
    return !*known || ulid_parse(slash + 1, strlen(slash + 1), agent);
}

bool limiter_key_parse(enum limiter_by by, unsigned ipv6_prefix, const char *text,
                       struct limiter_key *out)
{
    struct ip ip;
    struct limiter_caller caller = {.ip = &ip};
    uint8_t visitor[LIMITER_ULID], agent[LIMITER_ULID];
    size_t before = 0;
    bool known = false, ok = false;
    if (network_parse(text, strlen(text), ipv6_prefix, &ip))
        ok = by != BY_IP_AGENT && by != BY_REPORT;
    else if (by == BY_TOKEN)
        ok = id_parse(text, &caller.token);
    else if (by == BY_API_KEY)
        ok = id_parse(text, &caller.api_key);
    else if (by == BY_REPORT)
        ok = id_parse(text, &caller.report);
    else if (by == BY_IP_AGENT)
        ok = agent_parse(text, &before, agent, &known) &&
             network_parse(text, before, ipv6_prefix, &ip);
    else if (by == BY_JWT)
        ok =
            agent_parse(text, &before, agent, &known) && known && ulid_parse(text, before, visitor);
    if (!ok)
        return false;
    caller.agent = known ? agent : NULL;
    caller.visitor = by == BY_JWT && known ? visitor : NULL;
    return limiter_key_make(by, ipv6_prefix, &caller, out);
}

static int network_text(const uint8_t *bytes, unsigned ipv6_prefix, char *out, size_t size)
{
    struct ip ip;
    char text[INET6_ADDRSTRLEN];
    memcpy(ip.b, bytes, sizeof(ip.b));
    ip_text(&ip, text);
    return ip_is_v4(&ip) ? snprintf(out, size, "%s", text)
                         : snprintf(out, size, "%s/%u", text, ipv6_prefix);
}

void limiter_key_text(const struct limiter_key *key, unsigned ipv6_prefix,
                      char out[LIMITER_TEXT_SIZE])
{
    static const uint8_t unknown[LIMITER_ULID];
    const uint8_t *bytes = key->bytes + 1;
    char first[ULID_TEXT + 1], second[ULID_TEXT + 1];
    uint64_t id;
    switch (key->bytes[0]) {
    case BY_API_KEY:
    case BY_TOKEN:
    case BY_REPORT:
        memcpy(&id, bytes, sizeof(id));
        snprintf(out, LIMITER_TEXT_SIZE, "%" PRIu64, id);
        break;
    case BY_JWT:
        ulid_text(bytes, first);
        ulid_text(bytes + LIMITER_ULID, second);
        snprintf(out, LIMITER_TEXT_SIZE, "%s/%s", first, second);
        break;
    case BY_IP_AGENT: {
        size_t n = (size_t)network_text(bytes, ipv6_prefix, out, LIMITER_TEXT_SIZE);
        ulid_text(bytes + sizeof(struct ip), second);
        bool known = memcmp(bytes + sizeof(struct ip), unknown, LIMITER_ULID) != 0;
        snprintf(out + n, LIMITER_TEXT_SIZE - n, "/%s", known ? second : "-");
        break;
    }
    default:
        network_text(bytes, ipv6_prefix, out, LIMITER_TEXT_SIZE);
    }
}
