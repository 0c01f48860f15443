/* What goes wrong with nodes beside their ends: relays, disks. */
#include "t/kit/nodes.h"

#include <sys/resource.h>
#include <sys/stat.h>

enum { PROCESSES_MAX = 64 };

/* ---- relays ---- */

/*
 * A node listens where others are told to connect. The database tells them another address: a
 * trigger puts that of the proxy into assay_node.
 */
static const char make_table[] =
    "CREATE TABLE relay_proxy (address text PRIMARY KEY, proxy text NOT NULL);"
    "GRANT SELECT ON relay_proxy TO assay";
static const char add_proxy[] = "INSERT INTO relay_proxy VALUES ('127.0.0.1:%u', '127.0.0.1:%u')";

static const char make_trigger[] =
    "CREATE FUNCTION through_proxy() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN"
    " NEW.address := coalesce((SELECT p.proxy FROM relay_proxy p WHERE p.address = NEW.address),"
    " NEW.address); RETURN NEW; END$$;"
    "CREATE TRIGGER through_proxy BEFORE INSERT OR UPDATE ON assay_node"
    " FOR EACH ROW EXECUTE FUNCTION through_proxy()";

void nodes_add_relay(struct nodes *n, unsigned i)
{
    struct node *node = &n->node[i];
    node->relay = fault_proxy_new(node->port);
    if (i == 0)
        free(postgres_query(n->log, make_table));
    free(postgres_query(n->log, add_proxy, node->port, fault_proxy_port(node->relay)));
}

void nodes_use_relays(const struct nodes *n)
{
    free(postgres_query(n->log, make_trigger));
}

/* ---- disks ---- */

/* The master first: processes that it starts have its limit. */
static void limit_files(const struct server *s, rlim_t bytes)
{
    pid_t pids[1 + PROCESSES_MAX] = {s->pid};
    size_t count = 1 + server_children(s, pids + 1, PROCESSES_MAX);
    for (size_t i = 0; i < count && s->pid > 0; i++) {
        struct rlimit limit;
        if (prlimit(pids[i], RLIMIT_FSIZE, NULL, &limit) != 0)
            continue; /* it has ended */
        limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
        prlimit(pids[i], RLIMIT_FSIZE, &limit, NULL);
    }
}

void node_fill_disk(const struct nodes *n, unsigned i)
{
    struct stat st;
    const struct server *s = n->node[i].server;
    ck_assert_int_eq(stat(text("%s/data.mdb", s->data), &st), 0);
    limit_files(s, (rlim_t)st.st_size);
}

void node_free_disk(const struct nodes *n, unsigned i)
{
    limit_files(n->node[i].server, RLIM_INFINITY);
}
