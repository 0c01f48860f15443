/* Schemas as table rows: name, type, description and rules of each field. */
#ifndef ASSAY_WEB_REFERENCE_SCHEMA_H
#define ASSAY_WEB_REFERENCE_SCHEMA_H

#include "core/web/reference_document.h"

/*
 * schema_row(name, given, where, required, description): one row. ${given}: its schema. ${where}:
 * "query" and so on for a parameter, else NULL.
 */
void schema_row(const char *name, json *given, const char *where, bool required,
                const char *description);

/*
 * schema_rows(given, prefix, of_body, depth): rows for the members of an object and of the items of
 * an array, recursively. ${prefix}: the path to ${given}, "" or ending with ".". ${of_body}: mark
 * required members. ${depth}: 0.
 */
void schema_rows(json *given, const char *prefix, bool of_body, unsigned depth);

/* schema_has_rows(given): schema_rows writes any. */
bool schema_has_rows(json *given);

#endif
