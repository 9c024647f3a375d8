/* keeper/keeper_vacant.c: a keeper before it is one (launcher/launcher_keeper.c)
 *
 * It waits for the id of its sandbox. Until then it makes what every sandbox needs (engine_prepare), and does once what
 * it will do when it is asked to make one, and throws the result away: its memory has been touched then, and what it
 * needs of files is known to the kernel.
 */
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>

#include "keeper/keeper.h"
#include "launcher/serve.h"
#include "policy/policy.h"
#include "proto/edge_launcher.h"

_Static_assert(sizeof(KEEPER_NAME) == sizeof(KEEPER_VACANT), "the one is written over the other");

/* What is wrong with the settings is said when a sandbox is to be made of them. -1: this process is of no use. */
static int
rehearse(const struct keeper_live *k)
{
    cleanup_policy struct policy p = { .srt = false };

    return keeper_policy_read(k, &p, "", 0, NULL) < 0 ? 0 : engine_prepare(&p);
}

/* Everybody sees in its command line whose it is. */
static void
be_named(struct keeper_live *k, char **argv, const char *id)
{
    memcpy(argv[0], KEEPER_NAME, sizeof(KEEPER_NAME));
    memcpy(argv[1], id, EDGE_ID + 1);
    prctl(PR_SET_NAME, KEEPER_NAME);
    k->id = argv[1];
}

int
keeper_vacant(struct keeper_live *k, char **argv)
{
    struct pollfd launcher = { .fd = k->control.fd, .events = POLLIN };
    uint8_t room[FRAME_HEADER + EDGE_NAMED_MOST + 1];
    struct edge_only_id m;
    struct wire_in in;
    struct frame f;
    int r;

    if (poll(&launcher, 1, 0) == 0 && rehearse(k) < 0)
        return -1;
    r = packet_receive(k->control.fd, room, sizeof(room), &f, NULL, 0);
    if (r <= 0)
        return r;
    in = wire_in_of(f.payload, f.length);
    if (f.type != EDGE_NAMED || !edge_only_id_get(&in, &m))
        return -1;
    be_named(k, argv, m.id);
    return 1;
}
