/* run/net_door.h: the socket on which a run's supervisor answers its owner
 *
 * One SOCK_SEQPACKET socket in the state folder, mode 0600. A request is one JSON object, its answer another. Whoever
 * may ask is judged by what the kernel says of it: the same user or root, seen in this pid namespace, in this user
 * namespace, and under no more system call filters than we are. So a process of a sandbox is refused even where it
 * could name the socket, which it cannot.
 */
#ifndef CLOCHE_RUN_NET_DOOR_H
#define CLOCHE_RUN_NET_DOOR_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

#define DOOR_CALLERS_MAX 16     /* at a time; the one that was there longest gives way */
#define DOOR_REQUEST_MAX 8192

struct net;
struct net_door;

/* Opens ID.sock in n->dir and watches it in n->loop. NULL with @err. */
struct net_door *door_open(struct net *n, const char *id, struct err *err);
void door_close(struct net_door *door);
/* The answer to a request that net_asked() could not answer at once; @caller as it was told. Takes @answer. */
void door_answer(struct net_door *door, uint64_t caller, json_t *answer);

/* The other side, net_ask.c: the answer to @request of the user @uid, or NULL when it comes later by door_answer(). */
json_t *net_asked(struct net *n, const json_t *request, uid_t uid, uint64_t caller);

#endif
