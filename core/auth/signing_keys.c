#include "core/auth/signing_keys.h"

#include "core/text/chars.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAX 4096

struct list {
    struct secret of[SECRETS_MAX]; /* oldest first */
    size_t count;
};

struct signing_keys {
    struct list list;
    struct stat seen; /* of the file that was read */
    uint64_t generation;
    char path[SECRETS_PATH];
};

static int refuse(char *why, size_t size, const char *path, const char *reason)
{
    snprintf(why, size, "the signing secrets in %s: %s", path, reason);
    return -1;
}

void signing_keys_path(const struct conf *conf, char out[SECRETS_PATH])
{
    if (conf->jwt_secrets_file != NULL && conf->jwt_secrets_file[0] != '\0')
        snprintf(out, SECRETS_PATH, "%s", conf->jwt_secrets_file);
    else
        snprintf(out, SECRETS_PATH, "%s/secrets", conf->data_dir);
}

/* ---- lines ---- */

static bool line_read(const char *line, struct secret *out)
{
    char hex[2 * SECRET_BYTES + 1], rest;
    if (sscanf(line, "%12[0-9a-f] %" SCNd64 " %64[0-9a-f]%c", out->kid, &out->made_ms, hex,
               &rest) != 3 ||
        strlen(out->kid) != SECRET_KID || strlen(hex) != 2 * SECRET_BYTES)
        return false;
    for (size_t i = 0; i < SECRET_BYTES; i++)
        out->key[i] = (uint8_t)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
    explicit_bzero(hex, sizeof(hex));
    return true;
}

static bool list_read(char *text, struct list *out)
{
    char *rest = NULL;
    out->count = 0;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '#')
            continue;
        if (out->count == SECRETS_MAX || !line_read(line, &out->of[out->count]) ||
            (out->count > 0 && out->of[out->count].made_ms < out->of[out->count - 1].made_ms))
            return false;
        out->count++;
    }
    return out->count > 0;
}

static bool secret_new(int64_t now_ms, struct secret *out)
{
    uint8_t name[SECRET_KID / 2];
    if (getrandom(name, sizeof(name), 0) != sizeof(name) ||
        getrandom(out->key, SECRET_BYTES, 0) != SECRET_BYTES)
        return false;
    for (size_t i = 0; i < sizeof(name); i++)
        snprintf(out->kid + 2 * i, 3, "%02x", name[i]);
    out->made_ms = now_ms;
    return true;
}

/* ---- the file ---- */

static int file_read(const char *path, struct list *out, struct stat *st, char *why,
                     size_t why_size)
{
    char text[FILE_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return refuse(why, why_size, path, strerror(errno));
    ssize_t n = fstat(fd, st) != 0 ? -1 : read(fd, text, sizeof(text) - 1);
    int error = errno;
    close(fd);
    if (n < 0)
        return refuse(why, why_size, path, strerror(error));
    text[n] = '\0';
    bool good = list_read(text, out);
    explicit_bzero(text, sizeof(text));
    if (!good)
        return refuse(why, why_size, path,
                      "the file is damaged; restore it, or remove it and restart to create a new "
                      "one, which invalidates visitors' tokens");
    if ((st->st_mode & (S_IROTH | S_IWOTH)) != 0)
        return refuse(why, why_size, path,
                      "all users can read or write the file; run chmod 600 on it");
    return 0;
}

/* FILE_MAX is enough for SECRETS_MAX keys. */
static size_t list_write(const struct list *list, char text[FILE_MAX])
{
    size_t n = (size_t)snprintf(
        text, FILE_MAX,
        "# Secrets that sign visitors' tokens and the cookies of reports, oldest first; "
        "written by assay secret rotate.\n");
    for (size_t i = 0; i < list->count; i++) {
        n += (size_t)snprintf(text + n, FILE_MAX - n, "%s %" PRId64 " ", list->of[i].kid,
                              list->of[i].made_ms);
        for (size_t k = 0; k < SECRET_BYTES; k++)
            n += (size_t)snprintf(text + n, FILE_MAX - n, "%02x", list->of[i].key[k]);
        text[n++] = '\n';
    }
    return n;
}

/* The text is wiped: processes that are forked later must not have a key in their memory. */
static int write_all(const char *path, const struct list *list)
{
    char text[FILE_MAX];
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -1;
    size_t n = list_write(list, text);
    bool good = write(fd, text, n) == (ssize_t)n && fsync(fd) == 0;
    explicit_bzero(text, sizeof(text));
    return close(fd) == 0 && good ? 0 : -1;
}

/* Lock the directory of the file for this process; -1 with errno. */
static int dir_lock(const char *path)
{
    char copy[SECRETS_PATH];
    snprintf(copy, sizeof(copy), "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Atomic: a reader finds the old file or the new one. */
static int file_replace(const char *path, int dir, const struct list *list, char *why,
                        size_t why_size)
{
    char beside[SECRETS_PATH + 8];
    snprintf(beside, sizeof(beside), "%s.new", path);
    if (write_all(beside, list) == 0 && rename(beside, path) == 0 && fsync(dir) == 0)
        return 0;
    refuse(why, why_size, path, strerror(errno));
    unlink(beside);
    return -1;
}

/* Keys are ordered by time, also after the clock was set back. */
static bool list_add(struct list *list, int64_t now_ms)
{
    int64_t last = list->count == 0 ? 0 : list->of[list->count - 1].made_ms;
    return secret_new(now_ms > last ? now_ms : last + 1, &list->of[list->count++]);
}

static int add(const char *path, int dir, struct list *list, int64_t now_ms, char *why,
               size_t why_size)
{
    if (!list_add(list, now_ms))
        return refuse(why, why_size, path, "getrandom failed");
    int status = file_replace(path, dir, list, why, why_size);
    explicit_bzero(list, sizeof(*list));
    return status;
}

int signing_keys_make(const char *path, int64_t now_ms, char *why, size_t why_size)
{
    struct list list = {.count = 0};
    int dir = dir_lock(path), status = 0;
    if (dir < 0)
        return refuse(why, why_size, path, strerror(errno));
    if (access(path, F_OK) != 0)
        status = errno == ENOENT ? add(path, dir, &list, now_ms, why, why_size)
                                 : refuse(why, why_size, path, strerror(errno));
    close(dir);
    return status;
}

/* Without keys whose successor is older than ${keep_ms}, so that there is room for another. */
static int list_shorten(const char *path, struct list *list, int64_t now_ms, int64_t keep_ms,
                        char *why, size_t why_size)
{
    size_t over = 0;
    while (over + 1 < list->count && list->of[over + 1].made_ms + keep_ms < now_ms)
        over++;
    list->count -= over;
    memmove(list->of, list->of + over, list->count * sizeof(list->of[0]));
    return list->count < SECRETS_MAX
               ? 0
               : refuse(why, why_size, path,
                        "the file has the maximum number of secrets; wait until tokens of the "
                        "oldest one have expired (jwt.ttl, at least 12 h)");
}

int signing_keys_rotate(const char *path, int64_t now_ms, int64_t keep_ms, char *why,
                        size_t why_size)
{
    struct list list = {.count = 0};
    struct stat st;
    int dir = dir_lock(path), status = 0;
    if (dir < 0)
        return refuse(why, why_size, path, strerror(errno));
    if (access(path, F_OK) == 0)
        status = file_read(path, &list, &st, why, why_size);
    if (status == 0)
        status = list_shorten(path, &list, now_ms, keep_ms, why, why_size);
    if (status == 0)
        status = add(path, dir, &list, now_ms, why, why_size);
    close(dir);
    explicit_bzero(&list, sizeof(list));
    return status;
}

/* ---- the file as a text ---- */

static void list_put(const struct list *list, struct buf *out)
{
    char text[FILE_MAX];
    buf_add(out, text, list_write(list, text));
    explicit_bzero(text, sizeof(text));
}

int signing_keys_read(const char *path, struct buf *out, char *why, size_t why_size)
{
    struct list list;
    struct stat st;
    int status = file_read(path, &list, &st, why, why_size);
    if (status == 0)
        list_put(&list, out);
    explicit_bzero(&list, sizeof(list));
    return status;
}

/* ${text}: of the cluster. The padding of the keys is zero, so that they can be compared. */
static int text_read(const char *path, struct str text, struct list *out, char *why,
                     size_t why_size)
{
    char copy[FILE_MAX];
    memset(out, 0, sizeof(*out));
    snprintf(copy, sizeof(copy), "%.*s", (int)text.n, text.p);
    bool good = list_read(copy, out);
    explicit_bzero(copy, sizeof(copy));
    return good ? 0 : refuse(why, why_size, path, "the keys of the cluster are malformed");
}

int signing_keys_next(const char *path, struct str text, int64_t now_ms, int64_t keep_ms,
                      struct buf *out, char *why, size_t why_size)
{
    struct list list;
    int status = text_read(path, text, &list, why, why_size);
    if (status == 0)
        status = list_shorten(path, &list, now_ms, keep_ms, why, why_size);
    if (status == 0 && !list_add(&list, now_ms))
        status = refuse(why, why_size, path, "getrandom failed");
    if (status == 0)
        list_put(&list, out);
    explicit_bzero(&list, sizeof(list));
    return status;
}

static int replace_if_other(const char *path, int dir, const struct list *list, char *why,
                            size_t why_size)
{
    struct list old;
    struct stat st;
    memset(&old, 0, sizeof(old));
    bool same = file_read(path, &old, &st, why, why_size) == 0 && old.count == list->count &&
                memcmp(old.of, list->of, list->count * sizeof(list->of[0])) == 0;
    explicit_bzero(&old, sizeof(old));
    return same ? 0 : file_replace(path, dir, list, why, why_size);
}

int signing_keys_install(const char *path, struct str text, char *why, size_t why_size)
{
    struct list list;
    if (text_read(path, text, &list, why, why_size) != 0)
        return -1;
    int dir = dir_lock(path);
    int status = dir < 0 ? refuse(why, why_size, path, strerror(errno))
                         : replace_if_other(path, dir, &list, why, why_size);
    if (dir >= 0)
        close(dir);
    explicit_bzero(&list, sizeof(list));
    return status;
}

/* ---- in a worker ---- */

struct signing_keys *signing_keys_open(const char *path, char *why, size_t why_size)
{
    struct signing_keys *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        refuse(why, why_size, path, strerror(ENOMEM));
        return NULL;
    }
    snprintf(s->path, sizeof(s->path), "%s", path);
    s->generation = 1;
    if (file_read(path, &s->list, &s->seen, why, why_size) == 0)
        return s;
    signing_keys_free(s);
    return NULL;
}

void signing_keys_free(struct signing_keys *s)
{
    if (s == NULL)
        return;
    explicit_bzero(s, sizeof(*s));
    free(s);
}

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void signing_keys_reload(struct signing_keys *s)
{
    struct stat now;
    struct list list;
    char why[SECRETS_PATH + 256];
    if (stat(s->path, &now) != 0 || same_file(&now, &s->seen) ||
        file_read(s->path, &list, &now, why, sizeof(why)) != 0)
        return;
    s->seen = now;
    s->list = list;
    s->generation++;
    explicit_bzero(&list, sizeof(list));
}

uint64_t signing_keys_generation(const struct signing_keys *s)
{
    return s->generation;
}

const struct secret *signing_keys_signing(const struct signing_keys *s, int64_t now_ms)
{
    size_t i = s->list.count - 1;
    while (i > 0 && s->list.of[i].made_ms + SECRETS_SETTLE_MS > now_ms)
        i--;
    return &s->list.of[i];
}

const struct secret *signing_keys_find(const struct signing_keys *s, struct str kid, int64_t now_ms,
                                       int64_t life_ms)
{
    for (size_t i = 0; i < s->list.count; i++) {
        if (!str_eq(kid, str_of(s->list.of[i].kid)))
            continue;
        bool newest = i + 1 == s->list.count;
        return newest || s->list.of[i + 1].made_ms + SECRETS_SETTLE_MS + life_ms >= now_ms
                   ? &s->list.of[i]
                   : NULL;
    }
    return NULL;
}
