/* wire/multipart.h: forms with files (multipart/form-data, RFC 7578 and RFC 2046 5.1), read strictly
 *
 * Pure, and without memory of its own: what is found is borrowed from the body.
 */
#ifndef CLOCHE_WIRE_MULTIPART_H
#define CLOCHE_WIRE_MULTIPART_H

#include "base/str.h"

#define MULTIPART_BOUNDARY 70       /* bytes: RFC 2046 5.1.1 */
#define MULTIPART_HEAD     16384    /* of the headers of one part */
#define MULTIPART_TEXT     4096     /* of a name, or a file's */

struct multipart {
    struct str left;
    char line[MULTIPART_BOUNDARY + 4];      /* CR LF "--" and the boundary */
    size_t line_n;
    bool ended;
    const char *fault;
};

struct multipart_part {
    char name[MULTIPART_TEXT + 1], file[MULTIPART_TEXT + 1];
    bool is_file;                   /* it has a file's name, be it "" */
    struct str content;
};

/* NULL; or what is wrong. */
const char *multipart_begin(struct multipart *m, const char *content_type, struct str body);
/* 1: a part; 0: there is none any more, and nothing behind the last one; -1: m->fault says what is wrong. */
int multipart_next(struct multipart *m, struct multipart_part *out);

#endif
