/*
 * The puts of creating reports into a bare LMDB, and nothing else. The keys are the store's own,
 * the values as large as the store's, the rows those of
 * store/records/report.c, the log of the index and job.c for each
 * report and of txn.c, project.c and sender.c for each commit; every commit is synced. Whatever
 * fails ends the program with a sentence.
 */
#ifndef ASSAY_BENCH_PUTS_H
#define ASSAY_BENCH_PUTS_H

#include <stddef.h>
#include <stdint.h>

/* puts_open(dir, workspace): ${dir}/data.mdb is made, or grows by reports of that workspace. */
void puts_open(const char *dir, uint64_t workspace);
void puts_close(void);

/* A commit of ${count} reports: puts_begin, puts_report(page) for each, puts_commit(count). */
void puts_begin(void);
void puts_report(unsigned page);
void puts_commit(size_t count);

extern uint64_t puts_bytes; /* put so far, keys and values */

#endif
