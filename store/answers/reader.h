/* An open reader. */
#ifndef ASSAY_ANSWERS_READER_H
#define ASSAY_ANSWERS_READER_H

#include "store/answers/ranking.h"

struct answers_reader {
    struct file f;
    struct scoring scoring;
    const struct answers_question *asked; /* during answers_ask */
};

#endif
