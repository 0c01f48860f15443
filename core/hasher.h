/*
 * Password hashes off the event loop: one thread a worker, at most 16 waiting. The thread touches nothing but the password and the hash.
 */
#ifndef ASSAY_HASHER_H
#define ASSAY_HASHER_H

#include "core/away.h"

#define HASHER_QUEUE 16

#endif
