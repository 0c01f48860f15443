/*
 * The most that processes like ours can do: a bare libh2o handler hands each create through a ring
 * in shared memory to a bare LMDB loop in another process, which commits whatever waits; the
 * answer, always the same, goes out when that is durable. No key, no limit, no form, no record read
 * back, no exactly-once.
 *
 *   run_ideal PORT RESPONSE-FILE DIR BATCH     PORT and RESPONSE-FILE as of run_bare; DIR is the
 *   bare store's. A request's body ends with the number of its
 *                                              page. A commit waits until BATCH are there, or
 *                                              nothing comes for a while.
 *
 * Who sleeps is woken by an eventfd, who is awake looks by itself. The file of the store has its
 * blocks before the first request, so that a commit waits for its bytes alone.
 */
#include "t/bench/canned.h"
#include "t/bench/puts.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define SLOTS 4096 /* more than there are connections */
#define LULL_MS 2
#define FILE_MIB 256 /* more than the benchmark's creates take */

static struct ring {
    _Atomic uint64_t asked __attribute__((aligned(64))); /* by the handler: so many */
    /* the loop sleeps until so many are asked */
    _Atomic uint64_t wanted __attribute__((aligned(64)));
    _Atomic uint64_t durable __attribute__((aligned(64))); /* by the loop: the first of them */
    _Atomic bool writer_sleeps __attribute__((aligned(64))), handler_sleeps;
    unsigned page[SLOTS];
} * ring;

static int to_writer, to_handler; /* eventfds */

static void wake(_Atomic bool *sleeps, int fd)
{
    if (atomic_exchange(sleeps, false))
        eventfd_write(fd, 1);
}

/* ---- the loop ---- */

/* for the ${wanted}-th, or a while without any; not before there is one */
static void wait_for(uint64_t done, uint64_t wanted)
{
    struct pollfd woken = {to_writer, POLLIN, 0};
    eventfd_t count;
    atomic_store(&ring->wanted, wanted);
    for (uint64_t asked; (asked = atomic_load(&ring->asked)) < wanted;) {
        atomic_store(&ring->writer_sleeps, true);
        if (atomic_load(&ring->asked) < wanted && poll(&woken, 1, LULL_MS) == 0 && asked > done &&
            atomic_load(&ring->asked) == asked)
            break;
        atomic_store(&ring->writer_sleeps, false);
        eventfd_read(to_writer, &count);
    }
    atomic_store(&ring->writer_sleeps, false);
}

static void take_blocks(const char *dir)
{
    static char zeros[1 << 20];
    char path[4096];
    snprintf(path, sizeof(path), "%s/data.mdb", dir);
    int fd = open(path, O_WRONLY | O_APPEND);
    for (int i = 0; i < FILE_MIB; i++)
        if (write(fd, zeros, sizeof(zeros)) != sizeof(zeros))
            exit(1);
    fsync(fd);
    close(fd);
}

static void write_all(const char *dir, uint64_t batch)
{
    uint64_t done = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    puts_open(dir, 1);
    take_blocks(dir);
    for (;;) {
        wait_for(done, done + batch);
        uint64_t first = done;
        puts_begin();
        for (; done < atomic_load(&ring->asked); done++)
            puts_report(ring->page[done % SLOTS]);
        puts_commit(done - first);
        atomic_store(&ring->durable, done);
        wake(&ring->handler_sleeps, to_handler);
    }
}

/* ---- the handler ---- */

static h2o_req_t *held[SLOTS];
static uint64_t answered;

static int on_req(h2o_handler_t *self, h2o_req_t *req)
{
    uint64_t n = atomic_load_explicit(&ring->asked, memory_order_relaxed);
    char digits[9] = "0";
    (void)self;
    if (req->entity.len >= 8)
        memcpy(digits, req->entity.base + req->entity.len - 8, 8);
    held[n % SLOTS] = req;
    ring->page[n % SLOTS] = (unsigned)strtoul(digits, NULL, 10);
    atomic_store(&ring->asked, n + 1);
    return 0;
}

static void on_durable(h2o_socket_t *socket, const char *err)
{
    (void)err;
    h2o_buffer_consume(&socket->input, socket->input->size);
    for (uint64_t durable = atomic_load(&ring->durable); answered < durable; answered++)
        canned_send(held[answered % SLOTS]);
}

/*
 * All that a turn took in is handed over at once. Answers are sent within a turn only: the library
 * goes on with their connections at its end.
 */
static void handle_all(h2o_evloop_t *loop)
{
    h2o_socket_t *socket = h2o_evloop_socket_create(loop, to_handler, 0);
    h2o_socket_read_start(socket, on_durable);
    do {
        if (atomic_load(&ring->asked) >= atomic_load(&ring->wanted))
            wake(&ring->writer_sleeps, to_writer);
        atomic_store(&ring->handler_sleeps, true);
        if (atomic_load(&ring->durable) > answered)
            wake(&ring->handler_sleeps, to_handler);
    } while (h2o_evloop_run(loop, INT32_MAX) == 0);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: run_ideal PORT RESPONSE-FILE DIR BATCH\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN);
    canned_read(argv[2]);
    ring = mmap(NULL, sizeof(*ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    to_writer = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    to_handler = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pid_t writer = ring == MAP_FAILED || to_writer < 0 || to_handler < 0 ? -1 : fork();
    if (writer < 0) {
        perror("run_ideal");
        return 1;
    }
    if (writer == 0)
        write_all(argv[3], strtoul(argv[4], NULL, 10));
    handle_all(canned_loop(canned_listen(argv[1]), on_req));
    return 0;
}
