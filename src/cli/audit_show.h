/* cli/audit_show.h: entries of the audit record on standard output, for `cloche audit` */
#ifndef CLOCHE_CLI_AUDIT_SHOW_H
#define CLOCHE_CLI_AUDIT_SHOW_H

#include <jansson.h>

#include "audit/feed.h"
#include "audit/filter.h"
#include "audit/ocsf.h"
#include "audit/scan.h"

enum show_form { SHOW_TEXT, SHOW_JSON, SHOW_OCSF };

struct show_options {
    struct audit_filter filter;
    enum show_form form;
    size_t limit;               /* the newest so many; of use when @limited, or in show_tail */
    bool limited;
};

/* What the filter lets through, oldest first; with a limit the newest of it. Lines that are no entries are told on
 * stderr. 0 or -1 with @err. */
int show_all(struct scan *s, const struct show_options *o, struct err *err);
/* The newest o->limit; then, with @folder, those that are appended to the record there, until a signal ends us. */
int show_tail(struct scan *s, const char *folder, const struct show_options *o, struct err *err);

#endif
