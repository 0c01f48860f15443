#include "core/auth/secret_file.h"

#include "core/text/chars.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

static bool refuse(char *why, size_t size, const char *reason)
{
    snprintf(why, size, "%s", reason);
    return false;
}

/* What is wrong with the file, or NULL. */
static const char *file_why(const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "this is not a regular file";
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "the file belongs to another user; run chown root on it";
    if ((st->st_mode & S_IRWXO) != 0)
        return "all users can read or write the file; run chmod 600 on it";
    return NULL;
}

/* The first line of the file, without its end, and its length. */
static bool line_read(const char *path, char line[LINE_MAX_BYTES], size_t *length, char *why,
                      size_t size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC); /* a FIFO is not awaited */
    if (fd < 0)
        return refuse(why, size, strerror(errno));
    ssize_t n = -1;
    const char *wrong = fstat(fd, &st) != 0 ? strerror(errno) : file_why(&st);
    if (wrong == NULL && (n = read(fd, line, LINE_MAX_BYTES - 1)) < 0)
        wrong = strerror(errno);
    close(fd);
    if (wrong != NULL)
        return refuse(why, size, wrong);
    line[n] = '\0';
    *length = strcspn(line, "\r\n");
    line[*length] = '\0';
    return true;
}

bool secret_file_key(const char *path, uint8_t out[SECRET_FILE_KEY], char *why, size_t size)
{
    char line[LINE_MAX_BYTES];
    size_t n;
    if (!line_read(path, line, &n, why, size))
        return false;
    bool good = n == 2 * SECRET_FILE_KEY;
    for (size_t i = 0; good && i < SECRET_FILE_KEY; i++) {
        int high = hex_digit(line[2 * i]), low = hex_digit(line[2 * i + 1]);
        good = high >= 0 && low >= 0;
        out[i] = (uint8_t)(high << 4 | low);
    }
    explicit_bzero(line, sizeof(line));
    return good || refuse(why, size,
                          "the first line is not 64 hexadecimal digits; write a key with `openssl "
                          "rand -hex 32`");
}

bool secret_file_password(const char *path, char out[SECRET_FILE_PASSWORD], char *why, size_t size)
{
    char line[LINE_MAX_BYTES];
    size_t n;
    if (!line_read(path, line, &n, why, size))
        return false;
    bool good = n > 0 && n < SECRET_FILE_PASSWORD;
    memcpy(out, line, good ? n + 1 : 0);
    explicit_bzero(line, sizeof(line));
    return good || refuse(why, size, "the first line is not a password of 1 to 512 bytes");
}
