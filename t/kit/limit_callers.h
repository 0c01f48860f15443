/*
 * Callers that send requests with one key to several servers in a loop, and count what a window of
 * their limit admits over all servers. A response tells its window by X-RateLimit-Reset.
 */
#ifndef ASSAY_T_KIT_LIMIT_CALLERS_H
#define ASSAY_T_KIT_LIMIT_CALLERS_H

#include "t/kit/harness.h"

#define CALLERS 6 /* two for each of three servers */
#define WINDOWS_MAX 64

struct window {
    long reset;
    unsigned admitted, refused;
};

/* What callers saw. */
struct tally {
    struct window windows[WINDOWS_MAX];
    size_t count;
    unsigned without_headers, unavailable;
    unsigned carried; /* sent after the end of the window that counted them */
};

/*
 * callers_start(servers, count, die): CALLERS threads, each of which asks one server. ${die}: the
 * servers may be killed and start again; a request without an answer is not counted.
 * callers_end: stops them; the sum of what they saw. callers_wait(count): until so many windows
 * have begun since callers_start; callers_windows: their number. callers_wait_refused: until a
 * limit refuses a request.
 */
void callers_start(struct server *const *servers, size_t count, bool die);
struct tally callers_end(void);
void callers_wait(long count);
long callers_windows(void);
void callers_wait_refused(void);

/*
 * expect_admitted(t, least, most): each window admitted at most ${most}, and those that began and
 * ended under load at least ${least}.
 */
void expect_admitted(const struct tally *t, unsigned least, unsigned most);

#endif
