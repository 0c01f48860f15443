#include "core/ipc/channel_tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIGITS ((size_t)2 * CHANNEL_TLS_KEY_BYTES)
#define MAKE_ONE "make one by: (umask 077; openssl rand -hex 32 >FILE)"

static bool refuse(const char *path, const char *reason, char *why, size_t why_size)
{
    snprintf(why, why_size, "%s: %s", path, reason);
    return false;
}

/* What is wrong with the file, or NULL. */
static const char *file_why(const struct stat *st)
{
    if (!S_ISREG(st->st_mode))
        return "the key file is not a regular file; " MAKE_ONE;
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "the key file belongs to another user; run chown root on it";
    if ((st->st_mode & 07777 & ~(mode_t)0600) != 0 || (st->st_mode & 0400) == 0)
        return "the mode of the key file is neither 0600 nor 0400; run chmod 600 on it, and make a "
               "new key for all nodes if others could read this one";
    return NULL;
}

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* What is wrong with the text, or NULL. */
static const char *text_why(const char *text, size_t n, struct channel_tls_key *out)
{
    size_t digits = 0;
    for (; digits < n && digits < DIGITS && digit(text[digits]) >= 0; digits++)
        out->bytes[digits / 2] =
            (unsigned char)((out->bytes[digits / 2] << 4) | digit(text[digits]));
    if (n == 0)
        return "the key file is empty; " MAKE_ONE;
    if (digits < DIGITS)
        return "the key file does not begin with 64 hexadecimal digits; " MAKE_ONE;
    if (n == DIGITS)
        return "the key file has no line end after its 64 digits: copy the whole file again";
    if (n != DIGITS + 1 || text[DIGITS] != '\n')
        return "the key file holds more than a line of 64 hexadecimal digits; " MAKE_ONE;
    return NULL;
}

/* O_NONBLOCK: a FIFO is refused instead of waited for */
bool channel_tls_key(const char *path, struct channel_tls_key *out, char *why, size_t why_size)
{
    char text[DIGITS + 2];
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    *out = (struct channel_tls_key){{0}};
    if (fd < 0)
        return refuse(path, strerror(errno), why, why_size);
    ssize_t n = -1;
    const char *wrong = fstat(fd, &st) != 0 ? strerror(errno) : file_why(&st);
    if (wrong == NULL && (n = read(fd, text, sizeof(text))) < 0)
        wrong = strerror(errno);
    close(fd);
    if (wrong == NULL)
        wrong = text_why(text, (size_t)n, out);
    OPENSSL_cleanse(text, sizeof(text));
    if (wrong != NULL)
        OPENSSL_cleanse(out, sizeof(*out));
    return wrong == NULL || refuse(path, wrong, why, why_size);
}
