#ifndef ASSAY_BASE_SANITIZER_H
#define ASSAY_BASE_SANITIZER_H

/* SANITIZED: built with a sanitizer, which maps terabytes and has signal handlers of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#endif
