/* egress/strip.h: fields of answers that the sandbox does not get
 *
 * Names are compared without case, and "-", "_" and "." are alike: many a program takes one for the other. What is
 * stripped is gone from heads (also of 1xx), and from trailers; bodies are not touched. Answers of cloche-egress's own
 * are not concerned.
 */
#ifndef CLOCHE_EGRESS_STRIP_H
#define CLOCHE_EGRESS_STRIP_H

#include "policy/policy.h"
#include "wire/http1.h"

struct strip {
    size_t n;
    char names[POLICY_STRIP_MAX][POLICY_STRIP_NAME_MAX + 1];
};

/* 0, or -1: no room, or no name of a field. */
int strip_add(struct strip *s, struct str name);
/* @head without those fields, in @room; @head itself where @s is NULL or has no names. */
const struct http1_head *strip_head(const struct strip *s, const struct http1_head *head, struct http1_head *room);

#endif
