/* engine/native/ahead.c: see ahead.h */
#include "engine/native/ahead.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "engine/native/launch.h"
#include "wall/caps.h"
#include "wall/ns.h"

static int image = -1, network = -1;

/* Only root may have one without a user namespace that owns it. */
static int
make_network(void)
{
    cleanup_close int own = -1, ns = -1;

    if (geteuid() != 0 || !caps_give_identity() || (own = ns_own_network()) < 0)
        return 0;
    ns = ns_network(NULL);
    if (ns_enter_network(own, NULL) < 0)
        return -1;
    network = take_fd(&ns);
    return 0;
}

int
ahead_make(void)
{
    if (image < 0)
        image = launch_guest_image(NULL);
    return network < 0 ? make_network() : 0;
}

void
ahead_have_image(int fd)
{
    close_fd(&image);
    image = fd;
}

int
ahead_image(struct err *err)
{
    return image >= 0 ? take_fd(&image) : launch_guest_image(err);
}

int
ahead_network(void)
{
    return take_fd(&network);
}
