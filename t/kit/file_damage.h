/* Damage to files, for tests of files that are rebuilt. */
#ifndef ASSAY_T_KIT_FILE_DAMAGE_H
#define ASSAY_T_KIT_FILE_DAMAGE_H

#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
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

/* Flip a bit at every occurrence of that text; returns how often. The file may be missing. */
static inline unsigned change_text(const char *path, const char *text)
{
    unsigned count = 0;
    struct stat st;
    int fd = open(path, O_RDWR);
    if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0) {
        close(fd);
        return 0;
    }
    char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert(bytes != MAP_FAILED);
    close(fd);
    for (char *at; (at = memmem(bytes, (size_t)st.st_size, text, strlen(text))) != NULL; count++)
        at[0] ^= 1;
    munmap(bytes, (size_t)st.st_size);
    return count;
}

#endif
