/* wall/trust.h: where this host keeps the certificates that its programs trust */
#ifndef CLOCHE_WALL_TRUST_H
#define CLOCHE_WALL_TRUST_H

#define TRUST_MAX (4U << 20)    /* bytes of one file of certificates */

/* The one file with all of them in PEM form, links resolved, or NULL: none of the usual names is there. The text is
 * static. */
const char *trust_bundle(void);

#endif
