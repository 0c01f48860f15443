#include "core/limits/lease.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096
#define SWEPT_IN_A_TURN 16
#define CLOCK_STEPS_MS 2 /* both clocks are read in whole milliseconds */

struct leases {
    struct lease *buckets[BUCKETS];
    size_t count, swept;
};

struct leases *leases_new(void)
{
    return calloc(1, sizeof(struct leases));
}

void leases_free(struct leases *leases)
{
    for (size_t i = 0; leases != NULL && i < BUCKETS; i++)
        while (leases->buckets[i] != NULL) {
            struct lease *lease = leases->buckets[i];
            leases->buckets[i] = lease->next;
            free(lease);
        }
    free(leases);
}

/* The key ends with a hash. */
static size_t bucket_of(const char *key)
{
    size_t n = strlen(key);
    return strtoul(key + (n < 3 ? 0 : n - 3), NULL, 16) % BUCKETS;
}

struct lease *leases_get(struct leases *leases, const char *key)
{
    struct lease **bucket = &leases->buckets[bucket_of(key)], *lease = *bucket;
    while (lease != NULL && strcmp(lease->key, key) != 0)
        lease = lease->next;
    if (lease != NULL || leases->count == LEASES_MAX || (lease = calloc(1, sizeof(*lease))) == NULL)
        return lease;
    strncpy(lease->key, key, sizeof(lease->key) - 1);
    lease->next = *bucket;
    *bucket = lease;
    leases->count++;
    return lease;
}

static bool is_over(const struct lease *lease, uint64_t now_ms)
{
    return !lease->asking && lease->first == NULL && lease->until_ms <= now_ms;
}

void leases_sweep(struct leases *leases, uint64_t now_ms)
{
    for (unsigned i = 0; i < SWEPT_IN_A_TURN && leases->count > 0; i++) {
        struct lease **at = &leases->buckets[leases->swept++ % BUCKETS];
        while (*at != NULL) {
            struct lease *lease = *at;
            if (!is_over(lease, now_ms)) {
                at = &lease->next;
                continue;
            }
            *at = lease->next;
            free(lease);
            leases->count--;
        }
    }
}

void lease_granted(struct lease *lease, const struct decision_answer *answer)
{
    int64_t ends_s = INT64_MAX;
    for (size_t i = 0; i < lease->count; i++)
        ends_s = answer->ends[i] < ends_s ? answer->ends[i] : ends_s;
    int64_t lasts_ms = ends_s * 1000 - answer->now_ms;
    lasts_ms -= lasts_ms / 1000 + CLOCK_STEPS_MS;
    lease->until_ms = lease->asked_ms + (uint64_t)(lasts_ms < 0 ? 0 : lasts_ms);
    lease->left = answer->granted;
    lease->ahead_ms = answer->now_ms - (int64_t)lease->asked_ms;
    ratelimit_report(lease->windows, answer->used, answer->ends, lease->count, answer->granted,
                     &lease->state);
}

bool lease_take(struct lease *lease, uint64_t now_ms)
{
    if (lease->asking || lease->left == 0 || lease->until_ms <= now_ms)
        return false;
    lease->left--;
    return true;
}
