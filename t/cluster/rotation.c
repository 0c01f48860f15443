/*
 * A rotated signing key: each node knows it before any node signs with it, which is
 * cluster.max_lag after the rotation.
 */
#include "t/kit/three_nodes.h"

#include <poll.h>

enum { MAX_LAG_MS = 5000, SETTLE_MS = 500, LATE_MS = 3000 };

/* The newest key in the file of a node. */
static char *newest_kid(unsigned i)
{
    char *path = text("%s/secrets", nodes->node[i].server->data), line[1024];
    char *kid = text("%s", "");
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (line[0] != '#')
            kid = text("%.*s", (int)strcspn(line, " \n"), line);
    if (file != NULL)
        fclose(file);
    free(path);
    return kid;
}

static int six_bits(char c)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

/* The head of a token as JSON. */
static char *token_head(const char *jwt)
{
    char *out = calloc(1, strlen(jwt) + 1);
    unsigned bits = 0, n = 0, held = 0;
    ck_assert_ptr_nonnull(out);
    for (int six; (six = six_bits(*jwt)) >= 0; jwt++) {
        bits = bits << 6 | (unsigned)six;
        held += 6;
        if (held >= 8)
            out[n++] = (char)(bits >> (held -= 8) & 255);
    }
    return out;
}

static bool signs_with(unsigned i, const char *kid, struct visitor *v)
{
    server = nodes->node[i].server;
    *v = visitor_new();
    return strstr(token_head(v->jwt), text("\"%s\"", kid)) != NULL;
}

/* Each node takes what another one signed. */
static void expect_valid_everywhere(const struct visitor *v)
{
    nodes_catch_up(nodes);
    for (unsigned i = 0; i < nodes->count; i++) {
        server = nodes->node[i].server;
        expect_status(as(v, "GET", "conversation/messages", NULL), 200);
    }
}

static bool all_have(void *kid)
{
    for (unsigned i = 0; i < nodes->count; i++) {
        char *other = newest_kid(i);
        bool same = strcmp(other, kid) == 0;
        free(other);
        if (!same)
            return false;
    }
    return true;
}

START_TEST(a_rotated_key_signs_on_every_node_after_max_lag_and_on_none_before)
{
    bool signs[NODES_MAX] = {false};
    unsigned signing = 0, before = 0;
    widget_make("*");
    char *first = newest_kid(leader);
    ck_assert(wait_until(all_have, first, SAYS_MS));
    int64_t since_ms = now_ms();
    assay_ok(follower_server(0), "secret", "rotate", NULL);
    char *kid = newest_kid(follower(0));
    ck_assert_str_ne(first, kid);
    ck_assert(wait_until(all_have, kid, SAYS_MS));
    ck_assert_int_lt(now_ms() - since_ms, MAX_LAG_MS);
    while (signing < nodes->count) {
        for (unsigned i = 0; i < nodes->count; i++) {
            struct visitor v;
            int64_t asked_ms = now_ms();
            bool does = signs_with(i, kid, &v);
            ck_assert_msg(!does || now_ms() - since_ms >= MAX_LAG_MS, "too early");
            ck_assert_msg(does || asked_ms - since_ms < MAX_LAG_MS + SETTLE_MS + LATE_MS,
                          "node %u signs with the key of before", i);
            before += !does;
            signing += does && !signs[i];
            if (does && !signs[i])
                expect_valid_everywhere(&v);
            signs[i] = does;
        }
        poll(NULL, 0, 100);
    }
    ck_assert_uint_ge(before, 2 * nodes->count); /* each has signed with the key of before */
    nodes_expect_equal(nodes);
}
END_TEST

static void add_tests(TCase *tcase)
{
    tcase_add_test(tcase, a_rotated_key_signs_on_every_node_after_max_lag_and_on_none_before);
}

int main(void)
{
    three_nodes_options.cluster = ", max_lag: 5s";
    return three_nodes_main("rotation", add_tests);
}
