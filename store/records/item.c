#include "store/records/item.h"

#include "store/engine/schema.h"

void item_key(struct key *k, uint64_t collection, uint64_t wp_id)
{
    key_id(k, SPACE_ITEM, collection);
    key_u64(k, wp_id);
}

bool schema_read_item(MDB_val value, struct item_record *out)
{
    if (value.mv_size != sizeof(*out))
        return false;
    memcpy(out, value.mv_data, sizeof(*out));
    return true;
}
