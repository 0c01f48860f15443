/* data_dir and run_dir: made, locked for this server, and the files that it puts into them. */
#ifndef ASSAY_MASTER_DIRECTORIES_H
#define ASSAY_MASTER_DIRECTORIES_H

#include "core/conf/conf.h"

struct directories {
    int data_lock, run_lock; /* descriptors; -1: not locked */
};

/*
 * Each returns 0, or -1 after it has logged why.
 * directories_make(conf): make them when they are missing, owned by the user.
 * directories_lock(d, conf): lock them. The locks of the old master (upgrade.h) are kept.
 * directories_make_secrets(conf): before the first fork, so that all workers find the same signing
 * secrets. A file that an option names must exist already.
 */
int directories_make(const struct conf *conf);
int directories_lock(struct directories *d, const struct conf *conf);
int directories_make_secrets(const struct conf *conf);

/* directory_give(conf, path): make the user the owner of ${path}; 0 or -1 with errno. */
int directory_give(const struct conf *conf, const char *path);

/* directory_refuse(what, path, reason): log it; -1. */
int directory_refuse(const char *what, const char *path, const char *reason);

/* directories_write_pid(conf): assayd.pid, for those without a service manager; _remove_pid. */
void directories_write_pid(const struct conf *conf);
void directories_remove_pid(const struct conf *conf);

/* directories_close(d): at the end, and in a child. */
void directories_close(struct directories *d);

#endif
