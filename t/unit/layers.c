/*
 * Who may include whom, read from the sources, and who may call whom, read from the objects of the
 * build. The rooms below stand in order: a room includes itself and rooms above it in the table,
 * and of those the ones its row allows. It calls no function of a room below it in the table.
 */
#include "t/kit/suite.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The store's rooms and ratelimit know nothing of core; only its libraries know a library. */
#define NO_LIBRARIES "<json-c/ <h2o <openssl/ <lmdb <sqlite3 <curl/ <yaml <libxml/"

/* What the rooms of a worker stand on. */
#define CORE_BELOW                                                                                 \
    "ratelimit store/*.h core/text core/base core/conf core/shm core/auth core/process core/ipc"

/*
 * Columns: folder; the rooms that it includes beside itself, "*": every row above it; what none of
 * its include lines holds. The headers of store/ itself, with the code of shared[], are a room
 * below the store's folders.
 */
static const struct room {
    const char *folder, *knows, *never;
} rooms[] = {
    {"ratelimit", "", NO_LIBRARIES},
    {"store/*.h", "", "<json-c/ <h2o <openssl/ <lmdb <sqlite3 <curl/ <yaml <libxml/"},
    {"store/engine", "store/*.h", "<json-c/ <h2o <openssl/ <sqlite3 <curl/ <yaml <libxml/"},
    {"store/index", "store/*.h store/engine",
     "<json-c/ <h2o <openssl/ <sqlite3 <curl/ <yaml <libxml/"},
    {"store/records", "store/*.h store/engine store/index",
     "<json-c/ <h2o <openssl/ <sqlite3 <curl/ <yaml <libxml/"},
    {"store/answers", "store/*.h store/engine store/index store/records",
     "<json-c/ <h2o <openssl/ <curl/ <yaml <libxml/"},
    {"store", "store/*.h store/engine store/index store/records store/answers",
     "<json-c/ <h2o <openssl/ <sqlite3 <curl/ <yaml <libxml/"},
    {"core/text", "store/*.h", "<h2o <lmdb <sqlite3"},
    {"core/base", "core/text store/*.h", NO_LIBRARIES},
    {"core/conf", "core/text core/base store/*.h ratelimit", "<h2o <json-c/ <openssl/ <lmdb"},
    {"core/shm", "core/text core/base core/conf store/*.h ratelimit", NO_LIBRARIES},
    {"core/auth", "core/text core/base core/conf store/*.h", "<h2o <lmdb <sqlite3"},
    {"core/process", "core/text core/base core/conf core/shm core/auth store/*.h",
     "<h2o <lmdb <json-c/ <sqlite3"},
    {"core/ipc", "core/shm store/*.h", "<json-c/ <h2o <lmdb <sqlite3 <curl/ <yaml <libxml/"},
    {"core/cluster", "core/shm core/ipc store/*.h",
     "<json-c/ <h2o <lmdb <sqlite3 <curl/ <yaml <libxml/"},
    {"core/loop", CORE_BELOW, "<lmdb <sqlite3 <json-c/"},
    {"core/conn", CORE_BELOW " core/loop", "<lmdb <sqlite3 <json-c/"},
    {"core/async", CORE_BELOW " core/loop core/conn", "<lmdb <sqlite3 <json-c/"},
    {"core/limits", CORE_BELOW " core/loop core/conn core/async", "<lmdb <sqlite3 <json-c/"},
    {"core/audit", "core/text core/base core/conf core/shm core/process core/ipc store/*.h",
     "<h2o <lmdb <sqlite3"},
    {"core/http", CORE_BELOW " core/loop core/conn core/async core/limits", "<lmdb <sqlite3"},
    {"core/web", CORE_BELOW " core/http", "<lmdb <sqlite3"},
    {"core/widget", CORE_BELOW " core/http", "<lmdb <sqlite3"},
    {"core/api",
     CORE_BELOW " core/loop core/conn core/async core/audit core/http core/web core/widget",
     "<lmdb <sqlite3"},
    {"core/writer",
     "core/text core/base core/conf core/shm core/auth core/process core/ipc core/cluster "
     "core/audit "
     "store/*.h store/answers",
     "<h2o <lmdb <sqlite3 <json-c/"},
    {"core/worker",
     CORE_BELOW " core/loop core/conn core/async core/audit core/http core/web core/api",
     "<lmdb <sqlite3 <json-c/"},
    {"core/master", CORE_BELOW " core/conn core/audit core/writer core/worker",
     "<h2o <lmdb <sqlite3 <json-c/"},
    {"cmd", "*", "<h2o <json-c/ <openssl/ <lmdb <sqlite3"},
};

/* Of store/ itself; every room of the store uses it. */
static const char *const shared[] = {"store/bytes.c", "store/change.c", "store/ulid.c"};

/* Of these rooms the master knows the life of the process and nothing else. */
static const char *const lives[] = {"core/worker/worker.h", "core/writer/writer.h",
                                    "core/audit/auditor.h"};

/* ---- the files ---- */

#define FILES_MAX 1024
#define INCLUDES_MAX 96

static struct file {
    char *path, *folder;
    char *module; /* X.c, X.h and X_internal.h are one */
    const struct room *room;
    char *includes[INCLUDES_MAX];  /* of the tree; without quotes */
    char *libraries[INCLUDES_MAX]; /* with their brackets */
    size_t includes_count, libraries_count;
} files[FILES_MAX];
static size_t files_count;

/* The row with the longest name that fits. */
static const struct room *room_of(const char *path)
{
    for (size_t i = 0; i < COUNT(shared); i++)
        if (strcmp(path, shared[i]) == 0)
            return room_of("store/store.h");
    const struct room *best = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < COUNT(rooms); i++) {
        size_t n = strlen(rooms[i].folder);
        bool fits = strncmp(path, rooms[i].folder, n) == 0 && path[n] == '/';
        if ((fits && n > longest) || fnmatch(rooms[i].folder, path, FNM_PATHNAME) == 0) {
            best = &rooms[i];
            longest = n;
        }
    }
    return best;
}

/* A new string; the caller frees it. */
static char *joined(const char *a, const char *between, const char *b)
{
    char *text;
    ck_assert_int_gt(asprintf(&text, "%s%s%s", a, between, b), 0);
    return text;
}

/* X.c, X.h and X_internal.h are one module: X. */
static char *module_of(const char *path)
{
    static const char internal[] = "_internal";
    char *text = joined(path, "", ""), *at = strrchr(text, '.');
    if (at != NULL)
        *at = '\0';
    size_t n = strlen(text), suffix = strlen(internal);
    if (n > suffix && strcmp(text + n - suffix, internal) == 0)
        text[n - suffix] = '\0';
    return text;
}

static void read_includes(struct file *f, const char *path)
{
    char line[1024], name[1024];
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "%s cannot be read", path);
    while (fgets(line, sizeof(line), in) != NULL) {
        ck_assert_msg(f->includes_count < INCLUDES_MAX && f->libraries_count < INCLUDES_MAX,
                      "%s includes too many files for this test", path);
        if (sscanf(line, "#include \"%1023[^\"]\"", name) == 1)
            f->includes[f->includes_count++] = joined(name, "", "");
        else if (sscanf(line, "#include %1023s", name) == 1)
            f->libraries[f->libraries_count++] = joined(name, "", "");
    }
    fclose(in);
}

static void add_file(const char *folder, const char *name)
{
    ck_assert_msg(files_count < FILES_MAX, "there are too many files for this test");
    struct file *f = &files[files_count++];
    f->path = joined(folder, "/", name);
    f->module = module_of(f->path);
    f->folder = joined(folder, "", "");
    f->room = room_of(f->path);
    ck_assert_msg(f->room != NULL, "%s lies in no room", f->path);
    char *path = joined(SRCDIR, "/", f->path);
    read_includes(f, path);
    free(path);
}

static bool is_source(const char *name)
{
    size_t n = strlen(name);
    return n > 2 && name[n - 2] == '.' && (name[n - 1] == 'c' || name[n - 1] == 'h');
}

/* What the build generates lies in the build's folder, which may be the same one. */
static bool is_generated(const char *name)
{
    static const char *const generated[] = {"openapi_text.c", "script_text.c", "docs_page.c",
                                            "home_page.c",    "stylesheet.c",  "demo_html.c",
                                            "demo_files.c"};
    for (size_t i = 0; i < COUNT(generated); i++)
        if (strcmp(name, generated[i]) == 0)
            return true;
    return false;
}

static void read_folder(const char *folder)
{
    char *path = joined(SRCDIR, "/", folder);
    DIR *dir = opendir(path);
    free(path);
    ck_assert_msg(dir != NULL, "%s is no folder", folder);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (e->d_type == DT_DIR && e->d_name[0] != '.') {
            path = joined(folder, "/", e->d_name);
            read_folder(path);
            free(path);
        } else if (is_source(e->d_name) && !is_generated(e->d_name))
            add_file(folder, e->d_name);
    }
    closedir(dir);
}

static void setup(void)
{
    if (files_count > 0)
        return;
    read_folder("ratelimit");
    read_folder("store");
    read_folder("core");
    read_folder("cmd");
    ck_assert_msg(files_count > 300, "only %zu files were found", files_count);
}

/* ---- the rules ---- */

static bool lists(const char *words, const char *word, size_t n)
{
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += n)
        if ((at == words || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

static bool knows(const struct room *a, const struct room *b)
{
    if (a == b)
        return true;
    return b < a && (strcmp(a->knows, "*") == 0 || lists(a->knows, b->folder, strlen(b->folder)));
}

START_TEST(a_room_includes_only_what_its_row_allows)
{
    for (size_t i = 0; i < files_count; i++)
        for (size_t k = 0; k < files[i].includes_count; k++) {
            const char *other = files[i].includes[k];
            const struct room *its = room_of(other);
            ck_assert_msg(its != NULL || strcmp(other, "config.h") == 0,
                          "%s includes \"%s\", which lies in no room", files[i].path, other);
            ck_assert_msg(its == NULL || knows(files[i].room, its), "%s includes \"%s\"",
                          files[i].path, other);
        }
}
END_TEST

START_TEST(a_library_is_known_only_where_its_row_allows)
{
    char never[256];
    for (size_t i = 0; i < files_count; i++)
        for (size_t k = 0; k < files[i].libraries_count; k++) {
            snprintf(never, sizeof(never), "%s", files[i].room->never);
            for (char *rest, *word = strtok_r(never, " ", &rest); word != NULL;
                 word = strtok_r(NULL, " ", &rest))
                ck_assert_msg(strncmp(files[i].libraries[k], word, strlen(word)) != 0,
                              "%s includes %s", files[i].path, files[i].libraries[k]);
        }
}
END_TEST

START_TEST(a_room_begins_with_a_readme_of_a_screen)
{
    for (size_t i = 0; i < COUNT(rooms); i++) {
        char *readme = joined(rooms[i].folder, "/", "README.md");
        char *path = joined(SRCDIR, "/", readme);
        char line[1024];
        unsigned lines = 0;
        FILE *in = fopen(path, "r");
        bool is_pattern = strchr(rooms[i].folder, '*') != NULL;
        ck_assert_msg(in != NULL || is_pattern, "%s is missing", path);
        while (in != NULL && fgets(line, sizeof(line), in) != NULL)
            lines++;
        if (in != NULL)
            fclose(in);
        ck_assert_msg(is_pattern || (lines > 5 && lines <= 80), "%s has %u lines", path, lines);
        free(path);
        free(readme);
    }
}
END_TEST

START_TEST(an_internal_header_is_included_from_its_own_folder_alone)
{
    for (size_t i = 0; i < files_count; i++)
        for (size_t k = 0; k < files[i].includes_count; k++) {
            const char *other = files[i].includes[k], *name = strrchr(other, '/');
            bool internal = name != NULL && (strstr(name, "_internal.h") != NULL ||
                                             strcmp(name, "/internal.h") == 0);
            size_t n = strlen(files[i].folder);
            bool own =
                internal && (size_t)(name - other) == n && strncmp(other, files[i].folder, n) == 0;
            ck_assert_msg(!internal || own, "%s includes \"%s\"", files[i].path, other);
        }
}
END_TEST

START_TEST(the_master_knows_the_lives_of_processes_and_not_their_inside)
{
    static const char *const inside[] = {"core/worker/", "core/writer/", "core/audit/",
                                         "core/http/",   "core/api/",    "core/async/",
                                         "core/loop/"};
    for (size_t i = 0; i < files_count; i++)
        for (size_t k = 0;
             strcmp(files[i].room->folder, "core/master") == 0 && k < files[i].includes_count;
             k++) {
            bool life = false, is_inside = false;
            for (size_t n = 0; n < COUNT(lives); n++)
                life = life || strcmp(files[i].includes[k], lives[n]) == 0;
            for (size_t n = 0; n < COUNT(inside); n++)
                is_inside =
                    is_inside || strncmp(files[i].includes[k], inside[n], strlen(inside[n])) == 0;
            ck_assert_msg(life || !is_inside, "%s includes \"%s\"", files[i].path,
                          files[i].includes[k]);
        }
}
END_TEST

/* ---- circles ---- */

/* reach[i][k]: file i's module includes, or calls, file k's, over any number of steps. */
static unsigned char reach[FILES_MAX][FILES_MAX];

static void close_over(void)
{
    for (size_t via = 0; via < files_count; via++)
        for (size_t i = 0; i < files_count; i++)
            if (reach[i][via])
                for (size_t k = 0; k < files_count; k++)
                    reach[i][k] |= reach[via][k];
}

static void expect_no_circle_above_three(void)
{
    close_over();
    for (size_t i = 0; i < files_count; i++) {
        char circle[2048] = "";
        size_t count = 1;
        for (size_t k = 0; k < files_count; k++)
            if (k != i && reach[i][k] && reach[k][i]) {
                strncat(circle, " ", sizeof(circle) - strlen(circle) - 1);
                strncat(circle, files[k].module, sizeof(circle) - strlen(circle) - 1);
                count++;
            }
        ck_assert_msg(count <= 3, "%s is in a circle with%s", files[i].module, circle);
    }
}

static size_t module_at(const char *module)
{
    for (size_t i = 0; i < files_count; i++)
        if (strcmp(files[i].module, module) == 0)
            return i;
    return files_count;
}

START_TEST(no_circle_of_includes_has_more_than_three_modules)
{
    memset(reach, 0, sizeof(reach));
    for (size_t i = 0; i < files_count; i++)
        for (size_t k = 0; k < files[i].includes_count; k++) {
            char *module = module_of(files[i].includes[k]);
            size_t to = module_at(module);
            free(module);
            if (to < files_count && strcmp(files[to].folder, files[i].folder) == 0)
                reach[module_at(files[i].module)][to] = 1;
        }
    expect_no_circle_above_three();
}
END_TEST

/* ---- calls ---- */

/* A function that the object of a file defines, or a symbol that it uses from elsewhere. */
static struct symbol {
    char *name;
    size_t file;
    bool defined;
} * symbols;
static size_t symbols_count;

static bool is_code(size_t file)
{
    return strcmp(strrchr(files[file].path, '.'), ".c") == 0;
}

/* The file whose object is ${path}. */
static size_t file_of_object(const char *path)
{
    static size_t last; /* nm prints the symbols of an object together */
    for (size_t i = 0; i < files_count; i++, last = (last + 1) % files_count)
        if (is_code(last) && strncmp(files[last].path, path, strlen(path) - 1) == 0)
            return last;
    ck_abort_msg("nm names %s, which no source makes", path);
}

/* "core/conf/set.o:0000000000000000 T conf_set", "core/conf/set.o:                 U strlen" */
static void read_symbol(const char *line)
{
    char object[512], type, name[512];
    ck_assert_msg(sscanf(line, "%511[^:]:%*[0-9a-f ]%c %511s", object, &type, name) == 3,
                  "nm prints \"%s\"", line);
    if (type != 'T' && type != 'U')
        return;
    symbols = realloc(symbols, (symbols_count + 1) * sizeof(*symbols));
    symbols[symbols_count++] =
        (struct symbol){joined(name, "", ""), file_of_object(object), type == 'T'};
}

/* By name; of one name, the file that defines it stands first. */
static int compare_symbols(const void *a, const void *b)
{
    const struct symbol *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order != 0 ? order : y->defined - x->defined;
}

/* A build without hiredis compiles other files of this room than one with it. */
static bool is_compiled(const char *path)
{
    static const char room[] = "core/limits/";
    char *object = joined(path, "", "");
    object[strlen(object) - 1] = 'o';
    bool compiled = strncmp(path, room, strlen(room)) != 0 || access(object, R_OK) == 0;
    free(object);
    return compiled;
}

/* Of the sources alone: the build may have objects of deleted files. */
static void read_symbols(void)
{
    char *command = joined("nm -A -g", "", ""), line[2048];
    for (size_t i = 0; i < files_count; i++)
        if (is_code(i)) {
            if (!is_compiled(files[i].path))
                continue;
            char *more = joined(command, " ", files[i].path);
            free(command);
            command = more;
            command[strlen(command) - 1] = 'o';
        }
    FILE *out = popen(command, "r");
    free(command);
    while (fgets(line, sizeof(line), out) != NULL)
        read_symbol(line);
    ck_assert_msg(pclose(out) == 0, "nm failed: install binutils, and run make first");
    qsort(symbols, symbols_count, sizeof(*symbols), compare_symbols);
}

static void free_symbols(void)
{
    while (symbols_count > 0)
        free(symbols[--symbols_count].name);
    free(symbols);
    symbols = NULL;
}

/* The symbol that ${user} gets from another file of the tree; NULL: there is none. */
static const struct symbol *definition_of(const struct symbol *user)
{
    const struct symbol *s = user;
    while (s > symbols && strcmp(s[-1].name, user->name) == 0)
        s--;
    return s->defined && !user->defined ? s : NULL;
}

START_TEST(a_room_calls_no_room_after_it)
{
    size_t calls = 0;
    read_symbols();
    for (size_t i = 0; i < symbols_count; i++) {
        const struct symbol *to = definition_of(&symbols[i]);
        if (to == NULL)
            continue;
        const struct file *caller = &files[symbols[i].file], *called = &files[to->file];
        ck_assert_msg(called->room <= caller->room, "%s calls %s of %s", caller->path, to->name,
                      called->path);
        calls++;
    }
    free_symbols();
    ck_assert_msg(calls > 1000, "only %zu calls were found", calls);
}
END_TEST

START_TEST(no_circle_of_calls_has_more_than_three_files)
{
    memset(reach, 0, sizeof(reach));
    read_symbols();
    for (size_t i = 0; i < symbols_count; i++) {
        const struct symbol *to = definition_of(&symbols[i]);
        if (to != NULL)
            reach[symbols[i].file][to->file] = 1;
    }
    free_symbols();
    expect_no_circle_above_three();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("layers");
    TCase *tcase = tcase_create("layers");
    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60); /* with sanitizers */
    tcase_add_checked_fixture(tcase, setup, NULL);
    tcase_add_test(tcase, a_room_includes_only_what_its_row_allows);
    tcase_add_test(tcase, a_library_is_known_only_where_its_row_allows);
    tcase_add_test(tcase, a_room_begins_with_a_readme_of_a_screen);
    tcase_add_test(tcase, an_internal_header_is_included_from_its_own_folder_alone);
    tcase_add_test(tcase, the_master_knows_the_lives_of_processes_and_not_their_inside);
    tcase_add_test(tcase, no_circle_of_includes_has_more_than_three_modules);
    tcase_add_test(tcase, a_room_calls_no_room_after_it);
    tcase_add_test(tcase, no_circle_of_calls_has_more_than_three_files);
    return suite_run(suite);
}
