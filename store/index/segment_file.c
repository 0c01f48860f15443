#include "store/index/segment_file_internal.h"

#include "store/engine/environment.h"
#include "store/engine/errors.h"
#include "store/engine/files.h"
#include "store/engine/free_space.h"
#include "store/index/context_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#define MAGIC "assay segment 1\n"
#define BUCKETS 256

struct segment_file_head {
    char magic[16];
    uint64_t workspace, number, bytes, data_bytes, blocks;
    uint64_t sums; /* XXH3 of the checksums */
    uint64_t head; /* XXH3 of this head up to here */
};

struct segment_maps {
    pthread_mutex_t lock;
    struct segment_file *buckets[BUCKETS];
    uint64_t bytes;
};

/* ---- names ---- */

void segment_file_path(const char *dir, uint64_t workspace, uint64_t number,
                       char out[SEGMENT_PATH_BYTES])
{
    snprintf(out, SEGMENT_PATH_BYTES, "%s/index/%016llx-%016llx.seg", dir,
             (unsigned long long)workspace, (unsigned long long)number);
}

static bool read_hex(const char *p, uint64_t *out)
{
    *out = 0;
    for (int i = 0; i < 16; i++) {
        char c = p[i];
        bool digit = c >= '0' && c <= '9';
        if (!digit && !(c >= 'a' && c <= 'f'))
            return false;
        *out = *out << 4 | (uint64_t)(digit ? c - '0' : c - 'a' + 10);
    }
    return true;
}

static bool read_name(const char *name, uint64_t *workspace, uint64_t *number)
{
    return strlen(name) == 37 && read_hex(name, workspace) && name[16] == '-' &&
           read_hex(name + 17, number) && strcmp(name + 33, ".seg") == 0;
}

int segment_file_each(const char *dir, segment_file_fn *each, void *arg)
{
    char path[SEGMENT_PATH_BYTES];
    snprintf(path, sizeof(path), "%s/index", dir);
    DIR *d = opendir(path);
    if (d == NULL)
        return errno == ENOENT ? 0 : errno;
    bool more = true;
    struct dirent *e;
    while (more && (e = readdir(d)) != NULL) {
        uint64_t workspace, number;
        if (read_name(e->d_name, &workspace, &number))
            more = each(arg, workspace, number);
    }
    closedir(d);
    return 0;
}

/* ---- maps ---- */

struct segment_maps *segment_maps_new(void)
{
    struct segment_maps *m = calloc(1, sizeof(*m));
    if (m != NULL)
        pthread_mutex_init(&m->lock, NULL);
    return m;
}

void segment_maps_free(struct segment_maps *m)
{
    if (m == NULL)
        return;
    pthread_mutex_destroy(&m->lock);
    free(m);
}

uint64_t segment_maps_bytes(struct segment_maps *m)
{
    pthread_mutex_lock(&m->lock);
    uint64_t bytes = m->bytes;
    pthread_mutex_unlock(&m->lock);
    return bytes;
}

static struct segment_file **place_of(struct segment_maps *m, uint64_t workspace, uint64_t number)
{
    struct segment_file **at = &m->buckets[number % BUCKETS];
    while (*at != NULL && ((*at)->number != number || (*at)->workspace != workspace))
        at = &(*at)->next;
    return at;
}

bool store_mapped_file(const struct store *s, const void *at, char *path, size_t size)
{
    const struct segment_maps *m = s->shared->segments;
    const uint8_t *p = at;
    for (size_t i = 0; i < BUCKETS; i++)
        for (const struct segment_file *f = m->buckets[i]; f != NULL; f = f->next) {
            if (p < f->map || p >= f->map + f->bytes)
                continue;
            char name[SEGMENT_PATH_BYTES];
            segment_file_path(s->dir, f->workspace, f->number, name);
            snprintf(path, size, "%s", name);
            return true;
        }
    return false;
}

static void file_free(struct segment_file *f)
{
    if (f->map != NULL)
        munmap((void *)(uintptr_t)f->map, f->bytes);
    free(f->verified);
    free(f);
}

static enum store_status is_damaged(struct store *s, const struct segment_file *f, const char *what)
{
    char path[SEGMENT_PATH_BYTES];
    segment_file_path(s->dir, f->workspace, f->number, path);
    snprintf(s->why, sizeof(s->why), "%.900s %s", path, what);
    s->index->lost_segment = f->number;
    return STORE_DAMAGED;
}

enum store_status segment_is_damaged(struct store *s, const struct segment_file *f)
{
    return is_damaged(s, f, "does not match its checksums");
}

static enum store_status map_file(struct store *s, const char *path, struct segment_file *f)
{
    struct stat st;
    /* do not wait for a pipe */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return is_damaged(s, f, "is missing");
    if (fd < 0 && (errno == EACCES || errno == ELOOP || errno == ENXIO))
        return is_damaged(s, f, "cannot be opened by the server's user, or is no file");
    if (fd < 0)
        return store_fail(s, errno, "open a segment file");
    enum store_status status = STORE_OK;
    if (fstat(fd, &st) != 0)
        status = store_fail(s, errno, "read the size of a segment file");
    else if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != f->bytes ||
             f->bytes < SEGMENT_HEAD_BYTES)
        status = is_damaged(s, f, "has the wrong size");
    void *map = MAP_FAILED;
    if (status == STORE_OK) {
        map = mmap(NULL, f->bytes, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
            status = store_fail(s, errno, "map a segment file");
        else
            f->map = map;
    }
    close(fd);
    return status;
}

static bool head_good(const struct segment_file *f, const struct segment_file_head *h)
{
    return h->data_bytes % sizeof(uint64_t) == 0 &&
           memcmp(h->magic, MAGIC, sizeof(h->magic)) == 0 && h->workspace == f->workspace &&
           h->number == f->number && h->bytes == f->bytes &&
           h->head == XXH3_64bits(h, offsetof(struct segment_file_head, head)) &&
           h->blocks == (h->data_bytes + SEGMENT_BLOCK_BYTES - 1) / SEGMENT_BLOCK_BYTES &&
           h->bytes == SEGMENT_HEAD_BYTES + h->data_bytes + h->blocks * sizeof(uint64_t);
}

static enum store_status read_head(struct store *s, struct segment_file *f)
{
    struct segment_file_head h;
    memcpy(&h, f->map, sizeof(h));
    if (!head_good(f, &h))
        return is_damaged(s, f, "has a damaged head");
    f->data = f->map + SEGMENT_HEAD_BYTES;
    f->data_bytes = h.data_bytes;
    f->blocks = h.blocks;
    f->sums = (const uint64_t *)(const void *)(f->data + f->data_bytes);
    if (XXH3_64bits(f->sums, f->blocks * sizeof(*f->sums)) != h.sums)
        return is_damaged(s, f, "has damaged checksums");
    f->verified = calloc(f->blocks + 1, sizeof(*f->verified));
    return f->verified != NULL ? STORE_OK : store_fail(s, ENOMEM, "map a segment file");
}

static enum store_status file_new(struct store *s, uint64_t workspace, uint64_t number,
                                  uint64_t bytes, struct segment_file **out)
{
    char path[SEGMENT_PATH_BYTES];
    struct segment_file *f = calloc(1, sizeof(*f));
    if (f == NULL)
        return store_fail(s, ENOMEM, "map a segment file");
    *f =
        (struct segment_file){.workspace = workspace, .number = number, .bytes = bytes, .users = 1};
    segment_file_path(s->dir, workspace, number, path);
    enum store_status status = map_file(s, path, f);
    if (f->map == NULL)
        file_free(f);
    else
        *out = f;
    return status;
}

/* Add it to the maps before its head is read, so that store_mapped_file finds it. */
static enum store_status add_file(struct store *s, struct segment_file **at, struct segment_file *f)
{
    struct segment_maps *m = s->shared->segments;
    *at = f;
    m->bytes += f->bytes;
    enum store_status status = read_head(s, f);
    if (status == STORE_OK)
        return STORE_OK;
    *at = NULL;
    m->bytes -= f->bytes;
    file_free(f);
    return status;
}

enum store_status segment_file_open(struct store *s, uint64_t workspace, uint64_t number,
                                    uint64_t bytes, struct segment_file **out)
{
    struct segment_maps *m = s->shared->segments;
    enum store_status status = STORE_OK;
    struct segment_file *f = NULL;
    pthread_mutex_lock(&m->lock);
    struct segment_file **at = place_of(m, workspace, number);
    if (*at == NULL)
        status = file_new(s, workspace, number, bytes, &f);
    else
        (*at)->users++;
    if (f != NULL)
        status = add_file(s, at, f);
    if (status == STORE_OK)
        *out = *at;
    pthread_mutex_unlock(&m->lock);
    return status;
}

void segment_file_close(struct store *s, struct segment_file *f)
{
    struct segment_maps *m = s->shared->segments;
    if (f == NULL)
        return;
    pthread_mutex_lock(&m->lock);
    if (--f->users == 0) {
        struct segment_file **at = place_of(m, f->workspace, f->number);
        *at = f->next;
        m->bytes -= f->bytes;
        file_free(f);
    }
    pthread_mutex_unlock(&m->lock);
}

/* ---- blocks ---- */

static bool block_good(const struct segment_file *f, size_t block)
{
    size_t at = block * SEGMENT_BLOCK_BYTES, left = f->data_bytes - at;
    size_t n = left < SEGMENT_BLOCK_BYTES ? left : SEGMENT_BLOCK_BYTES;
    return XXH3_64bits(f->data + at, n) == f->sums[block];
}

bool segment_file_verified(struct segment_file *f, const void *p, size_t n)
{
    size_t at = (size_t)((const uint8_t *)p - f->data);
    if (at > f->data_bytes || n > f->data_bytes - at) {
        atomic_store(&f->damaged, true);
        return false;
    }
    if (n == 0)
        return true;
    for (size_t i = at / SEGMENT_BLOCK_BYTES; i <= (at + n - 1) / SEGMENT_BLOCK_BYTES; i++) {
        if (atomic_load_explicit(&f->verified[i], memory_order_relaxed) != 0)
            continue;
        if (!block_good(f, i)) {
            atomic_store(&f->damaged, true);
            return false;
        }
        atomic_store_explicit(&f->verified[i], 1, memory_order_relaxed);
    }
    return true;
}

void segment_file_verify_again(struct segment_file *f, uint64_t turn, uint64_t turns)
{
    /* the number differs between files, so that not all compare their first block at once */
    for (size_t i = (turn + f->number % turns) % turns; i < f->blocks; i += turns)
        if (atomic_load_explicit(&f->verified[i], memory_order_relaxed) != 0 && !block_good(f, i))
            atomic_store(&f->damaged, true);
}

/* ---- writing ---- */

static bool write_parts(int fd, const struct segment_file_head *h, struct str data,
                        const uint64_t *sums)
{
    static const char zeros[SEGMENT_HEAD_BYTES - sizeof(struct segment_file_head)];
    return store_write_all(fd, h, sizeof(*h)) && store_write_all(fd, zeros, sizeof(zeros)) &&
           store_write_all(fd, data.p, data.n) &&
           store_write_all(fd, sums, h->blocks * sizeof(*sums)) && fsync(fd) == 0;
}

static int write_file(const char *path, struct segment_file_head *h, struct str data)
{
    uint64_t *sums = malloc((h->blocks + 1) * sizeof(*sums));
    if (sums == NULL)
        return ENOMEM;
    for (size_t i = 0; i < h->blocks; i++) {
        size_t at = i * SEGMENT_BLOCK_BYTES, left = data.n - at;
        sums[i] = XXH3_64bits(data.p + at, left < SEGMENT_BLOCK_BYTES ? left : SEGMENT_BLOCK_BYTES);
    }
    h->sums = XXH3_64bits(sums, h->blocks * sizeof(*sums));
    h->head = XXH3_64bits(h, offsetof(struct segment_file_head, head));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int rc = fd >= 0 && write_parts(fd, h, data, sums) ? 0 : errno;
    if (fd >= 0 && close(fd) != 0 && rc == 0)
        rc = errno;
    if (fd >= 0 && rc != 0)
        unlink(path);
    free(sums);
    return rc;
}

/* The directory is created with the first file, and its own name is synced too. */
static int make_dir(const char *dir, char *path, size_t size)
{
    snprintf(path, size, "%s/index", dir);
    if (mkdir(path, 0700) != 0)
        return errno == EEXIST ? 0 : errno;
    return store_sync_dir(dir) == 0 ? 0 : errno;
}

/* The rest of the disk is for deletes. */
static bool disk_has(const char *dir, uint64_t bytes)
{
    struct statvfs fs;
    return statvfs(dir, &fs) != 0 ||
           (uint64_t)fs.f_bavail * fs.f_frsize >= bytes + STORE_DISK_RESERVE;
}

enum store_status segment_file_write(struct store *s, uint64_t workspace, struct str data,
                                     uint64_t *out, uint64_t *bytes)
{
    char path[SEGMENT_PATH_BYTES];
    struct segment_file_head h = {.magic = MAGIC, .workspace = workspace, .data_bytes = data.n};
    h.blocks = (data.n + SEGMENT_BLOCK_BYTES - 1) / SEGMENT_BLOCK_BYTES;
    h.bytes = SEGMENT_HEAD_BYTES + data.n + h.blocks * sizeof(uint64_t);
    int rc = make_dir(s->dir, path, sizeof(path));
    if (rc == 0 && !disk_has(s->dir, h.bytes))
        rc = ENOSPC;
    if (rc == 0 && getrandom(&h.number, sizeof(h.number), 0) != (ssize_t)sizeof(h.number))
        rc = errno;
    char dir[SEGMENT_PATH_BYTES];
    memcpy(dir, path, sizeof(dir));
    segment_file_path(s->dir, workspace, h.number, path);
    if (rc == 0)
        rc = write_file(path, &h, data);
    if (rc == 0 && store_sync_dir(dir) != 0) {
        rc = errno;
        unlink(path);
    }
    *out = h.number;
    *bytes = h.bytes;
    return rc == 0 ? STORE_OK : store_fail(s, rc, "write a segment file");
}

int segment_file_delete(const char *dir, uint64_t workspace, uint64_t number)
{
    char path[SEGMENT_PATH_BYTES];
    segment_file_path(dir, workspace, number, path);
    return remove(path) == 0 || errno == ENOENT ? 0 : errno;
}

uint64_t segment_file_bytes(const char *dir, uint64_t workspace, uint64_t number)
{
    char path[SEGMENT_PATH_BYTES];
    struct stat st;
    segment_file_path(dir, workspace, number, path);
    bool is_file = lstat(path, &st) == 0 && S_ISREG(st.st_mode);
    return is_file ? (uint64_t)st.st_size : 0;
}
