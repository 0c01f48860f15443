/*
 * SIGBUS: the kernel raises it when a mapped segment file was cut short or the disk cannot read it.
 * The log names the file, and the process ends. For workers and the writer.
 */
#ifndef ASSAY_PROCESS_BUS_ERROR_H
#define ASSAY_PROCESS_BUS_ERROR_H

#include "store/store.h"

/* bus_error_watch(store): handle SIGBUS for the files that ${store} has mapped. */
void bus_error_watch(struct store *store);

#endif
