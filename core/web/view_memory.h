/* Memory of the struct that a template shows. */
#ifndef ASSAY_WEB_VIEW_MEMORY_H
#define ASSAY_WEB_VIEW_MEMORY_H

#include <stddef.h>

/* Memory that lives as long as the view. ${alloc} never returns NULL. */
struct view_memory {
    void *(*alloc)(void *of, size_t size);
    void *of;
};

#endif
