/* front/range.c: see range.h */
#include "front/range.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"

enum range
range_of(const char *header, uint64_t size, uint64_t *first, uint64_t *last)
{
    struct str from, to;
    const char *dash;
    uint64_t v;

    if (strncasecmp(header, "bytes=", 6) != 0 || (dash = strchr(header + 6, '-')) == NULL)
        return RANGE_WHOLE;
    from = (struct str){ header + 6, (size_t)(dash - header - 6) };
    to = str_of(dash + 1);
    if (from.n == 0) {          /* the last so many */
        if (!str_parse_u64(to, UINT64_MAX, &v))
            return RANGE_WHOLE;
        if (v == 0 || size == 0)
            return RANGE_OUTSIDE;
        *first = v < size ? size - v : 0;
        *last = size - 1;
        return RANGE_PART;
    }
    *last = UINT64_MAX;
    if (!str_parse_u64(from, UINT64_MAX, first) || (to.n > 0 && !str_parse_u64(to, UINT64_MAX, last)) || *first > *last)
        return RANGE_WHOLE;
    if (*first >= size)
        return RANGE_OUTSIDE;
    if (*last >= size)
        *last = size - 1;
    return RANGE_PART;
}
