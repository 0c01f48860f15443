/* The auditor process: it grades pages for the writer. It has no store and no keys. */
#ifndef ASSAY_AUDIT_AUDITOR_H
#define ASSAY_AUDIT_AUDITOR_H

struct process;

/* auditor_run(p): the life of the process; its exit status. */
int auditor_run(struct process *p);

#endif
