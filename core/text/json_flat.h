/* Fast reader for JSON objects that hold only plain strings, as most bodies do. Pure functions. */
#ifndef ASSAY_TEXT_JSON_FLAT_H
#define ASSAY_TEXT_JSON_FLAT_H

#include "store/bytes.h"

struct json_member {
    struct str name, text;
};

/*
 * json_scan_flat(text, members, most): the members of an object of strings without escapes and with
 * different names, borrowed from ${text}. Returns their number; -1: it is anything else, or
 * malformed: use json_scan_read.
 */
int json_scan_flat(struct str text, struct json_member *members, int most);

#endif
