/*
 * A new database cluster in a few hundredths of a second: the first test of a build runs initdb and
 * keeps the result as a file in the folder of the build, the others unpack it.
 */
#include "t/kit/postgres_internal.h"
#include "t/kit/supervisor.h"
#include "t/kit/wait.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMPLATE "t/kit/postgres.tar"

static const char settings[] = "listen_addresses = '127.0.0.1'\n"
                               "max_connections = 100\n"
                               "shared_buffers = 16MB\n"
                               "dynamic_shared_memory_type = mmap\n" /* in the directory */
                               "max_logical_replication_workers = 0\n"
                               "wal_keep_size = 256MB\n"
                               "huge_pages = off\n"
                               "jit = off\n"
                               "log_line_prefix = '%m [%p] %a '\n";

/* A superuser connects in the private directory alone, where no other user of the host comes. */
static const char access_rules[] = "local all all trust\n"
                                   "local replication all trust\n"
                                   "host assay assay 127.0.0.1/32 trust\n";

/* One database: the fewer files, the sooner they are copied, and synced after a crash. */
static const char databases[] = "CREATE ROLE assay LOGIN;\n\n"
                                "ALTER DATABASE template1 RENAME TO assay;\n\n"
                                "ALTER DATABASE assay OWNER TO assay;\n\n"
                                "UPDATE pg_database SET datistemplate = false;\n\n"
                                "DROP DATABASE template0;\n\n";

/* ---- the installed version ---- */

static int version_of(const char *dir)
{
    const char *at = strstr(dir, "postgresql/");
    return at ? atoi(at + strlen("postgresql/")) : 0;
}

/* Debian has a folder for each version, and only their programs for users in PATH. */
static const char *newest_folder(void)
{
    static char newest[256];
    glob_t found;
    if (*newest)
        return newest;
    strcpy(newest, "/usr/bin");
    if (glob("/usr/lib/postgresql/*/bin", 0, NULL, &found))
        return newest;
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (version_of(found.gl_pathv[i]) > version_of(newest))
            snprintf(newest, sizeof(newest), "%s", found.gl_pathv[i]);
    globfree(&found);
    return newest;
}

const char *postgres_program(const char *name)
{
    static char paths[4][512]; /* the last ones, so that a caller may use several */
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof(paths[0]), "%s/%s", newest_folder(), name);
    return access(path, X_OK) == 0 ? path : NULL;
}

const char *postgres_missing(void)
{
    if (postgres_program("initdb") && postgres_program("postgres"))
        return NULL;
    return "PostgreSQL is not installed: install postgresql (Debian) or postgresql-server (Fedora)";
}

/* ---- making and unpacking the template ---- */

static void put_file(const char *data, const char *name, const char *mode, const char *content)
{
    char *path = text("%s/%s", data, name);
    FILE *file = fopen(path, mode);
    ck_assert_msg(file != NULL, "%s: %s", path, strerror(errno));
    fputs(content, file);
    ck_assert_int_eq(fclose(file), 0);
    free(path);
}

static void single_user(struct postgres *p, const char *data, const char *database,
                        const char *statements)
{
    FILE *sql = tmpfile();
    ck_assert_ptr_nonnull(sql);
    fputs(statements, sql);
    rewind(sql);
    supervisor_run(p->supervisor, fileno(sql), -1, postgres_program("postgres"), "--single", "-j",
                   "-D", data, database, NULL);
    fclose(sql);
}

/* Programs that do this at once make the same file. */
static void pack(struct postgres *p, const char *data)
{
    char *new = text("%s.%d", TEMPLATE, (int)getpid());
    int out = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    ck_assert_msg(out >= 0, "%s: %s. Run tests in the folder of the build.", new, strerror(errno));
    supervisor_run(p->supervisor, -1, out, "/bin/tar", "-C", data, "-cf", "-", ".", NULL);
    close(out);
    ck_assert_int_eq(rename(new, TEMPLATE), 0);
    free(new);
}

static void create(struct postgres *p, const char *data)
{
    supervisor_run(p->supervisor, -1, -1, postgres_program("initdb"), "-D", data, "-A", "trust",
                   "-U", "postgres", "-E", "UTF8", "--no-locale", "--wal-segsize=1", "--no-sync",
                   NULL);
    put_file(data, "postgresql.conf", "a", settings);
    put_file(data, "pg_hba.conf", "w", access_rules);
    single_user(p, data, "postgres", databases);
    single_user(p, data, "assay", "DROP DATABASE postgres;\n\n");
    pack(p, data);
}

static void unpack(struct postgres *p, const char *data, int in)
{
    supervisor_run(p->supervisor, -1, -1, "/bin/mkdir", "-m", "700", data, NULL);
    supervisor_run(p->supervisor, in, -1, "/bin/tar", "-C", data, "-xpf", "-", NULL);
}

static int64_t nanoseconds(struct timespec t)
{
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Another version of PostgreSQL cannot use the template, and this program may have new settings. */
static bool is_current(int template)
{
    struct stat made, server, self;
    return !fstat(template, &made) && !stat(postgres_program("postgres"), &server) &&
           !stat("/proc/self/exe", &self) &&
           nanoseconds(made.st_mtim) > nanoseconds(server.st_ctim) &&
           nanoseconds(made.st_mtim) > nanoseconds(self.st_mtim);
}

void postgres_fill(struct postgres *p)
{
    char *data = postgres_data(p);
    int in = open(TEMPLATE, O_RDONLY | O_CLOEXEC);
    if (in >= 0 && is_current(in))
        unpack(p, data, in);
    else
        create(p, data);
    if (in >= 0)
        close(in);
    free(data);
}
