/*
 * What the disk and LMDB allow: the puts of creating reports (puts.h), BATCH a commit.
 *
 *   run_lmdb DIR BATCH RECORDS WORKSPACE     DIR/data.mdb is made, or grows. Prints: seconds,
 *   records a second, bytes put per record
 */
#include "t/bench/bench.h"
#include "t/bench/client.h"
#include "t/bench/puts.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    size_t batch = argc == 5 ? strtoul(argv[2], NULL, 10) : 0,
           records = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
    if (batch == 0 || records == 0) {
        fprintf(stderr, "usage: run_lmdb DIR BATCH RECORDS WORKSPACE\n");
        return 2;
    }
    puts_open(argv[1], strtoul(argv[4], NULL, 10));
    double began = client_now();
    for (size_t done = 0; done < records;) {
        size_t n = records - done < batch ? records - done : batch;
        puts_begin();
        for (size_t i = 0; i < n; i++)
            puts_report(bench_page((unsigned)(done + i)));
        puts_commit(n);
        done += n;
    }
    double took = client_now() - began;
    printf("%.6f %.1f %.0f\n", took, (double)records / took, (double)puts_bytes / (double)records);
    puts_close();
    return 0;
}
