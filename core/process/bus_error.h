/*
 * SIGBUS by a segment file: the system raises it where a mapped file was cut short or its disk
 * cannot read it. The log names the file, and the process ends. Worker and writer processes.
 */
#ifndef ASSAY_PROCESS_BUS_ERROR_H
#define ASSAY_PROCESS_BUS_ERROR_H

#include "store/store.h"

/* bus_error_watch(store): from now on, for the files that ${store}'s environment has mapped. */
void bus_error_watch(struct store *store);

#endif
