#include "core/master/inherited_state.h"

#include "core/ipc/channel.h"
#include "core/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef INHERITED_STATE_VERSION
#define INHERITED_STATE_VERSION 2
#endif

/* ---- the old master ---- */

static void close_if(int fd)
{
    if (fd >= 0)
        close(fd);
}

/* its index among the passed descriptors; there is room */
static size_t pass(struct passed_fds *out, int fd)
{
    out->fds[out->count] = fd;
    return out->count++;
}

static void write_listener(FILE *out, const struct conf *conf, const struct listener *l,
                           struct passed_fds *passed)
{
    fprintf(out, "listener %d %d %d %zu ", l->internal, l->shared, l->bound, l->listening);
    for (size_t i = 0; i < l->count; i++)
        fprintf(out, "%s%zu", i == 0 ? "" : ",", pass(passed, l->fds[i]));
    /* last, since a path may have spaces */
    fprintf(out, " %s\n",
            l->internal ? conf->internal_listen : conf->listen[l->conf_index].address);
}

static bool make_room(const struct master *m, struct passed_fds *out)
{
    size_t count = 4; /* the text, two locks, the writer's socket */
    for (size_t i = 0; i < m->listeners.count; i++)
        count += m->listeners.list[i].count;
    *out = (struct passed_fds){.fds = calloc(count, sizeof(*out->fds))};
    return out->fds != NULL;
}

int inherited_state_write(const struct master *m, struct passed_fds *passed)
{
    const struct conf *conf = master_conf(m);
    if (!make_room(m, passed))
        return -1;
    int fd = memfd_create("assay-upgrade", MFD_CLOEXEC),
        copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
    pass(passed, fd);
    if (out == NULL) {
        close_if(copy);
        inherited_state_drop(passed);
        return -1;
    }
    fprintf(out, "upgrade %d %d\ngeneration %u\n", INHERITED_STATE_VERSION, CHANNEL_VERSION,
            m->generations.newest->number);
    fprintf(out, "data_dir %s\nrun_dir %s\n", conf->data_dir, conf->run_dir);
    fprintf(out, "locks %zu", pass(passed, m->directories.data_lock));
    fprintf(out, " %zu\n", pass(passed, m->directories.run_lock));
    fprintf(out, "writer %zu\nslots %u %u\n", pass(passed, m->writer_fd), m->reuseport.slots,
            m->reuseport.steered);
    for (size_t i = 0; i < m->listeners.count; i++)
        write_listener(out, conf, &m->listeners.list[i], passed);
    bool whole = fclose(out) == 0;
    lseek(fd, 0, SEEK_SET);
    if (whole)
        return 0;
    inherited_state_drop(passed);
    return -1;
}

void inherited_state_drop(struct passed_fds *passed)
{
    if (passed->count > 0)
        close_if(passed->fds[0]);
    free(passed->fds);
    *passed = (struct passed_fds){0};
}

/* ---- the new master ---- */

/* the descriptor with this index; false: there is none, or it was taken before */
static bool take(struct passed_fds *passed, int at, int *fd)
{
    if (at < 0 || (size_t)at >= passed->count || passed->fds[at] < 0)
        return false;
    *fd = passed->fds[at];
    passed->fds[at] = -1;
    return true;
}

static bool read_fds(struct passed_fds *passed, char *text, struct inherited_listener *g)
{
    for (char *at = strtok(text, ","); at != NULL; at = strtok(NULL, ",")) {
        int *fds = realloc(g->fds, (g->count + 1) * sizeof(*fds));
        if (fds == NULL)
            return false;
        g->fds = fds;
        if (!take(passed, atoi(at), &g->fds[g->count]))
            return false;
        g->count++;
    }
    return g->count > 0 && g->listening <= g->count;
}

static bool read_listener(struct master *m, struct passed_fds *passed, const char *line)
{
    struct inherited_listener *given =
        realloc(m->upgrade.old_master.listeners,
                (m->upgrade.old_master.listeners_count + 1) * sizeof(*given));
    int internal, shared, bound, at = 0;
    if (given == NULL)
        return false;
    m->upgrade.old_master.listeners = given;
    struct inherited_listener *g = &given[m->upgrade.old_master.listeners_count++];
    *g = (struct inherited_listener){0};
    if (sscanf(line, "%d %d %d %zu %n", &internal, &shared, &bound, &g->listening, &at) != 4 ||
        at == 0)
        return false;
    g->internal = internal != 0;
    g->shared = shared != 0;
    g->bound = bound != 0;
    char *fds = strdup(line + at), *address = fds == NULL ? NULL : strchr(fds, ' ');
    bool ok = address != NULL && strlen(address + 1) < sizeof(g->address);
    if (ok) {
        *address++ = '\0';
        strcpy(g->address, address);
        ok = read_fds(passed, fds, g);
    }
    free(fds);
    return ok;
}

int inherited_state_refuse(const char *why)
{
    log_error("upgrade refused: %s", why);
    return -1;
}

/* an unknown line is of a later version that also works without it */
static int read_line(struct master *m, struct passed_fds *passed, char *line)
{
    const struct conf *conf = master_conf(m);
    char *rest = strchr(line, ' ');
    int a = -1, b = -1;
    if (rest == NULL)
        return inherited_state_refuse("the inherited state is incomplete");
    *rest++ = '\0';
    bool ok = true;
    if (strcmp(line, "upgrade") == 0 && (sscanf(rest, "%d %d", &a, &b) != 2 ||
                                         a != INHERITED_STATE_VERSION || b != CHANNEL_VERSION))
        return inherited_state_refuse(
            "these two versions cannot work side by side: restart instead");
    if ((strcmp(line, "data_dir") == 0 && strcmp(rest, conf->data_dir) != 0) ||
        (strcmp(line, "run_dir") == 0 && strcmp(rest, conf->run_dir) != 0))
        return inherited_state_refuse(
            "data_dir and run_dir must stay as they are: restart to change them");
    if (strcmp(line, "generation") == 0)
        m->upgrade.old_master.generation = (unsigned)atoi(rest);
    else if (strcmp(line, "slots") == 0)
        ok = sscanf(rest, "%u %u", &m->upgrade.old_master.slots, &m->upgrade.old_master.steered) ==
             2;
    else if (strcmp(line, "locks") == 0)
        ok = sscanf(rest, "%d %d", &a, &b) == 2 && take(passed, a, &m->directories.data_lock) &&
             take(passed, b, &m->directories.run_lock);
    else if (strcmp(line, "writer") == 0)
        ok = sscanf(rest, "%d", &a) == 1 && take(passed, a, &m->writer_fd);
    else if (strcmp(line, "listener") == 0)
        ok = read_listener(m, passed, rest);
    return ok ? 0
              : inherited_state_refuse(
                    "the inherited state names a descriptor that was not passed");
}

int inherited_state_read(struct master *m, struct passed_fds *passed)
{
    char line[16384];
    int fd = -1;
    FILE *in = take(passed, 0, &fd) ? fdopen(fd, "r") : NULL;
    int result = in == NULL ? inherited_state_refuse("the inherited state cannot be read") : 0;
    while (result == 0 && fgets(line, sizeof(line), in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        result = read_line(m, passed, line);
    }
    if (in != NULL)
        fclose(in);
    else
        close_if(fd);
    for (size_t i = 0; i < passed->count; i++)
        close_if(passed->fds[i]); /* not named in the text */
    free(passed->fds);
    *passed = (struct passed_fds){0};
    if (result == 0 && (m->directories.data_lock < 0 || m->directories.run_lock < 0 ||
                        m->writer_fd < 0 || m->upgrade.old_master.slots == 0))
        result = inherited_state_refuse("the inherited state is incomplete");
    return result;
}
