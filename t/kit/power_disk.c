#include "t/kit/power_disk.h"
#include "t/kit/store.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

struct write_op {
    bool truncates;
    uint64_t at;
    size_t n;
    const uint8_t *bytes; /* in the record */
};

struct inode {
    bool is_dir;
    uint8_t *bytes; /* durable content */
    size_t n;
    struct write_op *pending;
    size_t count, cap;
};

enum { INODES = 8192, ENTRIES = 8192, DIRS = 64 };

struct entry {
    char name[96];
    int inode; /* -1: removed */
};

struct names {
    struct entry all[ENTRIES];
    size_t count;
};

/* A change of directories: ${a} is removed, or (not empty) ${b} is ${inode}. */
struct dir_op {
    char gone[96], there[96];
    int inode;
    bool done; /* it is durable */
};

static struct inode inodes[INODES];
static int inode_count;
static struct names live, lasting; /* as the process sees it; durable content */
static struct dir_op ops[ENTRIES];
static size_t op_count;

static struct entry *entry_of(struct names *n, const char *name)
{
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->all[i].name, name) == 0)
            return &n->all[i];
    kit_assert(n->count < ENTRIES);
    struct entry *e = &n->all[n->count++];
    snprintf(e->name, sizeof(e->name), "%s", name);
    e->inode = -1;
    return e;
}

static void apply_op(struct names *n, const struct dir_op *op)
{
    if (op->gone[0] != '\0')
        entry_of(n, op->gone)->inode = -1;
    if (op->there[0] != '\0')
        entry_of(n, op->there)->inode = op->inode;
}

static void dir_of(const char *name, char out[96])
{
    const char *slash = strrchr(name, '/');
    snprintf(out, 96, "%.*s", slash == NULL ? 0 : (int)(slash - name), name);
}

static bool op_touches(const struct dir_op *op, const char *dir)
{
    char of[96];
    dir_of(op->gone, of);
    bool touches = op->gone[0] != '\0' && strcmp(of, dir) == 0;
    dir_of(op->there, of);
    return touches || (op->there[0] != '\0' && strcmp(of, dir) == 0);
}

/* Entries of that directory. With a rename, also those of the other directory up to it. */
static void sync_dir(const char *dir, size_t upto)
{
    for (size_t i = 0; i < upto; i++) {
        if (ops[i].done || !op_touches(&ops[i], dir))
            continue;
        char other[2][96];
        dir_of(ops[i].gone, other[0]);
        dir_of(ops[i].there, other[1]);
        ops[i].done = true;
        for (int j = 0; j < 2; j++)
            if (strcmp(other[j], dir) != 0)
                sync_dir(other[j], i);
        apply_op(&lasting, &ops[i]);
    }
}

static void note_op(const char *gone, const char *there, int inode)
{
    kit_assert(op_count < ENTRIES);
    struct dir_op *op = &ops[op_count++];
    *op = (struct dir_op){.inode = inode};
    snprintf(op->gone, sizeof(op->gone), "%s", gone);
    snprintf(op->there, sizeof(op->there), "%s", there);
    apply_op(&live, op);
}

static void store_bytes(uint8_t **bytes, size_t *n, const struct write_op *op)
{
    size_t end = op->truncates ? (size_t)op->at : (size_t)op->at + op->n;
    if (end > *n) {
        *bytes = realloc(*bytes, end);
        memset(*bytes + *n, 0, end - *n);
        *n = end;
    }
    if (op->truncates)
        *n = (size_t)op->at;
    else
        memcpy(*bytes + op->at, op->bytes, op->n);
}

static void sync_file(struct inode *f)
{
    for (size_t i = 0; i < f->count; i++)
        store_bytes(&f->bytes, &f->n, &f->pending[i]);
    f->count = 0;
}

static void add_pending(struct inode *f, struct write_op op)
{
    if (f->count == f->cap) {
        f->cap = f->cap == 0 ? 16 : f->cap * 2;
        f->pending = realloc(f->pending, f->cap * sizeof(*f->pending));
    }
    f->pending[f->count++] = op;
}

/* By sector; a disk writes each sector completely or not at all. */
static void add_write(struct inode *f, uint64_t at, const uint8_t *bytes, size_t n)
{
    enum { SECTOR = 512 };
    while (n > 0) {
        size_t take = SECTOR - at % SECTOR;
        take = take < n ? take : n;
        add_pending(f, (struct write_op){.at = at, .n = take, .bytes = bytes});
        at += take;
        bytes += take;
        n -= take;
    }
}

static int new_inode(bool is_dir)
{
    kit_assert(inode_count < INODES);
    inodes[inode_count] = (struct inode){.is_dir = is_dir};
    return inode_count++;
}

static struct inode *inode_at(const char *name)
{
    int inode = entry_of(&live, name)->inode;
    kit_assert(inode >= 0);
    return &inodes[inode];
}

void disk_apply(const struct power_record *r, const char *a, const char *b, const uint8_t *bytes)
{
    switch (r->kind) {
    case POWER_CREATE:
    case POWER_MKDIR:
        note_op("", a, new_inode(r->kind == POWER_MKDIR));
        break;
    case POWER_WRITE:
        if (r->durable != 0) {
            struct inode *f = inode_at(a);
            struct write_op op = {.at = r->at, .n = r->bytes, .bytes = bytes};
            store_bytes(&f->bytes, &f->n, &op);
            add_pending(f, op); /* over an earlier unsynced write */
        } else {
            add_write(inode_at(a), r->at, bytes, r->bytes);
        }
        break;
    case POWER_TRUNCATE:
        add_pending(inode_at(a), (struct write_op){.truncates = true, .at = r->at});
        break;
    case POWER_SYNC:
        if (a[0] == '\0' || inode_at(a)->is_dir)
            sync_dir(a, op_count);
        else
            sync_file(inode_at(a));
        break;
    case POWER_RENAME:
        note_op(a, b, entry_of(&live, a)->inode);
        break;
    case POWER_LINK:
        note_op("", b, entry_of(&live, a)->inode);
        break;
    default:
        note_op(a, "", -1);
    }
}

static void write_out(const char *path, const uint8_t *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    kit_assert(fd >= 0);
    for (size_t at = 0; at < n;) {
        ssize_t wrote = write(fd, bytes + at, n - at);
        kit_assert(wrote > 0);
        at += (size_t)wrote;
    }
    close(fd);
}

/* Each unsynced sector is kept with a chance of ${often} in 4. */
static void lay_file(const char *path, const struct inode *f, unsigned often, uint64_t *seed)
{
    uint8_t *bytes = malloc(f->n + 1);
    size_t n = f->n;
    if (n != 0)
        memcpy(bytes, f->bytes, n);
    for (size_t i = 0; i < f->count; i++)
        if (kit_random(seed) % 4 < often)
            store_bytes(&bytes, &n, &f->pending[i]);
    write_out(path, bytes, n);
    free(bytes);
}

/* Each directory has its entries up to a random moment of its own. */
static void choose_names(struct names *out, uint64_t *seed)
{
    char dirs[DIRS][96];
    size_t upto[DIRS], count = 0;
    *out = lasting;
    for (size_t i = 0; i < op_count; i++) {
        bool all = true;
        if (ops[i].done)
            continue;
        for (int side = 0; side < 2; side++) {
            char dir[96];
            const char *name = side == 0 ? ops[i].gone : ops[i].there;
            size_t at = 0;
            if (name[0] == '\0')
                continue;
            dir_of(name, dir);
            while (at < count && strcmp(dirs[at], dir) != 0)
                at++;
            if (at == count) {
                kit_assert(count < DIRS);
                snprintf(dirs[at], sizeof(dirs[at]), "%s", dir);
                upto[count++] = kit_random(seed) % 3 == 0 ? kit_random(seed) % (op_count + 1)
                                                          : op_count * (kit_random(seed) % 2);
            }
            all = all && i < upto[at];
        }
        if (all)
            apply_op(out, &ops[i]);
    }
}

void disk_lay_out(const char *dir, uint64_t *seed)
{
    static struct names names;
    unsigned often = (unsigned)(kit_random(seed) % 5);
    choose_names(&names, seed);
    for (int pass = 0; pass < 2; pass++) /* directories first */
        for (size_t i = 0; i < names.count; i++) {
            const struct entry *e = &names.all[i];
            char path[PATH_MAX];
            snprintf(path, sizeof(path), "%s/%s", dir, e->name);
            if (e->inode < 0 || inodes[e->inode].is_dir != (pass == 0))
                continue;
            if (pass == 0) {
                mkdir(path, 0700);
                continue;
            }
            char parent[96];
            dir_of(e->name, parent);
            if (parent[0] == '\0' || entry_of(&names, parent)->inode >= 0)
                lay_file(path, &inodes[e->inode], often, seed);
        }
}
