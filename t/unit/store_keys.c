/* Keys in the store: every result of their changes. */
#include "t/kit/store_fixtures.h"

/* ---- keys ---- */

START_TEST(a_key_is_found_by_its_hash_with_its_fields)
{
    w = kit_workspace(&k, "acme");
    uint64_t id = kit_key(&k, w, 9);
    struct store_key key;
    ck_status(kit_find_key(k.s, 9, &key), STORE_OK);
    ck_assert_uint_eq(key.id, id);
    ck_assert_uint_eq(key.workspace, w);
    ck_assert_uint_eq(key.scopes, SCOPE_REPORTS_READ);
    ck_assert_int_eq(key.created_at, NOW);
    ck_assert_int_eq(key.revoked_at | key.expires_at | key.last_used_at, 0);
    ck_assert(str_eq(key.name, STR("a key")));
    ck_assert_uint_eq(key.hash[31], 9);
    ck_status(kit_find_key(k.s, 8, NULL), STORE_NOT_FOUND);
}
END_TEST

START_TEST(a_key_is_refused_without_workspace_or_with_a_used_or_short_hash)
{
    w = kit_workspace(&k, "acme");
    char hash[32];
    memset(hash, 1, sizeof(hash));
    kit_key(&k, w, 1);
    struct store_change c = {.kind = CHANGE_KEY_CREATE, .workspace = w, .hash = {hash, 32}};
    ck_status(kit_status(&k, &c), STORE_EXISTS);
    c.hash.n = 31;
    ck_status(kit_status(&k, &c), STORE_INVALID);
    c.hash.n = 32;
    hash[0] = 2;
    c.workspace = w + 1;
    ck_status(kit_status(&k, &c), STORE_NOT_FOUND);
}
END_TEST

START_TEST(revoking_a_key_emits_one_event_and_needs_its_workspace)
{
    size_t count;
    w = kit_workspace(&k, "acme");
    uint64_t other = kit_workspace(&k, "other");
    uint64_t id = kit_key(&k, w, 1);
    struct store_key key;
    ck_status(kit_find_key(k.s, 1, &key), STORE_OK);
    ck_assert_int_eq(key.revoked_at, 0);
    ck_status(change((struct store_change){.kind = CHANGE_KEY_REVOKE, .workspace = other, .id = id})
                  .status,
              STORE_NOT_FOUND);
    ck_status(change((struct store_change){.kind = CHANGE_KEY_REVOKE, .workspace = w, .id = id + 1})
                  .status,
              STORE_NOT_FOUND);
    k.now += 5;
    ck_status(change((struct store_change){.kind = CHANGE_KEY_REVOKE, .id = id}).status, STORE_OK);
    const struct store_event *e = store_events(k.s, &count);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(e->kind, EVENT_KEY_REVOKED);
    ck_assert_uint_eq(e->id, id);
    k.now += 5;
    ck_status(change((struct store_change){.kind = CHANGE_KEY_REVOKE, .id = id}).status, STORE_OK);
    store_events(k.s, &count);
    ck_assert_uint_eq(count, 0);
    ck_status(kit_find_key(k.s, 1, &key), STORE_OK);
    ck_assert_int_eq(key.revoked_at, NOW + 5);
}
END_TEST

START_TEST(a_rotated_key_lives_until_the_overlap_ends)
{
    w = kit_workspace(&k, "acme");
    char hash[32];
    memset(hash, 1, sizeof(hash));
    struct store_change c = {.kind = CHANGE_KEY_CREATE,
                             .workspace = w,
                             .name = STR("ci"),
                             .scopes = 3,
                             .hash = {hash, 32},
                             .expires_at = NOW + 100 * HOUR};
    uint64_t id = kit_apply(&k, &c).id;
    k.now += HOUR;
    memset(hash, 2, sizeof(hash));
    c = (struct store_change){
        .kind = CHANGE_KEY_ROTATE, .id = id, .hash = {hash, 32}, .expires_at = NOW + 2 * HOUR};
    struct store_answer a = kit_apply(&k, &c);
    struct store_key old, new;
    ck_status(a.status, STORE_OK);
    ck_assert_uint_ne(a.id, id);
    ck_status(kit_find_key(k.s, 1, &old), STORE_OK);
    ck_status(kit_find_key(k.s, 2, &new), STORE_OK);
    ck_assert_int_eq(old.expires_at, NOW + 2 * HOUR);
    ck_assert_int_eq(new.expires_at, NOW + 101 * HOUR);
    ck_assert_uint_eq(new.scopes, 3);
    ck_assert_uint_eq(new.workspace, w);
    ck_assert(str_eq(new.name, STR("ci")));
    ck_status(kit_status(&k, &c), STORE_EXISTS);
    memset(hash, 3, sizeof(hash));
    change((struct store_change){.kind = CHANGE_KEY_REVOKE, .id = id});
    ck_status(kit_status(&k, &c), STORE_NOT_FOUND);
    kit_check_clean(k.s);
}
END_TEST

START_TEST(a_rotation_never_extends_the_old_key)
{
    w = kit_workspace(&k, "acme");
    char hash[32];
    struct store_key old;
    memset(hash, 1, sizeof(hash));
    struct store_change c = {
        .kind = CHANGE_KEY_CREATE, .workspace = w, .hash = {hash, 32}, .expires_at = NOW + HOUR};
    uint64_t id = kit_apply(&k, &c).id;
    memset(hash, 2, sizeof(hash));
    c = (struct store_change){
        .kind = CHANGE_KEY_ROTATE, .id = id, .hash = {hash, 32}, .expires_at = NOW + 24 * HOUR};
    ck_status(kit_status(&k, &c), STORE_OK);
    ck_status(kit_find_key(k.s, 1, &old), STORE_OK);
    ck_assert_int_eq(old.expires_at, NOW + HOUR);
}
END_TEST

START_TEST(touching_a_key_changes_neither_events_nor_version)
{
    w = kit_workspace(&k, "acme");
    uint64_t id = kit_key(&k, w, 1);
    struct store_key key;
    struct store_workspace before, after;
    size_t count;
    kit_get_workspace(k.s, w, &before);
    k.now += 77;
    ck_status(change((struct store_change){.kind = CHANGE_KEY_TOUCH, .id = id}).status, STORE_OK);
    store_events(k.s, &count);
    ck_assert_uint_eq(count, 0);
    kit_get_workspace(k.s, w, &after);
    ck_assert_uint_eq(before.version, after.version);
    ck_status(kit_find_key(k.s, 1, &key), STORE_OK);
    ck_assert_int_eq(key.last_used_at, NOW + 77);
    ck_status(change((struct store_change){.kind = CHANGE_KEY_TOUCH, .id = id + 1}).status,
              STORE_NOT_FOUND);
}
END_TEST

struct each {
    int records, ends;
    uint64_t last;
};

static void each_key(void *arg, enum store_status status, const struct store_key *key)
{
    struct each *n = arg;
    if (key == NULL) {
        ck_status(status, STORE_NOT_FOUND);
        n->ends++;
        return;
    }
    ck_assert_uint_gt(key->id, n->last);
    n->last = key->id;
    n->records++;
}

START_TEST(each_key_of_one_workspace_or_of_all_by_id)
{
    uint64_t a = kit_workspace(&k, "a"), b = kit_workspace(&k, "b");
    for (uint8_t i = 1; i <= 40; i++)
        kit_key(&k, i % 2 ? a : b, i);
    struct each n = {0}, all = {0}, none = {0};
    store_key_each(k.s, a, each_key, &n);
    ck_assert_int_eq(n.records, 20);
    store_key_each(k.s, 0, each_key, &all);
    ck_assert_int_eq(all.records, 40);
    store_key_each(k.s, b + 1, each_key, &none);
    ck_assert_int_eq(none.records, 0);
    ck_assert_int_eq(n.ends + all.ends + none.ends, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("store_keys");
    TCase *tc = tcase_create("records");
    tcase_add_checked_fixture(tc, store_setup, store_teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, a_key_is_found_by_its_hash_with_its_fields);
    tcase_add_test(tc, a_key_is_refused_without_workspace_or_with_a_used_or_short_hash);
    tcase_add_test(tc, revoking_a_key_emits_one_event_and_needs_its_workspace);
    tcase_add_test(tc, a_rotated_key_lives_until_the_overlap_ends);
    tcase_add_test(tc, a_rotation_never_extends_the_old_key);
    tcase_add_test(tc, touching_a_key_changes_neither_events_nor_version);
    tcase_add_test(tc, each_key_of_one_workspace_or_of_all_by_id);
    suite_add_tcase(suite, tc);
    return kit_run(suite);
}
