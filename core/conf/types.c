#include "core/conf/conf_internal.h"
#include "core/conf/values.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <sys/un.h>

#define WHY(...) snprintf(why, CONF_WHY_SIZE, __VA_ARGS__)

/* ---- text, path, address, url: a char * each ---- */

static char **text_member(const struct conf_option *option, char *base)
{
    return (char **)(void *)(base + option->offset);
}

static bool text_parse(const struct conf_option *option, char *base, const char *text,
                       char why[CONF_WHY_SIZE])
{
    if (text[0] == '\0' && option->max == 0) {
        WHY("must not be empty");
        return false;
    }
    for (const char *p = text; *p != '\0'; p++) {
        if ((unsigned char)*p < 0x20 || *p == 0x7f) {
            WHY("contains a control character");
            return false;
        }
    }
    char *copy = strdup(text);
    if (copy == NULL) {
        WHY("out of memory");
        return false;
    }
    free(*text_member(option, base));
    *text_member(option, base) = copy;
    return true;
}

/* In double quotes, so that no character is special in YAML. Other bytes are UTF-8 as read. */
static void text_print(const struct conf_option *option, const char *base, FILE *out)
{
    const char *text = *(char *const *)(const void *)(base + option->offset);
    fputc('"', out);
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\')
            fputc('\\', out);
        fputc(*p, out);
    }
    fputc('"', out);
}

static void text_clear(const struct conf_option *option, char *base)
{
    free(*text_member(option, base));
    *text_member(option, base) = NULL;
}

/* The host of an address: a name or an IPv4 address. Digits and dots alone must be an address. */
static bool host_valid(const char *host)
{
    struct in_addr in;
    if (strspn(host, "0123456789.") == strlen(host))
        return inet_pton(AF_INET, host, &in) == 1;
    return strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") ==
               strlen(host) &&
           host[0] != '-' && host[0] != '.';
}

static bool address_valid(const char *text, char why[CONF_WHY_SIZE])
{
    char quoted[CONF_QUOTE_SIZE];
    if (strncmp(text, "unix:", 5) == 0) {
        if (text[5] == '/' && strlen(text + 5) < sizeof(((struct sockaddr_un *)NULL)->sun_path))
            return true;
        WHY("the path of a Unix socket must be absolute and at most 107 bytes long");
        return false;
    }
    const char *colon = strrchr(text, ':');
    uint64_t port;
    char host[256];
    size_t host_size = colon == NULL ? 0 : (size_t)(colon - text);
    if (host_size == 0 || host_size >= sizeof(host)) {
        WHY("\"%s\" is not an address; give host:port, [ipv6]:port or unix:/path",
            conf_quote(text, quoted));
        return false;
    }
    if (!value_number(colon + 1, &port) || port > 65535) {
        WHY("the port of \"%s\" is not a number from 0 to 65535", conf_quote(text, quoted));
        return false;
    }
    memcpy(host, text, host_size);
    host[host_size] = '\0';
    struct in6_addr in6;
    bool bracketed = host[0] == '[' && host[host_size - 1] == ']';
    if (bracketed)
        host[host_size - 1] = '\0';
    if (bracketed ? inet_pton(AF_INET6, host + 1, &in6) == 1 : host_valid(host))
        return true;
    WHY("the host of \"%s\" is neither a name nor an address; write an IPv6 address in brackets",
        conf_quote(text, quoted));
    return false;
}

static bool address_parse(const struct conf_option *option, char *base, const char *text,
                          char why[CONF_WHY_SIZE])
{
    if (text[0] != '\0' && !address_valid(text, why))
        return false;
    return text_parse(option, base, text, why);
}

static bool url_parse(const struct conf_option *option, char *base, const char *text,
                      char why[CONF_WHY_SIZE])
{
    size_t scheme = strncmp(text, "https://", 8) == 0  ? 8
                    : strncmp(text, "http://", 7) == 0 ? 7
                                                       : 0;
    if (text[0] != '\0' && (scheme == 0 || text[scheme] == '\0' || text[scheme] == '/' ||
                            strpbrk(text, " ;?#\"<>\\") != NULL)) {
        char quoted[CONF_QUOTE_SIZE];
        WHY("\"%s\" is not a base URL; give scheme and host, such as https://api.example.com",
            conf_quote(text, quoted));
        return false;
    }
    if (!text_parse(option, base, text, why))
        return false;
    char *copy = *text_member(option, base);
    for (size_t n = strlen(copy); n > 0 && copy[n - 1] == '/'; n--)
        copy[n - 1] = '\0';
    return true;
}

/* ---- numbers ---- */

static void number_clear(const struct conf_option *option, char *base)
{
    (void)option;
    (void)base;
}

static bool unsigned_store(const struct conf_option *option, char *base, uint64_t value)
{
    unsigned narrow = (unsigned)value;
    memcpy(base + option->offset, &narrow, sizeof(narrow));
    return true;
}

static unsigned unsigned_load(const struct conf_option *option, const char *base)
{
    unsigned value;
    memcpy(&value, base + option->offset, sizeof(value));
    return value;
}

static bool integer_parse(const struct conf_option *option, char *base, const char *text,
                          char why[CONF_WHY_SIZE])
{
    char quoted[CONF_QUOTE_SIZE];
    uint64_t value;
    if (!value_number(text, &value)) {
        WHY("\"%s\" is not a whole number; give %" PRIu64 " to %" PRIu64, conf_quote(text, quoted),
            option->min, option->max);
        return false;
    }
    if (value < option->min || value > option->max) {
        WHY("%s is out of range; give %" PRIu64 " to %" PRIu64, conf_quote(text, quoted),
            option->min, option->max);
        return false;
    }
    return unsigned_store(option, base, value);
}

static void integer_print(const struct conf_option *option, const char *base, FILE *out)
{
    fprintf(out, "%u", unsigned_load(option, base));
}

/* Whether ${ms} is in the option's range; if not, ${why} says so. */
static bool duration_in_range(const struct conf_option *option, const char *text, uint64_t ms,
                              char why[CONF_WHY_SIZE])
{
    if (ms >= option->min && ms <= option->max)
        return true;
    char quoted[CONF_QUOTE_SIZE], low[VALUE_TEXT_SIZE], high[VALUE_TEXT_SIZE];
    value_duration_text(option->min, low);
    value_duration_text(option->max, high);
    WHY("%s is out of range; give %s to %s", conf_quote(text, quoted), low, high);
    return false;
}

static bool duration_text_parse(const struct conf_option *option, char *base, const char *text,
                                char why[CONF_WHY_SIZE])
{
    char quoted[CONF_QUOTE_SIZE];
    uint64_t ms;
    if (!value_duration(text, &ms)) {
        WHY("\"%s\" is not a duration; give a whole number and ms, s, m, h or d, such as 10s",
            conf_quote(text, quoted));
        return false;
    }
    return duration_in_range(option, text, ms, why) && unsigned_store(option, base, ms);
}

static void duration_print(const struct conf_option *option, const char *base, FILE *out)
{
    char text[VALUE_TEXT_SIZE];
    value_duration_text(unsigned_load(option, base), text);
    fputs(text, out);
}

/* A duration of 64 bits. */
static bool age_parse(const struct conf_option *option, char *base, const char *text,
                      char why[CONF_WHY_SIZE])
{
    uint64_t ms;
    if (!value_duration(text, &ms)) {
        char quoted[CONF_QUOTE_SIZE];
        WHY("\"%s\" is not a duration; give a whole number and ms, s, m, h or d, such as 90d",
            conf_quote(text, quoted));
        return false;
    }
    if (!duration_in_range(option, text, ms, why))
        return false;
    memcpy(base + option->offset, &ms, sizeof(ms));
    return true;
}

static void age_print(const struct conf_option *option, const char *base, FILE *out)
{
    uint64_t ms;
    char text[VALUE_TEXT_SIZE];
    memcpy(&ms, base + option->offset, sizeof(ms));
    value_duration_text(ms, text);
    fputs(text, out);
}

static bool size_parse(const struct conf_option *option, char *base, const char *text,
                       char why[CONF_WHY_SIZE])
{
    char quoted[CONF_QUOTE_SIZE];
    uint64_t bytes;
    if (!value_size(text, &bytes)) {
        WHY("\"%s\" is not a size; give bytes, or a whole number and KiB, MiB, GiB or TiB, such as "
            "5MiB",
            conf_quote(text, quoted));
        return false;
    }
    if (bytes < option->min || bytes > option->max) {
        char low[VALUE_TEXT_SIZE], high[VALUE_TEXT_SIZE];
        value_size_text(option->min, low);
        value_size_text(option->max, high);
        WHY("%s is out of range; give %s to %s", conf_quote(text, quoted), low, high);
        return false;
    }
    memcpy(base + option->offset, &bytes, sizeof(bytes));
    return true;
}

static void size_print(const struct conf_option *option, const char *base, FILE *out)
{
    uint64_t bytes;
    char text[VALUE_TEXT_SIZE];
    memcpy(&bytes, base + option->offset, sizeof(bytes));
    value_size_text(bytes, text);
    fputs(text, out);
}

/* ---- choice: an enum; its values are indexes of the choices ---- */

static bool choice_parse(const struct conf_option *option, char *base, const char *text,
                         char why[CONF_WHY_SIZE])
{
    for (unsigned i = 0; option->choices[i] != NULL; i++)
        if (strcmp(option->choices[i], text) == 0)
            return unsigned_store(option, base, i);
    char quoted[CONF_QUOTE_SIZE];
    size_t n = (size_t)WHY("\"%s\" is not one of", conf_quote(text, quoted));
    for (unsigned i = 0; option->choices[i] != NULL && n < CONF_WHY_SIZE; i++)
        n += (size_t)snprintf(why + n, CONF_WHY_SIZE - n, "%s %s", i == 0 ? "" : ",",
                              option->choices[i]);
    return false;
}

static void choice_print(const struct conf_option *option, const char *base, FILE *out)
{
    fputs(option->choices[unsigned_load(option, base)], out);
}

/* ---- true or false ---- */

static bool bool_parse(const struct conf_option *option, char *base, const char *text,
                       char why[CONF_WHY_SIZE])
{
    bool yes = strcmp(text, "true") == 0;
    if (!yes && strcmp(text, "false") != 0) {
        char quoted[CONF_QUOTE_SIZE];
        WHY("\"%s\" is neither true nor false", conf_quote(text, quoted));
        return false;
    }
    memcpy(base + option->offset, &yes, sizeof(yes));
    return true;
}

static void bool_print(const struct conf_option *option, const char *base, FILE *out)
{
    bool yes;
    memcpy(&yes, base + option->offset, sizeof(yes));
    fputs(yes ? "true" : "false", out);
}

/* ---- lists: networks, ports, addresses ---- */

static struct cidr_list *cidrs_member(const struct conf_option *option, char *base)
{
    return (struct cidr_list *)(void *)(base + option->offset);
}

static bool cidrs_parse(const struct conf_option *option, char *base, const char *text,
                        char why[CONF_WHY_SIZE])
{
    struct cidr_list *list = cidrs_member(option, base);
    struct cidr network;
    if (!cidr_parse(text, &network)) {
        char quoted[CONF_QUOTE_SIZE];
        WHY("\"%s\" is not an address or network; give one such as 10.0.0.0/8 or 2001:db8::/32; "
            "the bits after the prefix must be 0",
            conf_quote(text, quoted));
        return false;
    }
    struct cidr *items = realloc(list->items, (list->count + 1) * sizeof(*items));
    if (items == NULL) {
        WHY("out of memory");
        return false;
    }
    items[list->count++] = network;
    list->items = items;
    return true;
}

static void cidrs_print(const struct conf_option *option, const char *base, FILE *out)
{
    const struct cidr_list *list = (const struct cidr_list *)(const void *)(base + option->offset);
    fputc('[', out);
    for (size_t i = 0; i < list->count; i++) {
        const struct cidr *item = &list->items[i];
        char text[INET6_ADDRSTRLEN];
        bool v4 = ip_is_v4(&item->net) && item->bits >= 96;
        inet_ntop(v4 ? AF_INET : AF_INET6, item->net.b + (v4 ? 12 : 0), text, sizeof(text));
        fprintf(out, "%s\"%s/%u\"", i == 0 ? "" : ", ", text, v4 ? item->bits - 96 : item->bits);
    }
    fputc(']', out);
}

static void cidrs_clear(const struct conf_option *option, char *base)
{
    struct cidr_list *list = cidrs_member(option, base);
    free(list->items);
    *list = (struct cidr_list){.items = NULL};
}

static bool ports_parse(const struct conf_option *option, char *base, const char *text,
                        char why[CONF_WHY_SIZE])
{
    uint16_t *ports = (uint16_t *)(void *)(base + option->offset);
    size_t *count = (size_t *)(void *)(base + option->count_offset);
    char quoted[CONF_QUOTE_SIZE];
    uint64_t value;
    if (!value_number(text, &value) || value < option->min || value > option->max) {
        WHY("\"%s\" is not a port; give %" PRIu64 " to %" PRIu64, conf_quote(text, quoted),
            option->min, option->max);
        return false;
    }
    if (*count == CONF_PORTS_MAX) {
        WHY("at most %d ports", CONF_PORTS_MAX);
        return false;
    }
    ports[(*count)++] = (uint16_t)value;
    return true;
}

static void ports_print(const struct conf_option *option, const char *base, FILE *out)
{
    const uint16_t *ports = (const uint16_t *)(const void *)(base + option->offset);
    size_t count;
    memcpy(&count, base + option->count_offset, sizeof(count));
    fputc('[', out);
    for (size_t i = 0; i < count; i++)
        fprintf(out, "%s%u", i == 0 ? "" : ", ", ports[i]);
    fputc(']', out);
}

static void ports_clear(const struct conf_option *option, char *base)
{
    memset(base + option->count_offset, 0, sizeof(size_t));
}

static struct conf_addresses *addresses_member(const struct conf_option *option, char *base)
{
    return (struct conf_addresses *)(void *)(base + option->offset);
}

static bool addresses_parse(const struct conf_option *option, char *base, const char *text,
                            char why[CONF_WHY_SIZE])
{
    struct conf_addresses *list = addresses_member(option, base);
    if (!address_valid(text, why))
        return false;
    if (list->count == CONF_SENTINELS_MAX) {
        WHY("at most %d addresses", CONF_SENTINELS_MAX);
        return false;
    }
    char *copy = strdup(text);
    if (copy == NULL) {
        WHY("out of memory");
        return false;
    }
    list->items[list->count++] = copy;
    return true;
}

static void addresses_print(const struct conf_option *option, const char *base, FILE *out)
{
    const struct conf_addresses *list =
        (const struct conf_addresses *)(const void *)(base + option->offset);
    fputc('[', out);
    for (size_t i = 0; i < list->count; i++)
        fprintf(out, "%s\"%s\"", i == 0 ? "" : ", ", list->items[i]);
    fputc(']', out);
}

static void addresses_clear(const struct conf_option *option, char *base)
{
    struct conf_addresses *list = addresses_member(option, base);
    while (list->count > 0)
        free(list->items[--list->count]);
}

const struct conf_type conf_type_text = {"text",     "one text", false,     false,
                                         text_parse, text_print, text_clear};
const struct conf_type conf_type_path = {"path",     "one path", false,     false,
                                         text_parse, text_print, text_clear};
const struct conf_type conf_type_address = {
    "address", "one address such as 127.0.0.1:8080", false, false, address_parse, text_print,
    text_clear};
const struct conf_type conf_type_url = {"URL",     "one URL",  false,     false,
                                        url_parse, text_print, text_clear};
const struct conf_type conf_type_integer = {"integer",     "one whole number", false,       true,
                                            integer_parse, integer_print,      number_clear};
const struct conf_type conf_type_duration = {
    "duration",  "one duration such as 10s", false, true, duration_text_parse, duration_print,
    number_clear};
const struct conf_type conf_type_age = {
    "duration", "one duration such as 90d", false, true, age_parse, age_print, number_clear};
const struct conf_type conf_type_size = {
    "size", "one size such as 5MiB", false, true, size_parse, size_print, number_clear};
const struct conf_type conf_type_choice = {"choice",     "one word",   false,       false,
                                           choice_parse, choice_print, number_clear};
const struct conf_type conf_type_bool = {"true | false", "true or false", false,       false,
                                         bool_parse,     bool_print,      number_clear};
const struct conf_type conf_type_cidrs = {
    "list of networks", "a list such as [10.0.0.0/8]", true, false, cidrs_parse, cidrs_print,
    cidrs_clear};
const struct conf_type conf_type_addresses = {"list of addresses",
                                              "a list such as [10.0.0.5:26379, 10.0.0.6:26379]",
                                              true,
                                              false,
                                              addresses_parse,
                                              addresses_print,
                                              addresses_clear};
const struct conf_type conf_type_ports = {
    "list of ports", "a list such as [80, 443]", true, false, ports_parse, ports_print,
    ports_clear};
