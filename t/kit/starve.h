/*
 * A workspace that tries to occupy all auditors: hosts that never answer, and several ways to make
 * the server fetch from them. Used by t/server/fairness.c.
 */
#ifndef ASSAY_T_STARVE_KIT_H
#define ASSAY_T_STARVE_KIT_H

#include "t/kit/harness.h"

/*
 * tar_start(): a process that accepts connections on one port of every address in 127.0.0.0/8 and
 * never answers. tar_url: a page of host ${number}. tar_open: its open connections; tar_total: all.
 */
struct tar;
struct tar *tar_start(void);
void tar_stop(struct tar *tar);
uint16_t tar_port(const struct tar *tar);
char *tar_host(unsigned number); /* 127.9.0.1 */
char *tar_url(const struct tar *tar, unsigned number);
unsigned tar_open(const struct tar *tar);
unsigned tar_total(const struct tar *tar);

enum attack {
    ATTACK_PAIRS,    /* reports of slow hosts, deleted directly after creation */
    ATTACK_BACKLOG,  /* as many reports of slow hosts as may be pending */
    ATTACK_ONE_HOST, /* the same slow host again and again */
    ATTACK_HELD,     /* slow hosts, each with a caller that waits for the grade */
    ATTACK_UPDATES,  /* update=1 of reports of a fast host, without end */
    ATTACK_PROJECTS, /* slow hosts whose project is deleted directly */
    ATTACKS
};
extern const char *const attack_names[ATTACKS];

/*
 * attack_start(s, attack, tar, quick): attacks from its own workspace, over several connections,
 * until attack_stop; returns when the attack runs. ${quick}: the page that ATTACK_UPDATES grades.
 * attack_forgiven(s): deletes that workspace.
 */
struct attacker;
struct attacker *attack_start(const struct server *s, enum attack attack, const struct tar *tar,
                              const char *quick);
void attack_stop(struct attacker *a);
void attack_forgiven(const struct server *s);

#endif
