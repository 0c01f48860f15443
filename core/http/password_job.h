/*
 * Password hashes off the event loop: one thread a worker, at most 16 waiting. The thread touches nothing but the password and the hash.
 */
#ifndef ASSAY_HTTP_PASSWORD_JOB_H
#define ASSAY_HTTP_PASSWORD_JOB_H

#include "core/async/thread_pool.h"

#define HASHER_QUEUE 16

#endif
