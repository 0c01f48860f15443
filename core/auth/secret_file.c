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

/* The first line of the file, without its end, and its length. */
static bool line_read(const char *path, char line[LINE_MAX_BYTES], size_t *length, char *why,
                      size_t size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return refuse(why, size, strerror(errno));
    ssize_t n = fstat(fd, &st) != 0 ? -1 : read(fd, line, LINE_MAX_BYTES - 1);
    int error = errno;
    close(fd);
    if (n < 0)
        return refuse(why, size, strerror(error));
    if ((st.st_mode & (S_IROTH | S_IWOTH)) != 0)
        return refuse(why, size, "all users can read or write the file; run chmod 600 on it");
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
