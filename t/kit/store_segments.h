/* For tests of segment files: a store with small segments, its files, reports and lists. */
#ifndef ASSAY_T_STORE_SEGMENTS_KIT_H
#define ASSAY_T_STORE_SEGMENTS_KIT_H

#include "store/index/merge.h"
#include "store/index/context_internal.h"
#include "t/kit/store.h"

extern struct kit k;
extern uint64_t w; /* a workspace */

/* setup(): a new store with segments of up to 64 rows. teardown(): closes the store. */
void setup(void);
void teardown(void);

/* The segment files of all workspaces. path_of, first_file: a path, until the next call. */
struct files {
    size_t count;
    uint64_t workspace[256], number[256];
};
struct files files(void);
char *path_of(uint64_t workspace, uint64_t number);
char *first_file(void);

/*
 * create(count): reports of two projects. list_all(s, ids, capacity): the first page of every sort,
 * one after the other; the number of ids. list_status: the status of a list.
 */
void create(unsigned count);
size_t list_all(struct store *s, uint64_t *ids, size_t capacity);
enum store_status list_status(struct store *s, unsigned sort, const char *search);

#endif
