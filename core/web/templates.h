/*
 * The pages as HTML, made from core/web/templates by make_templates. Each appends to ${out}. Pure
 * functions.
 */
#ifndef ASSAY_WEB_TEMPLATES_H
#define ASSAY_WEB_TEMPLATES_H

#include "core/web/texts.h"
#include "core/web/views.h"

void template_report(struct buf *out, enum language language, const struct report_view *view);
void template_password(struct buf *out, enum language language, const struct password_view *view);
void template_error(struct buf *out, enum language language, const struct error_view *view);
void template_badge(struct buf *out, enum language language, const struct badge_view *view);

#endif
