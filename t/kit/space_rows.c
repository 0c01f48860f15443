#include "t/kit/space_rows.h"

#include "store/engine/cursor.h"
#include "store/engine/derived.h"
#include "store/engine/snapshot.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

bool space_follows_log(enum space space)
{
    return derived_kinds[space] == SPACE_IS_RECORD || derived_kinds[space] == SPACE_IS_DERIVED;
}

void space_rows(struct store *s, enum space space, struct buf *out)
{
    MDB_txn *txn;
    struct cursor w = {0};
    enum store_status status = store_snapshot(s, &txn);
    if (status == STORE_OK)
        status = cursor_begin(s, txn, &w, space);
    for (; status == STORE_OK; status = cursor_next(&w)) {
        buf_add(out, &w.k.mv_size, sizeof(w.k.mv_size));
        buf_add(out, w.k.mv_data, w.k.mv_size);
        buf_add(out, &w.v.mv_size, sizeof(w.v.mv_size));
        buf_add(out, w.v.mv_data, w.v.mv_size);
    }
    cursor_end(&w);
    store_read_end(s);
    ck_assert_msg(status == STORE_NOT_FOUND, "%s", store_status_text(status));
    ck_assert(buf_ok(out));
}

char *space_name(enum space space)
{
    char *name = NULL;
    ck_assert_int_gt(
        asprintf(&name, "%s %c", schema_db_names[schema_space_db[space]], schema_space_tag[space]),
        0);
    return name;
}
