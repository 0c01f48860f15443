#include "ratelimit/table_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef RATELIMIT_VERSION
#define RATELIMIT_VERSION 2
#endif
#define TEXT_OF(number) #number
#define NAME_OF(version) "limits-" TEXT_OF(version)
/* The name contains the version, so that files of two versions can exist side by side. */
#define FILE_NAME NAME_OF(RATELIMIT_VERSION)

static const char magic[8] = "assayrl";

/* Sizes for ${slots} keys with half of the slots free: then no key's four buckets are all full. */
static struct table_header geometry(uint64_t slots)
{
    struct table_header h = {.version = RATELIMIT_VERSION,
                             .buckets = BUCKETS_MIN,
                             .claims = CLAIMS,
                             .notes = NOTES,
                             .hash = hash_kind_here()};
    memcpy(h.magic, magic, sizeof(magic));
    while (h.buckets * BUCKET_SLOTS / 2 < slots)
        h.buckets *= 2;
    h.bytes = sizeof(h) + CLAIMS * sizeof(struct pair) + NOTES * NOTE_WORDS * 8 +
              h.buckets * BUCKET_SLOTS * sizeof(struct pair);
    return h;
}

/* The geometry is the first part of the header; the seed and mutable fields follow. */
static bool same_geometry(const struct table_header *a, const struct table_header *b)
{
    return memcmp(a, b, offsetof(struct table_header, seed)) == 0;
}

/* Takes over ${fd} on success. */
static int map(int fd, const struct table_header *shape, bool write, struct ratelimit **out)
{
    struct ratelimit *rl = calloc(1, sizeof(*rl));
    if (rl == NULL)
        return ENOMEM;
    char *at =
        mmap(NULL, shape->bytes, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        int error = errno;
        free(rl);
        return error;
    }
    rl->header = (struct table_header *)(void *)at;
    rl->claims = (struct pair *)(void *)(at + sizeof(struct table_header));
    rl->notes = (uint64_t(*)[NOTE_WORDS])(void *)(rl->claims + CLAIMS);
    rl->slots = (struct pair *)(void *)(rl->notes + NOTES);
    rl->mask = shape->buckets - 1;
    rl->bytes = shape->bytes;
    rl->fd = fd;
    hash_keys_make(&rl->hash_keys, (enum hash_kind)shape->hash, shape->seed);
    *out = rl;
    return 0;
}

/* 0, or EPROTO if the file does not match its header. */
static int read_header(int fd, struct table_header *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return errno;
    if (pread(fd, out, sizeof(*out), 0) != (ssize_t)sizeof(*out) ||
        memcmp(out->magic, magic, sizeof(magic)) != 0 || out->buckets > (uint64_t)1 << 40)
        return EPROTO;
    struct table_header expected = geometry(out->buckets * BUCKET_SLOTS / 2);
    return same_geometry(out, &expected) && (uint64_t)st.st_size == out->bytes &&
                   (out->seed[0] | out->seed[1]) != 0
               ? 0
               : EPROTO;
}

/* Allocates the whole file, so that no later write fails on a full disk. */
static int fill(int fd, struct table_header *h)
{
    if (getrandom(h->seed, sizeof(h->seed), 0) != sizeof(h->seed))
        return EIO;
    int error = posix_fallocate(fd, 0, (off_t)h->bytes);
    if (error != 0)
        return error;
    return pwrite(fd, h, sizeof(*h), 0) == (ssize_t)sizeof(*h) ? 0 : EIO;
}

/* Makes the file under a temporary name and renames it. */
static int make(const char *path, struct table_header *h, struct ratelimit **out)
{
    char made[4200];
    if (snprintf(made, sizeof(made), "%s.new", path) >= (int)sizeof(made))
        return ENAMETOOLONG;
    unlink(made);
    int fd = open(made, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return errno;
    struct ratelimit *rl = NULL;
    int error = fill(fd, h);
    if (error == 0)
        error = map(fd, h, true, &rl);
    if (error == 0 && rename(made, path) != 0)
        error = errno;
    if (error == 0)
        *out = rl;
    else
        unlink(made);
    if (rl == NULL)
        close(fd);
    else if (error != 0)
        ratelimit_close(rl);
    return error;
}

int ratelimit_path(const char *dir, char *out, size_t size)
{
    return (size_t)snprintf(out, size, "%s/%s", dir, FILE_NAME) < size ? 0 : ENAMETOOLONG;
}

static int attach(const char *path, bool write, struct table_header *header, struct ratelimit **out)
{
    int fd = open(path, (write ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno;
    int error = read_header(fd, header);
    if (error == 0)
        error = map(fd, header, write, out);
    if (error != 0)
        close(fd);
    return error;
}

int ratelimit_open(const char *dir, uint64_t slots, enum ratelimit_made *made,
                   struct ratelimit **out)
{
    char path[4100];
    struct table_header wanted = geometry(slots), there;
    struct ratelimit *rl = NULL;
    if (!pair_supported())
        return ENOTSUP;
    if (ratelimit_path(dir, path, sizeof(path)) != 0)
        return ENAMETOOLONG;
    int error = attach(path, true, &there, &rl);
    *made = RATELIMIT_KEPT;
    if (error == 0 && !same_geometry(&there, &wanted)) {
        ratelimit_close(rl);
        rl = NULL;
        error = EPROTO;
    }
    if (error == ENOENT || error == EPROTO) {
        *made = error == ENOENT ? RATELIMIT_NEW : RATELIMIT_REMADE;
        error = make(path, &wanted, &rl);
    }
    if (error == 0)
        *out = rl;
    return error;
}

int ratelimit_attach(const char *dir, bool write, struct ratelimit **out)
{
    char path[4100];
    struct table_header header;
    if (!pair_supported())
        return ENOTSUP;
    if (ratelimit_path(dir, path, sizeof(path)) != 0)
        return ENAMETOOLONG;
    return attach(path, write, &header, out);
}

void ratelimit_close(struct ratelimit *rl)
{
    if (rl == NULL)
        return;
    munmap(rl->header, rl->bytes);
    close(rl->fd);
    free(rl);
}

bool ratelimit_whole(const struct ratelimit *rl)
{
    struct stat st;
    return fstat(rl->fd, &st) != 0 || (uint64_t)st.st_size >= rl->bytes;
}
