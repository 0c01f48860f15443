#include "t/cluster/log_node.h"

#include "t/kit/wait.h"

#include <check.h>
#include <unistd.h>

struct log_node log_node(int number, char *source)
{
    struct log_node n = {.id = {(uint8_t)number}, .source = source};
    n.name = text("node%d", number);
    n.log = cluster_log_new(source, n.name);
    ck_assert_ptr_nonnull(n.log);
    n.engine = n.log->engine;
    return n;
}

struct log_node log_node_at(int number, const struct postgres *server)
{
    return log_node(number, postgres_conninfo(server->port, 0));
}

void log_node_free(struct log_node *n)
{
    n->engine->free(n->log);
    free(n->source);
    free(n->name);
}

enum cluster_log_status log_made(struct log_node *n, uint8_t first, bool replace)
{
    const struct cluster_log_head head = {.log = {first}};
    return n->engine->make(n->log, &head, replace);
}

void log_make(const struct postgres *server)
{
    struct log_node n = log_node_at(99, server);
    ck_assert_msg(log_made(&n, 1, false) == CLUSTER_LOG_OK, "%s", n.engine->why(n.log));
    log_node_free(&n);
}

enum cluster_log_status log_lead(struct log_node *n, unsigned lease_ms)
{
    struct cluster_log_head head;
    enum cluster_log_status status = n->engine->lead(n->log, n->id, 0, lease_ms, &head);
    if (status != CLUSTER_LOG_OK)
        return status;
    n->head = head;
    n->epoch = head.epoch;
    return status;
}

void log_must_lead(struct log_node *n)
{
    ck_assert_msg(log_lead(n, CLUSTER_LOG_LEASE_MS) == CLUSTER_LOG_OK, "%s",
                  n->engine->why(n->log));
    ck_assert_mem_eq(n->head.leader, n->id, NODE_BYTES);
}

enum cluster_log_status log_renew(struct log_node *n, unsigned lease_ms)
{
    struct cluster_log_head head;
    enum cluster_log_status status = n->engine->lead(n->log, n->id, n->epoch, lease_ms, &head);
    if (status == CLUSTER_LOG_OK)
        n->head = head;
    return status;
}

struct cluster_log_entry log_entry(const struct log_node *n, struct str rows)
{
    struct cluster_log_entry e = {.sequence = n->head.sequence + 1,
                                  .epoch = n->epoch,
                                  .at_ms = n->head.at_ms + 1,
                                  .format = store_rows_formats.newest,
                                  .rows = rows};
    memcpy(e.before, n->head.chain, sizeof(e.before));
    ck_assert(chain_next(e.before, e.sequence, e.epoch, e.format, e.rows, e.chain));
    return e;
}

static void move_head(struct log_node *n, const struct cluster_log_entry *e)
{
    n->head.sequence = e->sequence;
    n->head.at_ms = e->at_ms;
    memcpy(n->head.chain, e->chain, sizeof(e->chain));
}

enum cluster_log_status log_append(struct log_node *n, const struct cluster_log_entry *e)
{
    enum cluster_log_status status = n->engine->append(n->log, e);
    if (status == CLUSTER_LOG_OK)
        move_head(n, e);
    return status;
}

void log_must_append(struct log_node *n, const char *rows)
{
    const struct cluster_log_entry e = log_entry(n, (struct str){rows, strlen(rows)});
    ck_assert_msg(log_append(n, &e) == CLUSTER_LOG_OK, "%s", n->engine->why(n->log));
}

struct settling {
    struct log_node *node;
    const struct cluster_log_entry *entry;
};

static bool is_settled(void *arg)
{
    struct settling *s = arg;
    struct log_node *n = s->node;
    const struct store_position before = {.sequence = n->head.sequence};
    enum cluster_log_status status = log_renew(n, CLUSTER_LOG_LEASE_MS);
    ck_assert_int_ne(status, CLUSTER_LOG_LED);
    if (status != CLUSTER_LOG_OK)
        return false;
    if (n->head.sequence == before.sequence)
        return log_append(n, s->entry) == CLUSTER_LOG_OK;
    ck_assert_uint_eq(n->head.sequence, s->entry->sequence);
    ck_assert_mem_eq(n->head.chain, s->entry->chain, STORE_CHAIN_BYTES);
    return true;
}

void log_settle(struct log_node *n, const struct cluster_log_entry *e)
{
    struct settling s = {n, e};
    ck_assert_msg(wait_until(is_settled, &s, WITHIN_MS), "%s", n->engine->why(n->log));
}

struct reading {
    struct store_position position;
    uint64_t epoch;
};

static bool check_entry(void *arg, const struct cluster_log_entry *e)
{
    char why[POSITION_WHY];
    struct reading *r = arg;
    ck_assert_msg(position_continues(&r->position, e, why), "%s", why);
    ck_assert_uint_ge(e->epoch, r->epoch);
    r->epoch = e->epoch;
    r->position.sequence = e->sequence;
    memcpy(r->position.chain, e->chain, sizeof(e->chain));
    return true;
}

uint64_t log_check(const struct postgres *server)
{
    struct reading r = {0};
    struct cluster_log_head head;
    struct log_node n = log_node_at(98, server);
    enum cluster_log_status status = CLUSTER_LOG_OK;
    while (status == CLUSTER_LOG_OK)
        status = n.engine->read(n.log, r.position.sequence, check_entry, &r);
    ck_assert_int_eq(status, CLUSTER_LOG_NONE);
    ck_assert_int_eq(n.engine->position(n.log, NULL, &head), CLUSTER_LOG_OK);
    ck_assert(position_is(&head, &r.position));
    log_node_free(&n);
    return head.sequence;
}

void log_expect_why(const struct log_node *n, const char *part)
{
    const char *why = n->engine->why(n->log);
    ck_assert_msg(strstr(why, part) != NULL, "\"%s\" is not in \"%s\"", part, why);
}

struct cluster_log_head log_position(struct log_node *n)
{
    struct cluster_log_head head;
    ck_assert_msg(n->engine->position(n->log, NULL, &head) == CLUSTER_LOG_OK, "%s",
                  n->engine->why(n->log));
    return head;
}

void log_expect_sql(const struct postgres *server, const char *query, const char *want)
{
    char *value = postgres_query(server, "%s", query);
    ck_assert_msg(value != NULL && !strcmp(value, want), "%s, not %s: %s", value, want, query);
    free(value);
}
