/* front/collect.h: files that a call of POST /v1/execute wants back */
#ifndef CLOCHE_FRONT_COLLECT_H
#define CLOCHE_FRONT_COLLECT_H

#include "front/front.h"

/* Whether @patterns, a body's member `collect`, is such a list; then they are wanted. False: said. */
bool collect_well(struct request *r, const json_t *patterns);
/* The command of @r has ended so. True: what is wanted is being read; then the command's answers hear its end again. */
bool collect_begins(struct request *r, uint8_t flags, uint32_t code, uint64_t ms);
/* What was read; NULL: nothing is wanted. @cut: there was more. */
json_t *collect_files(const struct request *r, bool *cut);
size_t collect_held(const struct request *r);       /* bytes of memory */
void collect_free(struct request *r);

#endif
