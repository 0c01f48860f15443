/* assayd: parses the command line, loads the configuration and runs the master. */
#include "core/conf/conf.h"
#include "core/base/log.h"
#include "core/master/master.h"
#include "core/process/process.h"
#include "core/conn/tls.h"
#include "core/process/try_file.h"
#include "core/http/route.h"
#include "config.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct arguments {
    struct master_options options;
    bool test, version, help;
};

static void print_help(FILE *out)
{
    fputs("usage: assayd [-c FILE] [-t] [--set KEY=VALUE]... [-V] [-h]\n"
          "\n"
          "Grades web pages and serves the HTTP API. Runs in the foreground.\n"
          "\n"
          "  -c FILE          configuration file; default " CONF_DEFAULT_PATH "; if that does\n"
          "                   not exist, the built-in defaults are used\n"
          "  -t               check the configuration and exit\n"
          "  --set KEY=VALUE  set one option, for example --set listen.0.address=127.0.0.1:0\n"
          "  -V               print the version and exit\n"
          "  -h               print this help and exit\n"
          "\n"
          "Exit status: 0 stopped as requested, 1 wrong configuration, 2 could not start,\n"
          "3 gave up because workers kept dying.\n"
          "\n"
          "Options of the configuration:\n",
          out);
    struct conf_option_view option;
    for (size_t i = 0; conf_option_at(i, &option); i++)
        fprintf(out, "  %s (%s; default %s; %s)\n      %s\n", option.key, option.type,
                option.initial, option.reload ? "reload" : "restart", option.help);
}

/* False: wrong usage, which is reported. ${sets} has space for every argument. */
static bool arguments_parse(int argc, char **argv, const char **sets, struct arguments *out)
{
    enum { SET = 256 };
    static const struct option names[] = {{"set", required_argument, NULL, SET},
                                          {"version", no_argument, NULL, 'V'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    *out = (struct arguments){
        .options = {.program = argv[0], .conf_path = CONF_DEFAULT_PATH, .sets = sets}};
    for (int option; (option = getopt_long(argc, argv, "c:tVh", names, NULL)) != -1;) {
        switch (option) {
        case 'c':
            out->options.conf_path = optarg;
            out->options.conf_required = true;
            break;
        case 't':
            out->test = true;
            break;
        case SET:
            sets[out->options.set_count++] = optarg;
            break;
        case 'V':
            out->version = true;
            break;
        case 'h':
            out->help = true;
            break;
        default:
            fputs("assayd: try assayd -h\n", stderr);
            return false;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "assayd: unexpected argument \"%s\"; try assayd -h\n", argv[optind]);
        return false;
    }
    return true;
}

/*
 * The program to start for an upgrade: the path as called, so that a symbolic link is followed
 * again; if called without a path, the path that the kernel knows.
 */
static char *program_path(const char *called)
{
    char dir[4096], path[8192];
    ssize_t n;
    if (called[0] == '/')
        return strdup(called);
    if (strchr(called, '/') != NULL && getcwd(dir, sizeof(dir)) != NULL) {
        snprintf(path, sizeof(path), "%s/%s", dir, called);
        return strdup(path);
    }
    n = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[n < 0 ? 0 : n] = '\0';
    return strdup(path);
}

/* Copies of the arguments: process titles overwrite argv, and HUP reads the arguments again. */
static bool keep_arguments(struct master_options *options, const char **sets)
{
    options->program = program_path(options->program);
    if (options->program == NULL)
        return false;
    options->conf_path = strdup(options->conf_path);
    bool kept = options->conf_path != NULL;
    for (size_t i = 0; i < options->set_count && kept; i++) {
        sets[i] = strdup(sets[i]);
        kept = sets[i] != NULL;
    }
    return kept;
}

/* The number of unusable certificates and keys. ${warn}: print warnings, too. */
static int try_tls(const struct conf *conf, bool warn)
{
    struct tls tls;
    char *said = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&said, &size);
    int mistakes = out == NULL ? 1 : tls_load(conf, &tls, out);
    if (out == NULL || fclose(out) != 0) {
        fputs("assayd: out of memory\n", stderr);
        return 1;
    }
    tls_free(&tls);
    if (warn || mistakes > 0)
        fputs(said, stderr);
    free(said);
    return mistakes;
}

static int serve(struct arguments *arguments)
{
    struct master_options *options = &arguments->options;
    struct conf *conf;
    int mistakes = conf_load(options->conf_path, options->conf_required, options->sets,
                             options->set_count, stderr, &conf);
    if (mistakes > 0) {
        fprintf(stderr, "assayd: the configuration has %d error%s\n", mistakes,
                mistakes == 1 ? "" : "s");
        return EXIT_CONFIGURATION;
    }
    mistakes = try_tls(conf, arguments->test);
    if (mistakes > 0) {
        conf_free(conf);
        return EXIT_CONFIGURATION;
    }
    if (arguments->test) {
        fprintf(stderr, "assayd: the configuration is valid\n");
        conf_free(conf);
        return EXIT_STOPPED;
    }
    log_open("master", conf->log_level, conf->log_format);
    options->conf = conf;
    return master_run(options);
}

int main(int argc, char **argv)
{
    static struct arguments arguments;
    static const char **sets;
    process_default_signals();
    process_title_init(argc, argv);
    conf_know_routes(route_known);
    conf_know_files(try_file);
    sets = calloc((size_t)argc, sizeof(*sets));
    int status = EXIT_START;
    if (sets != NULL && arguments_parse(argc, argv, sets, &arguments)) {
        if (arguments.help || arguments.version) {
            if (arguments.help)
                print_help(stdout);
            else
                puts("assayd " PACKAGE_VERSION);
            status = fflush(stdout) == 0 ? EXIT_STOPPED : EXIT_START;
        } else {
            status = keep_arguments(&arguments.options, sets) ? serve(&arguments) : EXIT_START;
        }
    }
    return status;
}
