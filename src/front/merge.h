/* front/merge.h: JSON merge patch (RFC 7396) */
#ifndef CLOCHE_FRONT_MERGE_H
#define CLOCHE_FRONT_MERGE_H

#include <jansson.h>

/* What @patch makes of @target (NULL: nothing is there): a new reference, or NULL without memory. @target is taken and
 * may be changed, @patch is not. */
json_t *json_merge_patch(json_t *target, json_t *patch);

#endif
