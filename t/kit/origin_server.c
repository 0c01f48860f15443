#include "t/kit/origin_server.h"

struct origin *origin;
struct server *server;

void shared_setup(void)
{
    origin = origin_usual();
    server = server_shared(&(struct server_options){.origin = origin});
}

void shared_teardown(void)
{
    server_shared_stop(server);
    origin_stop(origin);
}

void own_setup(void)
{
    origin = origin_usual();
    server = server_new(&(struct server_options){.origin = origin});
}

void own_teardown(void)
{
    server_discard(server);
    origin_stop(origin);
}
