/*
 * The map fills while a report with a long URL is written. The write must stop at the error, and
 * the transaction must leave nothing. AddressSanitizer or the stack protector reports a copy past
 * the end of a page; other builds see it in the check at the end.
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
 * A create stops at the reserve. A change of an existing report does not: longer password hashes
 * reach the end of the map in one transaction. Each batch size reaches it at another point.
 */
START_TEST(a_long_url_at_the_end_of_the_map_is_rolled_back)
{
    char dir[64], url[URL_BYTES + 1], hash[2048];
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
    memset(hash, 'h', sizeof(hash));
    for (unsigned batch = 50; batch < 300; batch++) {
        uint64_t last = 0;
        ck_assert_int_eq(store_begin(s, &t), STORE_OK);
        for (unsigned i = 0; i < batch && store_txn_error(t) == STORE_OK; i++) {
            struct store_change create =
                kit_create_change(id, long_url(url, batch * 1000 + i), "long.example");
            store_apply(t, &create, NOW, &answer);
            last = answer.status == STORE_OK ? answer.id : last;
        }
        for (uint64_t i = 1; i <= last && store_txn_error(t) == STORE_OK; i++)
            store_apply(t,
                        &(struct store_change){.kind = CHANGE_REPORT_UPDATE,
                                               .workspace = id,
                                               .id = i,
                                               .fields = CHANGE_HAS_PRIVACY | CHANGE_HAS_PASSWORD,
                                               .privacy = PRIVACY_PASSWORD,
                                               .hash = {hash, sizeof(hash)}},
                        NOW, &answer);
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
