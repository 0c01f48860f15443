/* Notes of operators. */
#ifndef ASSAY_STORE_RECORDS_NOTE_H
#define ASSAY_STORE_RECORDS_NOTE_H

#include "store/engine/txn.h"

/* note_look(k, v, out): is that key and value a note? */
bool note_look(MDB_val k, MDB_val v, struct store_note *out);

#endif
