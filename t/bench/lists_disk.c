/*
 * What the disk and the machine do to a commit of next to nothing while something else is measured:
 * `run_lists_disk FILE` writes a page of FILE over and syncs it, rests for as long and some, and so
 * on; at SIGTERM it prints the longest one in milliseconds.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define REST_MS 10

static volatile sig_atomic_t ended;

static void on_term(int number)
{
    (void)number;
    ended = 1;
}

static double now_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    static char page[4096];
    double most = 0;
    int fd = argc == 2 ? open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0 || pwrite(fd, page, sizeof(page), 0) != (ssize_t)sizeof(page) || fsync(fd) != 0) {
        fprintf(stderr, "usage: run_lists_disk FILE\n");
        return 1;
    }
    signal(SIGTERM, on_term);
    while (!ended) {
        double began = now_ms();
        page[0]++;
        if (pwrite(fd, page, sizeof(page), 0) != (ssize_t)sizeof(page) || fdatasync(fd) != 0)
            return 1;
        double took = now_ms() - began;
        most = took > most ? took : most;
        struct timespec rest = {.tv_nsec = REST_MS * 1000000};
        nanosleep(&rest, NULL);
    }
    printf("%.2f\n", most);
    return 0;
}
