/*
 * assayd started by a parent that ignores and blocks every signal, as nohup, cron wrappers and CI
 * runners do in part. It obeys HUP, USR1, USR2, TERM, QUIT and INT and reaps its children.
 */
#include "t/kit/harness.h"

#include <signal.h>
#include <sys/wait.h>

static struct server *server;

/* The server's parent ignores and blocks every signal; the program behaves as usual. */
static void start_ignoring(void)
{
    struct sigaction before[NSIG];
    sigset_t all, mask;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask);
    for (int number = 1; number < NSIG; number++) {
        sigaction(number, NULL, &before[number]);
        signal(number, SIG_IGN);
    }
    server_spawn(server, NULL);
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &before[number], NULL);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    ck_assert_msg(server_ready(server, 20000), "%s", server_log(server));
    assay_ok(server, "workspace", "create", "main", NULL);
    server->key = key_new(server, "main", NULL);
}

static void setup(void)
{
    server = server_new(&(struct server_options){0});
    start_ignoring();
}

static void teardown(void)
{
    server_discard(server);
}

static bool links_begin_with(void *arg)
{
    struct response *r = http_get(server, "/api/v1/reports");
    bool same = !strncmp(str_at(r, "meta.path"), arg, strlen(arg));
    response_free(r);
    return same;
}

START_TEST(hup_reloads)
{
    server_configure(server, "base_url: http://reloaded.test");
    server_signal(server, SIGHUP);
    ck_assert_msg(wait_until(links_begin_with, "http://reloaded.test", 10000), "%s",
                  server_log(server));
    server_stop(server);
}
END_TEST

static const char *const mortals[] = {"assayd: worker 0", "assayd: writer", "assayd: auditor 0"};

START_TEST(a_killed_child_is_replaced)
{
    pid_t old = server_process(server, mortals[_i]);
    ck_assert_int_gt(old, 0);
    kill(old, SIGKILL);
    ck_assert_msg(server_replaces(server, mortals[_i], old, 8000), "%s", server_log(server));
    server_signal(server, SIGTERM);
    ck_assert_int_eq(server_wait(server, 10000), 0);
}
END_TEST

static bool takes_over(void *arg)
{
    (void)arg;
    char *path = text("%s/assayd.pid", server->run);
    FILE *file = fopen(path, "r");
    int pid = 0;
    free(path);
    if (file) {
        if (fscanf(file, "%d", &pid) != 1)
            pid = 0;
        fclose(file);
    }
    return pid > 0 && pid != server->pid;
}

static bool does_not_run(void *arg)
{
    return !process_alive(*(pid_t *)arg);
}

START_TEST(usr2_restarts_the_program)
{
    server_signal(server, SIGUSR2);
    ck_assert_msg(wait_until(takes_over, NULL, 20000), "%s", server_log(server));
    ck_assert_int_eq(server_wait(server, 20000), 0);
    struct run run = run_program("/bin/cat", text("%s/assayd.pid", server->run), NULL);
    pid_t new_master = (pid_t)atoi(run.out);
    kill(new_master, SIGTERM);
    ck_assert_msg(wait_until(does_not_run, &new_master, 10000), "%s", server_log(server));
}
END_TEST

static const int stops[] = {SIGTERM, SIGQUIT, SIGINT};

START_TEST(a_stop_ends_the_server_and_its_children)
{
    pid_t worker = server_process(server, "assayd: worker 0");
    server_signal(server, stops[_i]);
    ck_assert_msg(server_wait(server, 10000) == 0, "%s", server_log(server));
    ck_assert_msg(wait_until(does_not_run, &worker, 1000), "%s", server_log(server));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("signals");
    TCase *tcase = harness_case(suite, "inherited signals");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, hup_reloads);
    tcase_add_loop_test(tcase, a_killed_child_is_replaced, 0, (int)COUNT(mortals));
    tcase_add_test(tcase, usr2_restarts_the_program);
    tcase_add_loop_test(tcase, a_stop_ends_the_server_and_its_children, 0, (int)COUNT(stops));
    return harness_main(suite);
}
