#include "t/kit/store_fixtures.h"

struct kit k;
uint64_t w;

void store_setup(void)
{
    kit_open(&k);
}

void workspace_setup(void)
{
    kit_open(&k);
    w = kit_workspace(&k, "acme");
}

void store_teardown(void)
{
    kit_close(&k);
}

struct store_answer change(struct store_change c)
{
    return kit_apply(&k, &c);
}

struct store_report report(uint64_t id)
{
    struct store_report r;
    ck_status(kit_report(k.s, w, id, &r), STORE_OK);
    return r;
}

struct store_list_query query(unsigned sort, bool ascending)
{
    return (struct store_list_query){
        .workspace = w, .sort = sort, .ascending = ascending, .page = 1, .per_page = 100};
}
