#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * LMDB trusts the two pages a data file begins with and maps what they say, so a file that is something else, or shorter than it claims, ends the process
 * at the first touch. Their layout has been the same since LMDB 0.9; see MDB_page and MDB_meta in its source.
 */
#define MAGIC 0xBEEFC0DEU
#define DATA_VERSION 1U
#define PAGE_META 0x08U
#define NO_PAGE UINT64_MAX

struct PACKED disk_tree {
    uint32_t page_bytes; /* in the first tree only */
    uint16_t flags, depth;
    uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};

struct PACKED disk_meta {
    uint64_t number;
    uint16_t unused, page_flags;
    uint32_t lower_upper;
    uint32_t magic, version;
    uint64_t address, map_bytes;
    struct disk_tree trees[2];
    uint64_t last_page, transaction;
};

static bool power_of_two(uint32_t n)
{
    return n != 0 && (n & (n - 1)) == 0;
}

static bool tree_plausible(const struct disk_tree *tree, uint64_t last_page)
{
    return tree->root == NO_PAGE || (tree->root > 1 && tree->root <= last_page && tree->depth != 0);
}

/* One meta page; the sentence says what it is instead. */
static const char *meta_look(const struct disk_meta *m)
{
    if (!(m->page_flags & PAGE_META) || m->magic != MAGIC)
        return "is not a store, or its first bytes were overwritten: restore a backup, or move the file away";
    if (m->version != DATA_VERSION)
        return "was written by another version of LMDB: use the Assay that wrote it";
    uint32_t page = m->trees[0].page_bytes;
    if (!power_of_two(page) || page < 512 || page > 65536 || m->last_page < 1 || m->last_page > (uint64_t)1 << 46 ||
        m->map_bytes > (uint64_t)1 << 46 || !tree_plausible(&m->trees[0], m->last_page) || !tree_plausible(&m->trees[1], m->last_page))
        return "is damaged in its first two pages: restore a backup";
    return NULL;
}

static const char *look(int fd, struct file_facts *facts)
{
    struct disk_meta meta[2];
    if (pread(fd, &meta[0], sizeof(meta[0]), 0) != (ssize_t)sizeof(meta[0]))
        return "is too short to be a store: restore a backup, or move the file away";
    const char *wrong = meta_look(&meta[0]);
    if (wrong != NULL)
        return wrong;
    facts->page_bytes = meta[0].trees[0].page_bytes;
    if (pread(fd, &meta[1], sizeof(meta[1]), facts->page_bytes) != (ssize_t)sizeof(meta[1]))
        return "is cut short after its first page: restore a backup";
    wrong = meta_look(&meta[1]);
    if (wrong != NULL)
        return wrong;
    const struct disk_meta *newest = &meta[meta[1].transaction > meta[0].transaction];
    if (meta[1].trees[0].page_bytes != facts->page_bytes)
        return "is damaged in its first two pages: restore a backup";
    facts->map_bytes = newest->map_bytes;
    facts->pages = newest->last_page + 1;
    facts->transaction = newest->transaction;
    return NULL;
}

enum store_status file_look(const char *dir, struct file_facts *facts, char *why, size_t why_size)
{
    char path[4096 + 16];
    struct stat st;
    *facts = (struct file_facts){0};
    snprintf(path, sizeof(path), "%s/data.mdb", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return STORE_NOT_FOUND;
    if (fd < 0 || fstat(fd, &st) != 0) {
        snprintf(why, why_size, "%s cannot be read: %s; run as the owner of the data directory", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return STORE_IO;
    }
    const char *wrong = S_ISREG(st.st_mode) ? NULL : "is not a file: move it away";
    facts->bytes = (uint64_t)st.st_size;
    if (wrong == NULL && st.st_size != 0)
        wrong = look(fd, facts);
    close(fd);
    if (wrong == NULL && facts->bytes == 0)
        return STORE_NOT_FOUND;
    if (wrong == NULL && facts->bytes / facts->page_bytes < facts->pages) {
        snprintf(why, why_size, "%s is cut short: it should have %llu bytes and has %llu; restore a backup", path,
                 (unsigned long long)(facts->pages * facts->page_bytes), (unsigned long long)facts->bytes);
        return STORE_CORRUPT;
    }
    if (wrong != NULL) {
        snprintf(why, why_size, "%s %s", path, wrong);
        return STORE_CORRUPT;
    }
    return STORE_OK;
}
