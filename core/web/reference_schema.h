/*
 * Schemas as rows of a table: name, type, description and rules of each field.
 */
#ifndef ASSAY_REFERENCE_SCHEMA_H
#define ASSAY_REFERENCE_SCHEMA_H

#include "core/web/reference_document.h"

/*
 * schema_row(name, given, where, required, description):
 * One row. ${given}: its schema. ${where}: "query" and so on for a parameter, else NULL.
 */
void schema_row(const char *name, json *given, const char *where, bool required,
                const char *description);

/*
 * schema_rows(given, prefix, of_body, depth):
 * Rows for the members of an object, those of the items of an array, and so on. ${prefix}: the path
 * to ${given}, "" or ending with ".". ${of_body}: mark required members. ${depth}: 0.
 */
void schema_rows(json *given, const char *prefix, bool of_body, unsigned depth);

/* schema_has_rows(given): does schema_rows write any? */
bool schema_has_rows(json *given);

#endif
