#include "writer.h"

#include "log.h"
#include "api/render.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#define BROUGHT_UP_EVERY_MS 5000

static char stage_now[4300]; /* what is under way before the store can be used */

static void stage_begins(void *arg, const char *what)
{
    (void)arg;
    snprintf(stage_now, sizeof(stage_now), "%s", what);
    log_info("%s", what);
}

/* What an older format lacks is made before anybody can be served: minutes for millions, so it is seen in `assay stats` and in the log. */
static bool brought_up(void *arg, uint64_t done, uint64_t total)
{
    static uint64_t said_ms;
    struct process *p = arg;
    uint64_t now = clock_mono_ms();
    process_beat(p);
    score_set(p->score->requests, done);
    score_set(p->score->pending, total - done);
    if (now >= said_ms + BROUGHT_UP_EVERY_MS)
        log_info("%s: %llu of about %llu", stage_now, (unsigned long long)done, (unsigned long long)total);
    said_ms = now >= said_ms + BROUGHT_UP_EVERY_MS ? now : said_ms;
    return !process_stopping;
}

struct store *opening_store(struct process *p)
{
    char why[512];
    struct store *store;
    struct store_options options = {.dir = p->conf->data_dir,
                                    .map_size = p->conf->store_map_size,
                                    .max_readers = CONF_STORE_READERS,
                                    .mode = STORE_WRITE,
                                    .must_exist = p->store_known,
                                    .renderer = &render_records,
                                    .rates = true,
                                    .good = p->conf->reports_good,
                                    .decent = p->conf->reports_decent,
                                    .without_copy = !p->conf->store_copy_before_upgrade,
                                    .now_ms = clock_wall_ms(),
                                    .progress = brought_up,
                                    .stage = stage_begins,
                                    .progress_arg = p};
    if (store_open(&options, &store, why, sizeof(why)) != STORE_OK) {
        if (process_stopping)
            exit(EXIT_STOPPED);
        log_error("data_dir: %s", why);
        exit(EXIT_START);
    }
    score_set(p->score->requests, 0);
    score_set(p->score->pending, 0);
    return store;
}

void opening_wait(struct process *p)
{
    char path[4200];
    snprintf(path, sizeof(path), "%s/writer.lock", p->conf->data_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600), got = -1;
    while (fd >= 0 && (got = flock(fd, LOCK_EX | LOCK_NB)) != 0 && errno == EWOULDBLOCK) {
        if (process_stopping)
            exit(EXIT_STOPPED);
        process_beat(p);
        poll(NULL, 0, 2);
    }
    if (got != 0) {
        log_error("data_dir %s cannot be locked for its writer: %s", p->conf->data_dir, strerror(errno));
        exit(EXIT_START);
    }
}
