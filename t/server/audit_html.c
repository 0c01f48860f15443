/* `assay audit --html`: the page of a report as one file, without a server. */
#include "t/kit/harness.h"

#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static struct origin *origin;
static struct server *server; /* its configuration; it does not run */
static char *dir, *file;      /* an empty directory; a name in it */

static void setup(void)
{
    origin = origin_usual();
    server = server_new(&(struct server_options){.origin = origin, .no_key = true});
    server_configure(server, "reports: { good: 75, decent: 50 }");
    dir = text("%s/pages", server->dir);
    file = text("%s/report.html", dir);
    ck_assert_int_eq(mkdir(dir, 0755), 0);
}

static void teardown(void)
{
    server_free(server);
    origin_stop(origin);
}

static char *contents(const char *path)
{
    struct run run = run_program("/bin/cat", path, NULL);
    ck_assert_msg(run.status == 0, "%s", run.err);
    return run.out;
}

static size_t files_in(const char *path)
{
    size_t count = 0;
    DIR *opened = opendir(path);
    ck_assert_ptr_nonnull(opened);
    for (struct dirent *entry; (entry = readdir(opened)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(opened);
    return count;
}

/* Grade a page of the origin into ${file}; returns the file. */
static char *html_of(const char *page, int status)
{
    struct run run = assay(server, "audit", "--html", file, origin_url(origin, page), NULL);
    ck_assert_msg(run.status == status, "%s: %d\n%s%s", page, run.status, run.out, run.err);
    ck_assert_uint_eq(files_in(dir), 1);
    return contents(file);
}

static void expect_in(const char *html, const char *wanted)
{
    ck_assert_msg(strstr(html, wanted) != NULL, "no %s in %.2000s", wanted, html);
}

/* ---- what a browser reads ---- */

static const char *const loading[] = {"script", "iframe", "frame", "img",   "object", "embed",
                                      "form",   "base",   "video", "audio", "source"};

static bool is_name(const char *name, size_t n, const char *wanted)
{
    return strlen(wanted) == n && !strncasecmp(name, wanted, n);
}

static void check_attribute(const char *name, size_t n, const char *value, size_t size,
                            const char *url)
{
    bool icon = !strncmp(value, "data:image/svg+xml,", 19);
    bool graded = size == strlen(url) && !strncmp(value, url, size);
    ck_assert_msg(strncasecmp(name, "on", 2) != 0, "%.*s", (int)n, name);
    ck_assert_msg(!is_name(name, n, "src") && !is_name(name, n, "style"), "%.*s", (int)n, name);
    if (is_name(name, n, "href"))
        ck_assert_msg(icon || graded, "a link to %.*s", (int)size, value);
}

/* Check a tag that begins at ${at}, behind its "<"; returns its end. */
static const char *check_tag(const char *at, const char *url)
{
    size_t n = strcspn(at, " \n/>");
    for (size_t i = 0; i < COUNT(loading); i++)
        ck_assert_msg(!is_name(at, n, loading[i]), "<%.*s>", (int)n, at);
    for (at += n; *at != '>' && *at != '\0';) {
        at += strspn(at, " \n/");
        n = strcspn(at, "= \n/>");
        if (at[n] != '=') {
            at += n;
            continue;
        }
        ck_assert_msg(at[n + 1] == '"', "no quotes: %.40s", at);
        size_t size = strcspn(at + n + 2, "\"");
        check_attribute(at, n, at + n + 2, size, url);
        at += n + 2 + size + 1;
    }
    return at;
}

/* The page loads nothing, runs nothing, and links only to the graded page. */
static void expect_self_contained(const char *html, const char *url)
{
    size_t tags = 0;
    for (const char *at = html; (at = strchr(at, '<')) != NULL; at++) {
        if (isalpha((unsigned char)at[1])) {
            at = check_tag(at + 1, url);
            tags++;
        }
    }
    ck_assert_uint_gt(tags, 10);
    const char *style = strstr(html, "<style>"), *end = strstr(html, "</style>");
    ck_assert(style != NULL && end != NULL && end - style > 1000);
    char *sheet = text("%.*s", (int)(end - style), style);
    ck_assert(!strstr(sheet, "url(") && !strstr(sheet, "@import"));
}

static void expect_utf8(const char *path)
{
    struct run run = run_program("/usr/bin/iconv", "-f", "UTF-8", "-t", "UTF-8", path, NULL);
    ck_assert_msg(run.status == 0, "%s", run.err);
}

START_TEST(a_page_is_graded_into_a_file_of_its_own)
{
    const char *url = origin_url(origin, "/decent");
    struct run json = assay(server, "--json", "audit", "--html", file, url, NULL);
    ck_assert_msg(json.status == 1 && !strncmp(json.out, "{\"url\":", 7), "%d %s%s", json.status,
                  json.out, json.err);
    const char *score = strstr(json.out, "\"score\":");
    ck_assert_ptr_nonnull(score);
    char *html = contents(file);
    expect_in(html, "<!DOCTYPE html>\n<html lang=\"en\">");
    expect_in(html, text("text-anchor=\"middle\">%d</text>", atoi(score + 8)));
    expect_in(html, "What to mend first");
    expect_in(html, "<h3>HTTPS encryption</h3>");
    expect_in(html, "<dt>Status code</dt><dd>200</dd>");
    expect_in(html, "<dt>Protocol</dt><dd>HTTP/1.1</dd>");
    expect_in(html, "<dt>Graded by</dt><dd>Assay ");
    ck_assert_str_eq(html + strlen(html) - 8, "</html>\n");
    ck_assert(!strstr(html, "id=\"history\"") && !strstr(html, "/reports/"));
    expect_self_contained(html, url);
    expect_utf8(file);
}
END_TEST

/* Columns: the page; the exit status; the class of the dial. */
static const struct {
    const char *page;
    int status;
    const char *dial;
} results[] = {
    {"/good", 0, "class=\"dial good\""},
    {"/decent", 1, "class=\"dial decent\""},
    {"/bad", 1, "class=\"dial bad\""},
};

START_TEST(the_exit_status_and_the_printed_report_stay)
{
    const char *url = origin_url(origin, results[_i].page);
    struct run with = assay(server, "audit", "--html", file, url, NULL),
               without = assay(server, "audit", url, NULL);
    ck_assert_int_eq(with.status, results[_i].status);
    ck_assert_int_eq(without.status, results[_i].status);
    ck_assert_msg(strstr(with.out, " / 100") != NULL, "%s", with.out);
    expect_in(contents(file), results[_i].dial);
}
END_TEST

START_TEST(the_page_names_the_final_address)
{
    origin_page(origin, "/moved", 302, "Location: /decent\r\n", "");
    expect_in(html_of("/moved", 1),
              text("Final address: <bdi>%s</bdi>", origin_url(origin, "/decent")));
}
END_TEST

START_TEST(text_of_the_page_is_text)
{
    origin_page(origin, "/hostile", 200, "Content-Type: text/html; charset=utf-8\r\n",
                "<title>&lt;/title>&lt;script>alert(1)&lt;/script>\" onload='x' "
                "a\xc2\x9b"
                "31m\xe2\x80\xae\xe2\x80\xa8\xff z</title><title>b</title>"
                "<img src='\"><script>alert(2)</script>'><p style=\"url(//evil.test)\">");
    char *html = html_of("/hostile", 1);
    expect_in(html, "&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=");
    expect_in(html, "&#x202E;"); /* escaped also for a terminal */
    ck_assert(!strstr(html, "\xc2\x9b") && !strstr(html, "\xe2\x80\xae") &&
              !strstr(html, "\xe2\x80\xa8"));
    expect_self_contained(html, origin_url(origin, "/hostile"));
    expect_utf8(file);
}
END_TEST

/* ---- pages without a grade ---- */

/* Columns: the page or URL; --lang; what the page says. */
static const struct {
    const char *url, *lang, *heading, *why;
} failures[] = {
    {"/missing", "en", "could not be graded: Faulty response", "404"},
    {"/missing", "de", "Fehlerhafte Antwort", "antwortet mit dem Statuscode 404."},
    {"ftp://alpha.test/", "en", "could not be graded: URL not accepted", "must begin with http://"},
    {"ftp://alpha.test/", "de", "URL nicht angenommen", "enthält einen Benutzernamen"},
    {"\xff\xc2\x9b<script>", "en", "URL not accepted", "&lt;script&gt;"},
};

START_TEST(a_page_that_cannot_be_graded_says_why)
{
    const char *url =
        failures[_i].url[0] == '/' ? origin_url(origin, failures[_i].url) : failures[_i].url;
    struct run run = assay(server, "audit", "--html", file, "--lang", failures[_i].lang, url, NULL);
    ck_assert_msg(run.status == 2 && strstr(run.out, "Not graded"), "%d %s%s", run.status, run.out,
                  run.err);
    char *html = contents(file);
    expect_in(html, failures[_i].heading);
    expect_in(html, failures[_i].why);
    ck_assert(!strstr(html, "class=\"dial") && !strstr(html, "id=\"facts\""));
    expect_self_contained(html, failures[_i].url[0] == '/' ? url : "#");
    expect_utf8(file);
}
END_TEST

/* ---- languages ---- */

/* Columns: the environment; more arguments; the language. */
static const struct {
    const char *environment, *arguments, *language;
} languages[] = {
    {"LANG=de_DE.UTF-8", "", "de"},
    {"LANG=de_DE.UTF-8", "--lang en", "en"},
    {"LANG=C", "--lang=de", "de"},
    {"LANG=en_GB.UTF-8 LC_MESSAGES=de_AT", "", "de"},
    {"LANG=de LC_MESSAGES=de LC_ALL=C.UTF-8", "", "en"},
    {"LANG=de@euro LC_ALL=", "", "de"},
    {"LANG=fr_FR.UTF-8", "", "en"},
    {"LC_CTYPE=de_DE.UTF-8", "", "en"},
};

START_TEST(the_language_is_chosen_or_that_of_the_environment)
{
    const char *command = "env -u LANG -u LC_ALL -u LC_MESSAGES %s '%s' -c '%s' audit --html - %s "
                          "'%s'";
    struct run run =
        run_program("/bin/sh", "-c",
                    text(command, languages[_i].environment, assay_path(), server->conf,
                         languages[_i].arguments, origin_url(origin, "/good")),
                    NULL);
    ck_assert_msg(run.status == 0, "%s%s", run.out, run.err);
    expect_in(run.out, text("<html lang=\"%s\">", languages[_i].language));
    expect_in(run.out, strcmp(languages[_i].language, "de") == 0 ? "Bestanden" : "Passed");
}
END_TEST

/* ---- standard output ---- */

START_TEST(a_dash_prints_the_page_and_nothing_else)
{
    struct run run = assay(server, "audit", "--html", "-", origin_url(origin, "/decent"), NULL);
    ck_assert_msg(run.status == 1 && !*run.err, "%d %s", run.status, run.err);
    ck_assert_msg(!strncmp(run.out, "<!DOCTYPE html>\n", 16), "%.80s", run.out);
    ck_assert_str_eq(run.out + strlen(run.out) - 8, "</html>\n");
    ck_assert(!strstr(run.out, " / 100"));
    ck_assert_uint_eq(files_in(dir), 0);
}
END_TEST

START_TEST(a_reader_who_leaves_does_not_prevent_the_file)
{
    run_program("/bin/sh", "-c",
                text("'%s' -c '%s' audit --html '%s' '%s' | head -1", assay_path(), server->conf,
                     file, origin_url(origin, "/bad")),
                NULL);
    expect_in(contents(file), "class=\"dial bad\"");
}
END_TEST

/* ---- refused ---- */

/* Columns: the arguments; the message. */
static const struct {
    const char *args[7], *says;
} misuses[] = {
    {{"--html", "x", "a.test", "b.test"}, "--html takes one URL"},
    {{"--html", "-", "--json", "a.test"}, "--html - and --json both print"},
    {{"--html", "", "a.test"}, "--html needs the name of a file"},
    {{"--lang", "de", "a.test"}, "add --html FILE"},
    {{"--html", "x", "--lang", "fr", "a.test"}, "--lang is en or de, not fr"},
    {{"a.test", "--html"}, "--html needs a value"},
    {{"--html", "x"}, "usage: assay audit"},
};

START_TEST(options_that_do_not_fit_are_refused)
{
    const char *const *a = misuses[_i].args;
    struct run run = assay(server, "audit", a[0], a[1], a[2], a[3], a[4], NULL);
    ck_assert_msg(run.status == 2 && !*run.out, "%s: %d %s", run.command, run.status, run.out);
    expect_in(run.err, misuses[_i].says);
    ck_assert_int_ne(access("x", F_OK), 0);
}
END_TEST

/* Columns: FILE, below the directory if it is relative; why it cannot be written. */
static const char *const unwritable[][2] = {
    {"missing/report.html", "No such file or directory"},
    {"file/report.html", "Not a directory"},
    {"", "Is a directory"},
    {"/dev/null", "it is not a regular file"},
    {"dangling", "it is a symbolic link whose target does not exist"},
    {"loop", "it is a symbolic link whose target does not exist"},
};

START_TEST(no_page_is_graded_for_a_file_that_cannot_be_written)
{
    const char *path =
        unwritable[_i][0][0] == '/' ? unwritable[_i][0] : text("%s/%s", dir, unwritable[_i][0]);
    run_program("/usr/bin/touch", text("%s/file", dir), NULL);
    run_program("/bin/ln", "-sf", "missing.html", text("%s/dangling", dir), NULL);
    run_program("/bin/ln", "-sfT", "loop", text("%s/loop", dir), NULL);
    struct run run = assay(server, "audit", "--html", path, origin_url(origin, "/good"), NULL);
    ck_assert_msg(run.status == 2 && !*run.out, "%d %s", run.status, run.out);
    expect_in(run.err, text("assay: cannot write %s: %s\n", path, unwritable[_i][1]));
    ck_assert_uint_eq(origin_hits(origin, "/good"), 0);
    ck_assert_uint_eq(files_in(dir), 3);
}
END_TEST

/* ---- replacing a file ---- */

static void write_old(mode_t mode)
{
    FILE *old = fopen(file, "w");
    ck_assert(old != NULL && fputs("old", old) >= 0 && fclose(old) == 0);
    ck_assert_int_eq(chmod(file, mode), 0);
}

static mode_t mode_of_file(void)
{
    struct stat st;
    ck_assert_int_eq(lstat(file, &st), 0);
    return st.st_mode;
}

START_TEST(a_failed_write_keeps_the_file)
{
    write_old(0644);
    struct run run =
        run_program("/bin/sh", "-c",
                    text("ulimit -f 1; '%s' -c '%s' audit --html '%s' '%s'", assay_path(),
                         server->conf, file, origin_url(origin, "/good")),
                    NULL);
    ck_assert_msg(run.status == 2, "%d %s", run.status, run.out);
    expect_in(run.err, text("assay: cannot write %s: File too large", file));
    ck_assert_str_eq(contents(file), "old");
    ck_assert_uint_eq(files_in(dir), 1);
}
END_TEST

START_TEST(a_new_file_has_the_mode_of_umask_and_a_replaced_one_keeps_its_own)
{
    mode_t before = umask(027);
    html_of("/good", 0);
    umask(before);
    ck_assert_uint_eq(mode_of_file(), S_IFREG | 0640);
    write_old(0604);
    expect_in(html_of("/good", 0), "</html>");
    ck_assert_uint_eq(mode_of_file(), S_IFREG | 0604);
}
END_TEST

START_TEST(a_symbolic_link_stays)
{
    ck_assert_int_eq(mkdir(text("%s/below", server->dir), 0755), 0);
    char *target = text("%s/below/target.html", server->dir);
    run_program("/usr/bin/touch", target, NULL);
    ck_assert_int_eq(symlink(target, file), 0);
    expect_in(html_of("/good", 0), "</html>");
    ck_assert(S_ISLNK(mode_of_file()));
    expect_in(contents(target), "</html>");
}
END_TEST

static const int signals[] = {SIGINT, SIGTERM, SIGKILL};

static bool is_gone(void *arg)
{
    return kill(*(pid_t *)arg, 0) != 0;
}

START_TEST(an_interrupted_command_leaves_no_file_and_no_process)
{
    pid_t children[2];
    origin_held(origin, "/held");
    struct watched *command = watch_start(BY_PIPE, NULL, assay_path(), "-c", server->conf, "audit",
                                          "--html", file, origin_url(origin, "/held"), NULL);
    ck_assert(origin_asked(origin, "/held"));
    struct server as_server = {.pid = command->pid};
    ck_assert_uint_eq(server_children(&as_server, children, COUNT(children)), 1);
    kill(command->pid, signals[_i]);
    ck_assert_int_eq(watch_wait(command), 128 + signals[_i]);
    ck_assert(wait_until(is_gone, &children[0], 5000));
    watch_close(command);
    origin_release(origin, "/held");
    ck_assert_uint_eq(files_in(dir), 0);
}
END_TEST

START_TEST(grading_that_a_signal_ends_is_reported_and_keeps_the_file)
{
    pid_t children[2];
    write_old(0644);
    origin_held(origin, "/held");
    struct watched *command =
        watch_start(BY_TERMINAL, NULL, assay_path(), "-c", server->conf, "audit", "--html", file,
                    origin_url(origin, "/held"), NULL);
    ck_assert(origin_asked(origin, "/held"));
    struct server as_server = {.pid = command->pid};
    ck_assert_uint_eq(server_children(&as_server, children, COUNT(children)), 1);
    kill(children[0], SIGALRM);
    ck_assert_int_eq(watch_wait(command), 2);
    expect_in(command->said,
              "assay: signal 14 (Alarm clock) ended the grading: no page was written");
    watch_close(command);
    origin_release(origin, "/held");
    ck_assert_str_eq(contents(file), "old");
    ck_assert_uint_eq(files_in(dir), 1);
}
END_TEST

int main(void)
{
    suite_processes(2);
    Suite *suite = suite_create("audit_html");
    TCase *tcase = harness_case(suite, "a directory each");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_page_is_graded_into_a_file_of_its_own);
    tcase_add_loop_test(tcase, the_exit_status_and_the_printed_report_stay, 0, COUNT(results));
    tcase_add_test(tcase, the_page_names_the_final_address);
    tcase_add_test(tcase, text_of_the_page_is_text);
    tcase_add_loop_test(tcase, a_page_that_cannot_be_graded_says_why, 0, COUNT(failures));
    tcase_add_loop_test(tcase, the_language_is_chosen_or_that_of_the_environment, 0,
                        COUNT(languages));
    tcase_add_test(tcase, a_dash_prints_the_page_and_nothing_else);
    tcase_add_test(tcase, a_reader_who_leaves_does_not_prevent_the_file);
    tcase_add_loop_test(tcase, options_that_do_not_fit_are_refused, 0, COUNT(misuses));
    tcase_add_loop_test(tcase, no_page_is_graded_for_a_file_that_cannot_be_written, 0,
                        COUNT(unwritable));
    tcase_add_test(tcase, a_failed_write_keeps_the_file);
    tcase_add_test(tcase, a_new_file_has_the_mode_of_umask_and_a_replaced_one_keeps_its_own);
    tcase_add_test(tcase, a_symbolic_link_stays);
    tcase_add_loop_test(tcase, an_interrupted_command_leaves_no_file_and_no_process, 0,
                        COUNT(signals));
    tcase_add_test(tcase, grading_that_a_signal_ends_is_reported_and_keeps_the_file);
    return harness_main(suite);
}
