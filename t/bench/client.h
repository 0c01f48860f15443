/*
 * What the benchmarks' clients of loopback share. Whatever fails ends the program with a sentence.
 */
#ifndef ASSAY_BENCH_CLIENT_H
#define ASSAY_BENCH_CLIENT_H

#include <stddef.h>
#include <stdint.h>

double client_now(void); /* seconds, CLOCK_MONOTONIC */
void client_wait_till(double due);

/*
 * client_dial(port): a connection that sends at once. client_most_files(): as many as this process
 * may have.
 */
int client_dial(uint16_t port);
void client_most_files(void);

/* client_sort(values, count): so that values[count * 99 / 100] is a percentile. */
void client_sort(double *values, size_t count);

void client_die(const char *what) __attribute__((noreturn));

#endif
