/*
 * The man pages, the sample configuration, completion and the packages, compared with the tables
 * and with what the programs print.
 */
#include "core/conf/conf.h"
#include "ratelimit/ratelimit.h"
#include "t/kit/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* The whole of ${file}, to be freed. ${as_man}: without the backslashes of \- and \&. */
static char *read_all(FILE *file, bool as_man)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(file);
    for (int c; (c = getc(file)) != EOF;)
        if (!as_man || c != '\\')
            putc(c, out);
    fclose(out);
    return text;
}

/* A line of text continues in the next one, unless that is a macro or empty. */
static void join_lines(char *text)
{
    bool macro = text[0] == '.';
    for (char *c = text; *c != '\0'; c++) {
        if (*c != '\n')
            continue;
        bool next_macro = c[1] == '.';
        if (!macro && !next_macro && c[1] != '\n' && c[1] != '\0')
            *c = ' ';
        macro = next_macro;
    }
}

static char *source_file(const char *name, bool as_man)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s", SRCDIR, name);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = read_all(file, as_man);
    fclose(file);
    if (as_man)
        join_lines(text);
    return text;
}

static char *output_of(const char *command)
{
    FILE *pipe = popen(command, "r");
    char *text = read_all(pipe, false);
    ck_assert_int_eq(pclose(pipe), 0);
    return text;
}

static void assert_has(const char *page, const char *text)
{
    ck_assert_msg(strstr(page, text) != NULL, "the page lacks: %s", text);
}

START_TEST(assay_yaml_5_describes_every_option)
{
    char *page = source_file("packaging/assay.yaml.5", true);
    struct conf_option_view option;
    for (size_t i = 0; conf_option_at(i, &option); i++) {
        char text[512];
        snprintf(text, sizeof(text), ".B %s\n%s; default %s; %s.\n.br\n%s\n", option.key,
                 option.type, option.initial, option.reload ? "reload" : "restart", option.help);
        assert_has(page, text);
    }
    free(page);
}
END_TEST

START_TEST(the_packages_configuration_is_the_sample)
{
    char *file = source_file("packaging/assay.yaml", false),
         *sample = output_of("./assay config sample");
    ck_assert_str_eq(file, sample);
    free(file);
    free(sample);
}
END_TEST

static char *dump_of(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    struct conf *conf;
    ck_assert_int_eq(conf_load(path, true, NULL, 0, stderr, &conf), 0);
    FILE *out = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(out);
    conf_dump(conf, out);
    ck_assert_int_eq(fclose(out), 0);
    conf_free(conf);
    return text;
}

/* A value other than the default in a line of the packages' configuration is lost with the line. */
START_TEST(the_packages_configuration_names_its_changed_values)
{
    char *file = source_file("packaging/assay.yaml", false), *rest_of_sample = NULL, *rest = NULL;
    char *sample = dump_of(SRCDIR "/packaging/assay.yaml"), *defaults = dump_of(NULL);
    char *body = strstr(file, "\n\n"), *b = strtok_r(defaults, "\n", &rest);
    int different = 0;
    ck_assert_ptr_nonnull(body);
    *body = '\0'; /* the comment at the top */
    for (char *a = strtok_r(sample, "\n", &rest_of_sample); a != NULL;
         a = strtok_r(NULL, "\n", &rest_of_sample)) {
        ck_assert_ptr_nonnull(b);
        char *key = a + strspn(a, " -");
        key[strcspn(key, ":")] = '\0';
        b[strspn(b, " -") + strlen(key)] = '\0';
        ck_assert_msg(strcmp(key, b + strspn(b, " -")) == 0, "%s and %s", key, b);
        if (strcmp(key + strlen(key) + 1, b + strspn(b, " -") + strlen(key) + 1) != 0) {
            assert_has(file, key);
            different++;
        }
        b = strtok_r(NULL, "\n", &rest);
    }
    ck_assert_int_gt(different, 0);
    free(file);
    free(sample);
    free(defaults);
}
END_TEST

/* A line of help, "--name TEXT: description", as in the page: name and help on separate lines. */
static void assert_option(const char *page, const char *line)
{
    char text[512];
    const char *colon = strstr(line, ": ");
    ck_assert_ptr_nonnull(colon);
    snprintf(text, sizeof(text), ".B %.*s\n%s\n", (int)(colon - line), line, colon + 2);
    assert_has(page, text);
}

START_TEST(assay_1_describes_every_command_and_option)
{
    char *page = source_file("packaging/assay.1", true), *help = output_of("./assay help all"),
         *rest = NULL, text[512];
    unsigned commands = 0;
    for (char *line = strtok_r(help, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const char *words = line + strspn(line, " ");
        if (words - line == 0)
            continue;
        if (words[0] == '-') {
            assert_option(page, words);
        } else if (words - line == 2) {
            snprintf(text, sizeof(text), ".B assay %s\n", words);
            assert_has(page, text);
            commands++;
        } else {
            assert_has(page, words);
        }
    }
    ck_assert_uint_gt(commands, 10);
    free(page);
    free(help);
}
END_TEST

/* The first words of the commands, each once in table order, and the help screen with them. */
START_TEST(the_short_help_has_every_subject_and_verb_on_one_screen)
{
    char *all = output_of("./assay help all"), *screen = output_of("./assay -h"), *rest = NULL;
    unsigned lines = 0, subjects = 0;
    for (char *line = strtok_r(all, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char subject[32], verb[32] = "", start[40];
        if (strncmp(line, "  ", 2) != 0 || line[2] == ' ' || line[2] == '-')
            continue;
        ck_assert_int_ge(sscanf(line, "%31s %31[a-z-]", subject, verb), 1);
        snprintf(start, sizeof(start), "\n  %s ", subject);
        const char *found = strstr(screen, start);
        ck_assert_msg(found != NULL, "no %s in\n%s", subject, screen);
        found += strlen(start);
        const char *verb_found = strstr(found, verb);
        ck_assert_msg(verb_found != NULL && verb_found < strchr(found, '\n'), "no %s %s in\n%s",
                      subject, verb, screen);
    }
    for (char *line = screen; *line != '\0'; line += strcspn(line, "\n") + 1, lines++) {
        ck_assert_msg(strcspn(line, "\n") <= 80, "longer than 80 columns: %.*s",
                      (int)strcspn(line, "\n"), line);
        subjects += line[0] == ' ' && line[2] >= 'a';
    }
    ck_assert_uint_le(lines, 24);
    ck_assert_uint_gt(subjects, 10);
    free(all);
    free(screen);
}
END_TEST

static const char *const assayd_options[] = {".B -c FILE\n", ".B -t\n", ".B --set KEY=VALUE\n",
                                             ".B -V\n", ".B -h\n"};

START_TEST(assayd_8_describes_every_option)
{
    char *page = source_file("packaging/assayd.8", true), *help = output_of("./assayd -h"),
         name[32];
    assert_has(page, assayd_options[_i]);
    snprintf(name, sizeof(name), "\n  %.*s", (int)strcspn(assayd_options[_i] + 3, "\n"),
             assayd_options[_i] + 3);
    assert_has(help, name);
    free(page);
    free(help);
}
END_TEST

START_TEST(the_counts_file_has_its_documented_name)
{
    char *page = source_file("packaging/assayd.8", true),
         *limits = source_file("packaging/LIMITS.md", false), path[64], text[80];
    ck_assert_int_eq(ratelimit_path("", path, sizeof(path)), 0);
    snprintf(text, sizeof(text), ".I %s\n", path + 1);
    assert_has(page, text);
    snprintf(text, sizeof(text), "`%s`", path + 1);
    assert_has(limits, text);
    free(page);
    free(limits);
}
END_TEST

/*
 * Completion offers every command of the help, word by word, and every option; missing ones are
 * printed.
 */
START_TEST(completion_offers_every_command_and_option)
{
    char *missing = output_of(
        "PATH=$PWD:$PATH bash -c '. " SRCDIR "/packaging/assay.bash-completion\n"
        "offered() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _assay; }\n"
        "lacks() { [[ \" ${COMPREPLY[*]} \" == *\" $1 \"* ]] || echo \"${COMP_WORDS[*]}: $1\"; }\n"
        "commands=0 typed=()\n"
        "while IFS= read -r line; do\n"
        "    case $line in\n"
        "    Options*) break ;;\n"
        "    \"      \"--*) line=${line#\"      \"} line=${line%%:*} option=${line%% *}; offered "
        "assay \"${typed[@]}\" --; lacks $option ;;\n"
        "    \"  \"[a-z]*)\n"
        "        typed=()\n"
        "        for word in $line; do\n"
        "            [[ $word != *[!a-z-]* ]] || break\n"
        "            offered assay \"${typed[@]}\" \"\"; lacks $word; typed+=($word)\n"
        "        done\n"
        "        ((++commands)) ;;\n"
        "    esac\n"
        "done < <(assay help all)\n"
        "((commands > 10)) || echo \"only $commands commands\"'");
    ck_assert_str_eq(missing, "");
    free(missing);
}
END_TEST

/*
 * The same for zsh's completion, if zsh is installed. Its words and the command that receives the
 * offers are replaced.
 */
START_TEST(zsh_completion_offers_every_command_and_option)
{
    char *missing = output_of(
        "command -v zsh >/dev/null || exit 0\n"
        "PATH=$PWD:$PATH zsh -f -c '\n"
        "compadd() { [[ $1 == -S ]] && shift 2; [[ $1 == -a ]] && offers=(${(P)2}) || "
        "offers=(\"${@[2,-1]}\"); }\n"
        "offered() { local -a words; words=(\"$@\"); local CURRENT=$# service=assay; source " SRCDIR
        "/packaging/assay.zsh-completion; asked=\"$*\"; }\n"
        "lacks() { (( ${offers[(Ie)$1]} )) || echo \"$asked: $1\"; }\n"
        "total=0 typed=()\n"
        "assay help all | while IFS= read -r line; do\n"
        "    case $line in\n"
        "    Options*) break ;;\n"
        "    \"      \"--*) line=${line#\"      \"} line=${line%%:*} option=${line%% *}; offered "
        "assay $typed --; lacks $option ;;\n"
        "    \"  \"[a-z]*)\n"
        "        typed=()\n"
        "        for word in ${=line}; do\n"
        "            [[ $word != *[^a-z-]* ]] || break\n"
        "            offered assay $typed \"\"; lacks $word; typed+=($word)\n"
        "        done\n"
        "        (( ++total )) ;;\n"
        "    esac\n"
        "done\n"
        "(( total > 10 )) || echo \"only $total commands\"'");
    ck_assert_str_eq(missing, "");
    free(missing);
}
END_TEST

/* a package build-depends on what bootstrap installs for building; every builder has a compiler */
static const struct {
    const char *list, *packaging, *before;
} builds[] = {{"DEBIAN=\"", "packaging/debian/control", "\n "},
              {"FEDORA=\"", "packaging/assay.spec.in", "\nBuildRequires:  "}};

START_TEST(the_packages_need_what_bootstrap_installs)
{
    char *bootstrap = source_file("bootstrap", false),
         *requested = source_file(builds[_i].packaging, false), *rest = NULL, text[128];
    char *list = strstr(bootstrap, builds[_i].list);
    unsigned found = 0;
    ck_assert_ptr_nonnull(list);
    list += strlen(builds[_i].list);
    list[strcspn(list, "\"")] = '\0';
    for (char *name = strtok_r(list, " \n", &rest); name != NULL;
         name = strtok_r(NULL, " \n", &rest)) {
        bool library = strstr(name, "-dev") != NULL && strcmp(name, "libc6-dev") != 0 &&
                       strcmp(name, "glibc-devel") != 0;
        if (!library)
            continue;
        snprintf(text, sizeof(text), "%s%s", builds[_i].before, name);
        assert_has(requested, text);
        found++;
    }
    ck_assert_uint_gt(found, 8);
    free(bootstrap);
    free(requested);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("man_pages");
    TCase *tcase = tcase_create("man");
    tcase_add_test(tcase, the_packages_configuration_names_its_changed_values);
    tcase_add_test(tcase, assay_yaml_5_describes_every_option);
    tcase_add_test(tcase, the_packages_configuration_is_the_sample);
    tcase_add_test(tcase, assay_1_describes_every_command_and_option);
    tcase_add_test(tcase, the_short_help_has_every_subject_and_verb_on_one_screen);
    tcase_add_loop_test(tcase, assayd_8_describes_every_option, 0,
                        (int)(sizeof(assayd_options) / sizeof(assayd_options[0])));
    tcase_add_test(tcase, the_counts_file_has_its_documented_name);
    tcase_add_test(tcase, completion_offers_every_command_and_option);
    tcase_add_test(tcase, zsh_completion_offers_every_command_and_option);
    tcase_add_loop_test(tcase, the_packages_need_what_bootstrap_installs, 0,
                        (int)(sizeof(builds) / sizeof(builds[0])));
    tcase_set_timeout(tcase, 60);
    suite_add_tcase(suite, tcase);
    return suite_run(suite);
}
