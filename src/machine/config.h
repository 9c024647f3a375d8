/* machine/config.h: what cloche-machine is told, as a file of its initramfs
 *
 * Lines of "KEY VALUE". The host writes it, and nobody else: a line that is not understood is an error.
 */
#ifndef CLOCHE_MACHINE_CONFIG_H
#define CLOCHE_MACHINE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

/* In the initramfs. */
#define MACHINE_CONFIG  "/config"
#define MACHINE_MODULES "/modules"      /* "00", "01", ... in the order in which they are loaded; "00z": compressed */
#define MACHINE_EMPTY   "/empty"        /* a file and a folder that lie over what is closed in /proc */
#define MACHINE_EMPTY_D "/empty.d"
#define MACHINE_ROOT    "/root"         /* where the tree is mounted */
#define MACHINE_TAG     "root"          /* of its virtiofs */

/* The serial ports of the machine, by their number. */
#define MACHINE_PORT_GUEST 1            /* the guest's transport */
#define MACHINE_PORT_END   2            /* at the end: MACHINE_ENDED and a status, or MACHINE_FAILED and why */
#define MACHINE_PORT_NET   3            /* connections (mux.h), where there are any */
#define MACHINE_ENDED  's'
#define MACHINE_FAILED 'e'
#define MACHINE_FD_HIGH 20      /* from here on descriptors are nobody's by number */

#define MACHINE_TEXT_MAX 255

struct machine_config {
    uint32_t uid, gid;                  /* of the guest and its commands */
    uint64_t nproc, nofile;             /* 0: none */
    uint64_t inodes;                    /* that may be remembered: what gives the tree has each of them open */
    uint64_t net;                       /* 1: connections are captured, and carried */
    uint64_t docker;                    /* 1: a Docker Engine is started, and has all of the machine */
    char ports[MACHINE_TEXT_MAX + 1];   /* ... also of these, each with a blank after it */
    char hostname[MACHINE_TEXT_MAX + 1];
    char guest[MACHINE_TEXT_MAX + 1];   /* paths in the tree */
    char filter[MACHINE_TEXT_MAX + 1];  /* "": none, and the guest keeps every capability */
    char workdir[MACHINE_TEXT_MAX + 1];
};

/* Append it as text to @out (buf_ok() tells). No text has a line's end in it. */
void machine_config_put(const struct machine_config *c, struct buf *out);
/* Pure. False: it is none. */
bool machine_config_read(struct str text, struct machine_config *out);

#endif
