#include "store/engine/pages_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* MDB_page, MDB_node, MDB_db and MDB_meta of LMDB's source, unchanged since 0.9. */
#define MAGIC 0xBEEFC0DEU
#define DATA_VERSION 1U
#define NO_PAGE UINT64_MAX
#define PAGE_BRANCH 0x01U
#define PAGE_LEAF 0x02U
#define PAGE_OVERFLOW 0x04U
#define PAGE_META 0x08U
#define NODE_BIG 0x01U
#define NODE_TREE 0x02U
#define LEVELS 48
#define LOOK_AT_OPEN 64 /* pages: the roots and their children */

#define PACKED __attribute__((packed))

struct PACKED disk_tree {
    uint32_t page_bytes; /* in the first tree only */
    uint16_t flags, depth;
    uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};

struct PACKED disk_page {
    uint64_t number;
    uint16_t unused, flags;
    uint16_t lower, upper; /* overflow page: number of pages, 32 bits */
};

struct PACKED disk_meta {
    struct disk_page page;
    uint32_t magic, version;
    uint64_t address, map_bytes;
    struct disk_tree trees[2];
    uint64_t last_page, transaction;
};

struct PACKED disk_node {
    uint16_t low, high, flags, key_n; /* child of a branch: low, high and flags */
};

/* ---- the meta pages ---- */

static bool tree_plausible(const struct disk_tree *tree, uint64_t last_page)
{
    return tree->root == NO_PAGE ||
           (tree->root > 1 && tree->root <= last_page && tree->depth != 0 && tree->depth < LEVELS);
}

/* A page; the sentence says what it is instead. */
static const char *meta_wrong(const struct disk_meta *m)
{
    if (!(m->page.flags & PAGE_META) || m->magic != MAGIC)
        return "is not a store, or its first bytes were overwritten: restore a backup, or move the "
               "file away";
    if (m->version != DATA_VERSION)
        return "was written by another version of LMDB: use the Assay that wrote it";
    uint32_t page = m->trees[0].page_bytes;
    if (page < 512 || page > 65536 || (page & (page - 1)) != 0 || m->last_page < 1 ||
        m->last_page > (uint64_t)1 << 46 || m->map_bytes > (uint64_t)1 << 46 ||
        !tree_plausible(&m->trees[0], m->last_page) || !tree_plausible(&m->trees[1], m->last_page))
        return "is damaged in its first two pages: restore a backup";
    return NULL;
}

static const char *metas_read(int fd, struct disk_meta meta[2])
{
    if (pread(fd, &meta[0], sizeof(meta[0]), 0) != (ssize_t)sizeof(meta[0]))
        return "is too short to be a store: restore a backup, or move the file away";
    const char *wrong = meta_wrong(&meta[0]);
    if (wrong != NULL)
        return wrong;
    if (pread(fd, &meta[1], sizeof(meta[1]), meta[0].trees[0].page_bytes) !=
        (ssize_t)sizeof(meta[1]))
        return "is cut short after its first page: restore a backup";
    wrong = meta_wrong(&meta[1]);
    if (wrong == NULL && meta[1].trees[0].page_bytes != meta[0].trees[0].page_bytes)
        wrong = "is damaged in its first two pages: restore a backup";
    return wrong;
}

enum store_status pages_facts_read(int fd, uint64_t transaction, struct pages_facts *facts,
                                   char *why, size_t why_size)
{
    struct disk_meta meta[2];
    struct stat st;
    *facts = (struct pages_facts){0};
    if (fstat(fd, &st) != 0) {
        snprintf(why, why_size, "data.mdb cannot be read: %s", strerror(errno));
        return STORE_IO;
    }
    const char *wrong = S_ISREG(st.st_mode) ? NULL : "is not a file: move it away";
    if (wrong == NULL && st.st_size == 0)
        return STORE_NOT_FOUND;
    if (wrong == NULL)
        wrong = metas_read(fd, meta);
    if (wrong != NULL) {
        snprintf(why, why_size, "data.mdb %s", wrong);
        return STORE_CORRUPT;
    }
    const struct disk_meta *m = &meta[meta[1].transaction > meta[0].transaction];
    if (transaction != 0 && m->transaction != transaction)
        m = &meta[m == meta];
    if (transaction != 0 && m->transaction != transaction)
        return STORE_NOT_FOUND;
    *facts = (struct pages_facts){
        .bytes = (uint64_t)st.st_size,
        .map_bytes = m->map_bytes,
        .transaction = m->transaction,
        .pages = m->last_page + 1,
        .page_bytes = m->trees[0].page_bytes,
        .trees = {{m->trees[0].root, m->trees[0].depth}, {m->trees[1].root, m->trees[1].depth}},
    };
    return STORE_OK;
}

/* ---- all other pages ---- */

struct look {
    int fd;
    const struct pages_facts *facts;
    uint64_t file_pages, limit, seen;
    uint8_t *used;         /* a bit for each page */
    char *buffers[LEVELS]; /* the path from the root */
    store_progress_fn *progress;
    void *arg;
    char *why;
    size_t why_size;
    enum store_status status;
};

static bool wrong(struct look *l, uint64_t page, const char *what)
{
    snprintf(l->why, l->why_size, "data.mdb is damaged: page %llu %s; restore a backup",
             (unsigned long long)page, what);
    l->status = STORE_CORRUPT;
    return false;
}

/* Note that ${count} pages from ${page} are in use. */
static bool take(struct look *l, uint64_t page, uint64_t count)
{
    if (page < 2 || page >= l->facts->pages || count > l->facts->pages - page)
        return wrong(l, page, "is referred to and lies outside the store");
    if (page + count > l->file_pages) {
        snprintf(l->why, l->why_size,
                 "data.mdb is truncated: %llu bytes expected, %llu found; restore a backup",
                 (unsigned long long)(l->facts->pages * l->facts->page_bytes),
                 (unsigned long long)l->facts->bytes);
        l->status = STORE_CORRUPT;
        return false;
    }
    for (uint64_t i = page; i < page + count; i++) {
        if (l->used[i / 8] & (1U << i % 8))
            return wrong(l, i, "is used twice");
        l->used[i / 8] |= (uint8_t)(1U << i % 8);
    }
    l->seen += count;
    if (l->progress != NULL && (l->seen & 1023) < count &&
        !l->progress(l->arg, l->seen, l->facts->pages)) {
        snprintf(l->why, l->why_size, "the check of the pages was stopped");
        l->status = STORE_IO;
        return false;
    }
    return true;
}

static bool read_bytes(struct look *l, uint64_t page, void *to, size_t n)
{
    ssize_t got = pread(l->fd, to, n, (off_t)(page * l->facts->page_bytes));
    if (got == (ssize_t)n)
        return true;
    snprintf(l->why, l->why_size, "page %llu of data.mdb cannot be read: %s",
             (unsigned long long)page, got < 0 ? strerror(errno) : "the file ends");
    l->status = STORE_IO;
    return false;
}

static bool overflow_look(struct look *l, uint64_t page, uint64_t bytes)
{
    struct disk_page head;
    if (page < 2 || page >= l->facts->pages || page >= l->file_pages)
        return take(l, page, 1);
    if (!read_bytes(l, page, &head, sizeof(head)))
        return false;
    uint32_t pages = head.lower | (uint32_t)head.upper << 16;
    if (head.number != page || !(head.flags & PAGE_OVERFLOW) || pages == 0 ||
        bytes > (uint64_t)pages * l->facts->page_bytes - sizeof(head))
        return wrong(l, page, "does not hold the large value it should");
    return take(l, page, pages);
}

static bool tree_look(struct look *l, uint64_t page, unsigned depth, unsigned level);

/* A node of a leaf: its value lies in the page, on overflow pages, or is a tree. */
static bool leaf_node_look(struct look *l, uint64_t page, const struct disk_node *node, size_t rest,
                           unsigned level)
{
    uint64_t n = node->low | (uint64_t)node->high << 16;
    const char *value = (const char *)(node + 1) + node->key_n;
    size_t left = rest - node->key_n;
    if (node->flags & NODE_BIG) {
        uint64_t at;
        if (left < sizeof(at))
            return wrong(l, page, "has a node that leaves it");
        memcpy(&at, value, sizeof(at));
        return overflow_look(l, at, n);
    }
    if (n > left)
        return wrong(l, page, "has a node that leaves it");
    if (!(node->flags & NODE_TREE))
        return true;
    struct disk_tree tree;
    if (n != sizeof(tree))
        return wrong(l, page, "has a node that is no tree");
    memcpy(&tree, value, sizeof(tree));
    if (tree.root == NO_PAGE)
        return true;
    if (tree.depth == 0 || tree.depth >= LEVELS)
        return wrong(l, page, "has a node that is no tree");
    return tree_look(l, tree.root, tree.depth, level + 1);
}

static bool node_look(struct look *l, uint64_t page, size_t i, unsigned depth, unsigned level)
{
    const char *bytes = l->buffers[level];
    uint16_t at;
    memcpy(&at, bytes + sizeof(struct disk_page) + i * sizeof(at), sizeof(at));
    const struct disk_page *head = (const void *)bytes;
    if (at < head->upper || at + sizeof(struct disk_node) > l->facts->page_bytes)
        return wrong(l, page, "has a node that leaves it");
    const struct disk_node *node = (const void *)(bytes + at);
    size_t rest = l->facts->page_bytes - at - sizeof(*node);
    if (node->key_n > rest || node->key_n > 511)
        return wrong(l, page, "has a key that leaves it");
    if (depth > 1)
        return tree_look(l, node->low | (uint64_t)node->high << 16 | (uint64_t)node->flags << 32,
                         depth - 1, level + 1);
    return leaf_node_look(l, page, node, rest, level);
}

static bool tree_look(struct look *l, uint64_t page, unsigned depth, unsigned level)
{
    if (l->seen >= l->limit)
        return true;
    if (level >= LEVELS)
        return wrong(l, page, "lies too deep");
    if (l->buffers[level] == NULL && (l->buffers[level] = malloc(l->facts->page_bytes)) == NULL) {
        snprintf(l->why, l->why_size, "out of memory");
        l->status = STORE_IO;
        return false;
    }
    if (!take(l, page, 1) || !read_bytes(l, page, l->buffers[level], l->facts->page_bytes))
        return false;
    const struct disk_page head = *(const struct disk_page *)(const void *)l->buffers[level];
    size_t count = head.lower < sizeof(head) ? 0 : (head.lower - sizeof(head)) / 2;
    if (head.number != page ||
        (head.flags & (PAGE_BRANCH | PAGE_LEAF)) != (depth > 1 ? PAGE_BRANCH : PAGE_LEAF))
        return wrong(l, page, "is not what the page above it takes it for");
    if (head.lower < sizeof(head) || head.lower > head.upper || head.upper > l->facts->page_bytes ||
        count == 0)
        return wrong(l, page, "has a damaged head");
    for (size_t i = 0; i < count; i++) {
        if (!node_look(l, page, i, depth, level))
            return false;
    }
    return true;
}

enum store_status pages_look(int fd, const struct pages_facts *facts, uint64_t limit,
                             store_progress_fn *progress, void *arg, char *why, size_t why_size)
{
    struct look l = {.fd = fd,
                     .facts = facts,
                     .file_pages = facts->bytes / facts->page_bytes,
                     .limit = limit,
                     .progress = progress,
                     .arg = arg,
                     .why = why,
                     .why_size = why_size,
                     .status = STORE_OK};
    l.used = calloc(1, facts->pages / 8 + 1);
    if (l.used == NULL) {
        snprintf(why, why_size, "out of memory");
        return STORE_IO;
    }
    for (size_t i = 0; i < 2 && l.status == STORE_OK; i++) {
        if (facts->trees[i].root != NO_PAGE)
            tree_look(&l, facts->trees[i].root, facts->trees[i].depth, 0);
    }
    for (size_t i = 0; i < LEVELS; i++)
        free(l.buffers[i]);
    free(l.used);
    return l.status;
}

/*
 * A transaction that takes pages at the end and frees them leaves a valid file that is shorter than
 * its count of pages (the writer extends it later), so all pages of a short file are checked. No
 * snapshot keeps the pages yet: a contradiction counts only while no writer commits.
 */
static enum store_status open_look(int fd, struct pages_facts *facts, char *why, size_t why_size)
{
    enum store_status status = pages_facts_read(fd, 0, facts, why, why_size);
    for (int tries = 0; status == STORE_OK && tries < 32; tries++) {
        bool is_short = facts->bytes / facts->page_bytes < facts->pages;
        struct pages_facts now;
        status =
            pages_look(fd, facts, is_short ? PAGES_ALL : LOOK_AT_OPEN, NULL, NULL, why, why_size);
        if (status != STORE_CORRUPT || pages_facts_read(fd, 0, &now, why, why_size) != STORE_OK ||
            now.transaction == facts->transaction)
            return status;
        *facts = now;
        status = STORE_OK;
    }
    return status;
}

enum store_status pages_open_look(const char *dir, struct pages_facts *facts, char *why,
                                  size_t why_size)
{
    char path[4096 + 16];
    *facts = (struct pages_facts){0};
    snprintf(path, sizeof(path), "%s/data.mdb", dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return STORE_NOT_FOUND;
    if (fd < 0) {
        snprintf(why, why_size, "%s cannot be read: %s; run as the owner of the data directory",
                 path, strerror(errno));
        return STORE_IO;
    }
    char sentence[512] = "";
    enum store_status status = open_look(fd, facts, sentence, sizeof(sentence));
    close(fd);
    if (status != STORE_OK && status != STORE_NOT_FOUND)
        snprintf(why, why_size, "%s: %s", dir, sentence);
    return status;
}
