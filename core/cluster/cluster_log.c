#include "config.h"

#include "core/cluster/cluster_log.h"

#ifdef HAVE_POSTGRESQL
#include "core/cluster/log_postgresql_internal.h"

struct cluster_log *cluster_log_new(const char *source, const char *name)
{
    return log_postgresql_new(source, name);
}

bool cluster_log_is_built(void)
{
    return true;
}
#else
struct cluster_log *cluster_log_new(const char *source, const char *name)
{
    (void)source;
    (void)name;
    return NULL;
}

bool cluster_log_is_built(void)
{
    return false;
}
#endif
