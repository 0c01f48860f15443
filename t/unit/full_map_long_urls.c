/*
 * The map fills while a URL of several segments is indexed. The walk over the segments must stop at
 * the error with the segments it has; otherwise the following copy overruns a key on the writer's
 * stack. AddressSanitizer or the stack protector reports it; other builds see it in the check at
 * the end.
 */
#include "t/kit/store.h"
#include "t/kit/suite.h"

#define URL_BYTES 2000

static const char *long_url(char out[URL_BYTES + 1], unsigned seed)
{
    int n = snprintf(out, URL_BYTES + 1, "http://long.example/%u/", seed);
    for (; n < URL_BYTES; n++) {
        seed = seed * 1103515245u + 12345u;
        out[n] = (char)('a' + (seed >> 16) % 26);
    }
    out[URL_BYTES] = '\0';
    return out;
}

static void problem(void *arg, const char *sentence)
{
    (void)arg;
    ck_abort_msg("%s", sentence);
}

/*
 * Many changes in one transaction, so that it reaches the end of the map and not the reserve before
 * it. Each batch size reaches it at another point.
 */
START_TEST(a_long_url_at_the_end_of_the_map_is_rolled_back)
{
    char dir[64], url[URL_BYTES + 1];
    unsigned reached_end = 0;
    kit_dir(dir);
    struct store *s = kit_store(dir, STORE_WRITE, 1u << 20);
    struct store_answer answer;
    struct store_txn *t;
    struct store_change workspace = {.kind = CHANGE_WORKSPACE_CREATE, .name = STR("w")};
    ck_assert_int_eq(store_begin(s, &t), STORE_OK);
    store_apply(t, &workspace, NOW, &answer);
    ck_assert_int_eq(store_commit(t), STORE_OK);
    uint64_t id = answer.id;
    for (unsigned batch = 150; batch < 400; batch++) {
        ck_assert_int_eq(store_begin(s, &t), STORE_OK);
        for (unsigned i = 0; i < batch && store_txn_error(t) == STORE_OK; i++) {
            struct store_change create =
                kit_create_change(id, long_url(url, batch * 1000 + i), "long.example");
            store_apply(t, &create, NOW, &answer);
        }
        reached_end += store_txn_error(t) == STORE_FULL;
        store_abort(t);
    }
    ck_assert_msg(reached_end > 10, "only %u changes filled the map", reached_end);
    uint64_t records;
    ck_assert_int_eq(store_check(s, NULL, problem, NULL, &records), STORE_OK);
    store_close(s);
    kit_remove(dir);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("full_map_long_urls");
    TCase *t = tcase_create("full_map_long_urls");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_long_url_at_the_end_of_the_map_is_rolled_back);
    suite_add_tcase(s, t);
    return suite_run(s);
}
