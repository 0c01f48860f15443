/* An open reader. */
#ifndef ASSAY_STORE_ANSWERS_READER_INTERNAL_H
#define ASSAY_STORE_ANSWERS_READER_INTERNAL_H

#include "store/answers/ranking_internal.h"

struct answers_reader {
    struct file f;
    struct scoring scoring;
    const struct answers_question *asked; /* during answers_ask */
};

#endif
