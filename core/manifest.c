#include "manifest.h"

#include "channel.h"
#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MANIFEST_VERSION
#define MANIFEST_VERSION 1
#endif

/* ---- the elder's ---- */

static void close_if(int fd)
{
    if (fd >= 0)
        close(fd);
}

static void write_listener(FILE *out, const struct conf *conf, const struct listener *l)
{
    fprintf(out, "listener %d %d %d %zu ", l->internal, l->shared, l->bound, l->heard);
    for (size_t i = 0; i < l->count; i++)
        fprintf(out, "%s%d", i == 0 ? "" : ",", l->fds[i]);
    fprintf(out, " %s\n", l->internal ? conf->internal_listen : conf->listen[l->conf_index].address); /* a path may have spaces */
}

int manifest_write(const struct master *m)
{
    const struct conf *conf = master_conf(m);
    int fd = memfd_create("assay-upgrade", MFD_CLOEXEC), copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
    if (out == NULL) {
        close_if(copy);
        close_if(fd);
        return -1;
    }
    fprintf(out, "upgrade %d %d\ngeneration %u\n", MANIFEST_VERSION, CHANNEL_VERSION, m->generation->number);
    fprintf(out, "data_dir %s\nrun_dir %s\n", conf->data_dir, conf->run_dir);
    fprintf(out, "locks %d %d\nwriter %d\nslots %u %u\n", m->data_lock, m->run_lock, m->writer_fd, m->slots, m->steered);
    for (size_t i = 0; i < m->listeners_count; i++)
        write_listener(out, conf, &m->listeners[i]);
    bool whole = fclose(out) == 0;
    lseek(fd, 0, SEEK_SET);
    if (whole)
        return fd;
    close(fd);
    return -1;
}

/* ---- the heir's ---- */

bool manifest_fd(int fd)
{
    return fd > 2 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

static bool read_fds(char *text, struct listen_given *g)
{
    for (char *at = strtok(text, ","); at != NULL; at = strtok(NULL, ",")) {
        int *fds = realloc(g->fds, (g->count + 1) * sizeof(*fds));
        if (fds == NULL)
            return false;
        g->fds = fds;
        g->fds[g->count] = atoi(at);
        if (!manifest_fd(g->fds[g->count]))
            return false;
        g->count++;
    }
    return g->count > 0 && g->heard <= g->count;
}

static bool read_listener(struct master *m, const char *line)
{
    struct listen_given *given = realloc(m->elder.given, (m->elder.given_count + 1) * sizeof(*given));
    int internal, shared, bound, at = 0;
    if (given == NULL)
        return false;
    m->elder.given = given;
    struct listen_given *g = &given[m->elder.given_count++];
    *g = (struct listen_given){0};
    if (sscanf(line, "%d %d %d %zu %n", &internal, &shared, &bound, &g->heard, &at) != 4 || at == 0)
        return false;
    g->internal = internal != 0;
    g->shared = shared != 0;
    g->bound = bound != 0;
    char *fds = strdup(line + at), *address = fds == NULL ? NULL : strchr(fds, ' ');
    bool ok = address != NULL && strlen(address + 1) < sizeof(g->address);
    if (ok) {
        *address++ = '\0';
        strcpy(g->address, address);
        ok = read_fds(fds, g);
    }
    free(fds);
    return ok;
}

int manifest_refuse(const char *why)
{
    log_error("upgrade refused: %s", why);
    return -1;
}

/* 0, or -1 with the reason logged; what is not known here was added later, and can be done without */
static int read_line(struct master *m, char *line)
{
    const struct conf *conf = master_conf(m);
    char *rest = strchr(line, ' ');
    int a = -1, b = -1;
    if (rest == NULL)
        return manifest_refuse("the manifest is not whole");
    *rest++ = '\0';
    bool ok = true;
    if (strcmp(line, "upgrade") == 0 && (sscanf(rest, "%d %d", &a, &b) != 2 || a != MANIFEST_VERSION || b != CHANNEL_VERSION))
        return manifest_refuse("these two versions cannot work side by side: restart instead");
    if ((strcmp(line, "data_dir") == 0 && strcmp(rest, conf->data_dir) != 0) ||
        (strcmp(line, "run_dir") == 0 && strcmp(rest, conf->run_dir) != 0))
        return manifest_refuse("data_dir and run_dir must stay as they are: restart to change them");
    if (strcmp(line, "generation") == 0)
        m->elder.generation = (unsigned)atoi(rest);
    else if (strcmp(line, "slots") == 0)
        ok = sscanf(rest, "%u %u", &m->elder.slots, &m->elder.steered) == 2;
    else if (strcmp(line, "locks") == 0)
        ok = sscanf(rest, "%d %d", &m->data_lock, &m->run_lock) == 2 && manifest_fd(m->data_lock) && manifest_fd(m->run_lock);
    else if (strcmp(line, "writer") == 0)
        ok = sscanf(rest, "%d", &m->writer_fd) == 1 && manifest_fd(m->writer_fd);
    else if (strcmp(line, "listener") == 0)
        ok = read_listener(m, rest);
    return ok ? 0 : manifest_refuse("what the manifest names is not there");
}

int manifest_read(struct master *m, int fd)
{
    char line[16384];
    FILE *in = fdopen(fd, "r");
    if (in == NULL)
        return manifest_refuse(strerror(errno));
    int result = 0;
    while (result == 0 && fgets(line, sizeof(line), in) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        result = read_line(m, line);
    }
    fclose(in);
    if (result == 0 && (m->data_lock < 0 || m->run_lock < 0 || m->writer_fd < 0 || m->elder.slots == 0))
        result = manifest_refuse("the manifest is not whole");
    return result;
}
