#include "core/writer/startup.h"

#include "core/process/bus_error.h"
#include "core/base/log.h"
#include "store/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

struct store *startup_store(struct process *p)
{
    char why[512];
    struct store *store;
    struct store_options options = {.dir = p->conf->data_dir,
                                    .map_size = p->conf->store_map_size,
                                    .mapped_bytes = p->conf->store_index_map_size,
                                    .max_readers = CONF_STORE_READERS,
                                    .mode = STORE_WRITE,
                                    .must_exist = p->store_known,
                                    .rates = true,
                                    .good = p->conf->reports_good,
                                    .decent = p->conf->reports_decent};
    if (store_open(&options, &store, why, sizeof(why)) != STORE_OK) {
        log_error("data_dir: %s", why);
        exit(EXIT_START);
    }
    store_restore_clear(p->conf->data_dir); /* the server holds the lock: no restore runs */
    bus_error_watch(store);
    return store;
}

void startup_lock(struct process *p)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/writer.lock", p->conf->data_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), got = -1;
    while (fd >= 0 && (got = flock(fd, LOCK_EX | LOCK_NB)) != 0 && errno == EWOULDBLOCK) {
        if (process_stopping)
            exit(EXIT_STOPPED);
        process_heartbeat(p);
        poll(NULL, 0, 2);
    }
    if (got != 0) {
        log_error("data_dir %s cannot be locked for its writer: %s", p->conf->data_dir,
                  strerror(errno));
        exit(EXIT_START);
    }
}
