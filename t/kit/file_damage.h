/* Damage to files, for tests of files that are rebuilt. */
#ifndef ASSAY_T_KIT_FILE_DAMAGE_H
#define ASSAY_T_KIT_FILE_DAMAGE_H

#include <check.h>
#include <sys/stat.h>
#include <unistd.h>

static inline void delete_file(const char *path)
{
    ck_assert_int_eq(unlink(path), 0);
}

static inline void truncate_file(const char *path)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(truncate(path, st.st_size / 3), 0);
}

#endif
