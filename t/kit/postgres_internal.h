/* Shared by the files of the kit for PostgreSQL. */
#ifndef ASSAY_T_KIT_POSTGRES_INTERNAL_H
#define ASSAY_T_KIT_POSTGRES_INTERNAL_H

#include "t/kit/postgres.h"

/*
 * postgres_program(name): the path of a program of the newest installed version, valid until the
 * fourth call after it; NULL: not installed.
 */
const char *postgres_program(const char *name);

/* postgres_data(p): its data directory. postgres_fill: puts a new database cluster there. */
char *postgres_data(const struct postgres *p);
void postgres_fill(struct postgres *p);

#endif
