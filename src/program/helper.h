/* program/helper.h: cloche's own programs: where they are, and each as a process of its own
 */
#ifndef CLOCHE_PROGRAM_HELPER_H
#define CLOCHE_PROGRAM_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "wall/cgroup.h"

/* Where the program @name of cloche's own is: beside cloche's folder in a build tree (below @folder), in
 * libexec when installed. 0 or -1 with @err. */
int helper_find(const char *folder, const char *name, char out[4096], struct err *err);
/* It as a process of its own: the leader of a session, with no signal blocked, @env, /dev/null as descriptors 0 and 1,
 * and as 2 if @mute, one end of a pair of SOCK_SEQPACKET sockets as 3, @fds from 4 on (-1: /dev/null), and nothing
 * else of ours. */
struct helper {
    const char *folder, *name;
    char *const *env;           /* ended by NULL */
    const int *fds;
    size_t n_fds;               /* at most HELPER_FDS_MAX */
    const struct cgroup *cgroup;        /* where it is counted; NULL: where we are */
    bool mute;
};
#define HELPER_FDS_MAX 64
/* Its pid, and the other end of the sockets in *@control (O_CLOEXEC, the caller's); or -1 with @err. */
pid_t helper_start(const struct helper *h, int *control, struct err *err);
/* The same where the program is known and the sockets are there: @control is the end for it, borrowed. @sibling: it is
 * a child of our parent's. */
pid_t helper_spawn(const struct helper *h, const char *program, int control, bool sibling, struct err *err);
/* helper_lacks.c: the shared libraries that the program wants and this system does not have, with commas between, in
 * @out; false when there is none, or it cannot be told. Starts the dynamic linker once: for when a start has failed. */
bool helper_lacks(const char *folder, const char *name, char *out, size_t n);
/* The same as an error: -1 where one lacks. */
int helper_complete(const char *folder, const char *name, struct err *err);
/* what Debian 12 calls those of all programs of ours */
#define HELPER_PACKAGES "in Debian 12 libarchive13 libc-ares2 libcurl4 libgnutls30 libjansson4 libmicrohttpd12 " \
                        "libnghttp2-14 libpcre2-8-0 libsecp256k1-1 libsqlite3-0 libssl3 libyaml-0-2 zlib1g"

#endif
