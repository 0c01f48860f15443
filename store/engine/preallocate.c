#include "store/engine/txn.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/*
 * LMDB does not write pages that a transaction took at the end of the file and freed again. A valid
 * data.mdb may then be shorter than its count of pages, like a truncated one. The writer keeps the
 * file some megabytes longer, so that a short file is always a truncated one.
 *
 * It writes zeros rather than a hole: a commit into allocated blocks waits for its data only, a
 * commit into a hole also for the file system's journal, which takes several times as long. So the
 * journal is waited for once in some megabytes.
 */
#define AHEAD_BYTES ((uint64_t)4 << 20)
#define AHEAD_LEAST (AHEAD_BYTES / 4)     /* when a transaction begins */
#define SPARED_BYTES ((uint64_t)64 << 20) /* of the disk, that zeros must leave free */

/* No page of this range is in use: it follows the last committed page. */
static bool write_zeros(int fd, uint64_t from, uint64_t to)
{
    static const char zeros[64 << 10];
    struct statvfs fs;
    if (fstatvfs(fd, &fs) != 0 || (uint64_t)fs.f_bavail * fs.f_frsize < to - from + SPARED_BYTES)
        return false;
    while (from < to) {
        ssize_t n =
            pwrite(fd, zeros, to - from < sizeof(zeros) ? to - from : sizeof(zeros), (off_t)from);
        if (n <= 0 && errno != EINTR)
            return false;
        from += n > 0 ? (uint64_t)n : 0;
    }
    return true;
}

void txn_keep_file_ahead(struct store *s)
{
    MDB_envinfo info;
    MDB_stat stat;
    struct stat st;
    int fd;
    mdb_env_info(s->env, &info);
    mdb_env_stat(s->env, &stat);
    uint64_t need = ((uint64_t)info.me_last_pgno + 1) * stat.ms_psize + AHEAD_LEAST;
    if (need > info.me_mapsize)
        need = info.me_mapsize;
    if (need <= s->file_bytes || mdb_env_get_fd(s->env, &fd) != 0 || fstat(fd, &st) != 0)
        return;
    s->file_bytes = (uint64_t)st.st_size;
    uint64_t want = need + AHEAD_BYTES;
    if (want > info.me_mapsize)
        want = info.me_mapsize;
    /* a disk that is nearly full: make a hole, so that records get the space */
    if (s->file_bytes < need &&
        (write_zeros(fd, s->file_bytes, want) || ftruncate(fd, (off_t)want) == 0))
        s->file_bytes = want;
}
