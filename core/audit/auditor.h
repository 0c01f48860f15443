/*
 * The auditor process: jobs in, grading results out. It has neither the store nor any key.
 */
#ifndef ASSAY_AUDIT_AUDITOR_H
#define ASSAY_AUDIT_AUDITOR_H

struct process;

/* auditor_run(p): the life of the process; its exit status. */
int auditor_run(struct process *p);

#endif
