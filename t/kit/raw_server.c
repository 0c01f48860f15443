#include "t/kit/raw_server.h"

struct origin *origin;
struct server *server;

void raw_setup(void)
{
    origin = origin_usual();
    server = server_shared(&(struct server_options){.origin = origin, .yaml = SHORT_TIMEOUTS});
}

void raw_teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}
