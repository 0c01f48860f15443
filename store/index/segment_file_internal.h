/*
 * Segment files: data_dir/index/WORKSPACE-NUMBER.seg (16 hexadecimal digits each), and their maps.
 *
 *   head    4,096 bytes: struct segment_file_head, with a checksum of itself
 *   data    segment_internal.h
 *   sums    XXH3 of each 64 KiB of data, the last one shorter; the head has a checksum of them
 *
 * A file is written once, under a random number that is never reused, and synced before a
 * transaction names it. Each process maps a file once for all its threads and closes the
 * descriptor. A block is compared with its checksum when it is first read, again now and then while
 * the file is mapped, and before it is merged.
 */
#ifndef ASSAY_STORE_INDEX_SEGMENT_FILE_INTERNAL_H
#define ASSAY_STORE_INDEX_SEGMENT_FILE_INTERNAL_H

#include "store/index/index.h"

#include <stdatomic.h>

#define SEGMENT_HEAD_BYTES 4096
#define SEGMENT_BLOCK_BYTES 65536

struct segment_file {
    struct segment_file *next;
    uint64_t workspace, number;
    const uint8_t *map;
    size_t bytes;
    const uint8_t *data;
    size_t data_bytes, blocks;
    const uint64_t *sums;
    atomic_uchar *verified; /* of each block */
    atomic_bool damaged;    /* a block differs from its checksum */
    unsigned users;         /* under the lock of the maps */
};

/*
 * segment_file_open(s, workspace, number, bytes, out): map it, or share the process's map.
 * STORE_DAMAGED: it is missing, has another size, or its head is damaged (store_why).
 * segment_file_close(s, f): the last user unmaps it. NULL does nothing.
 */
enum store_status segment_file_open(struct store *s, uint64_t workspace, uint64_t number,
                                    uint64_t bytes, struct segment_file **out);
void segment_file_close(struct store *s, struct segment_file *f);

/* segment_is_damaged(s, f): STORE_DAMAGED, and store_why names the file. */
enum store_status segment_is_damaged(struct store *s, const struct segment_file *f);

/*
 * segment_file_verified(f, p, n): do the blocks of these bytes match their checksums? False: they
 * do not, or ${p} lies outside the data; f->damaged is set, and the bytes must not be read.
 */
bool segment_file_verified(struct segment_file *f, const void *p, size_t n);

/*
 * segment_file_verify_again(f, turn, turns): a file can be damaged after its blocks were verified:
 * compare them again, one in ${turns}; with consecutive ${turn}s all are compared after ${turns}
 * calls. Blocks that nobody has read are left out. Damage sets f->damaged.
 */
void segment_file_verify_again(struct segment_file *f, uint64_t turn, uint64_t turns);

/*
 * segment_file_write(s, workspace, data, out, bytes): write a new file and sync it and its
 * directory; *out: its number, *bytes: its size. A failure leaves no file. segment_file_delete(dir,
 * workspace, number): 0, or an errno; a missing file is no error. segment_file_bytes(dir,
 * workspace, number): its size; 0: there is no such file.
 */
enum store_status segment_file_write(struct store *s, uint64_t workspace, struct str data,
                                     uint64_t *out, uint64_t *bytes);
int segment_file_delete(const char *dir, uint64_t workspace, uint64_t number);
uint64_t segment_file_bytes(const char *dir, uint64_t workspace, uint64_t number);

/*
 * segment_file_each(dir, each, arg): every segment file in ${dir}/index until ${each} returns
 * false; files with other names are skipped. 0, or an errno; a missing directory is empty.
 */
typedef bool segment_file_fn(void *arg, uint64_t workspace, uint64_t number);
int segment_file_each(const char *dir, segment_file_fn *each, void *arg);

/* segment_file_path(dir, workspace, number, out): its path. */
#define SEGMENT_PATH_BYTES (4096 + 64)
void segment_file_path(const char *dir, uint64_t workspace, uint64_t number,
                       char out[SEGMENT_PATH_BYTES]);

/* The maps of a process, in struct shared_env. */
struct segment_maps;
struct segment_maps *segment_maps_new(void);
void segment_maps_free(struct segment_maps *m);
/* segment_maps_bytes(m): mapped bytes. */
uint64_t segment_maps_bytes(struct segment_maps *m);

#endif
