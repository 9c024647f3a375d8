/* engine/begin.c: the first words to a sandbox's guest; apart, since not all who know engines speak to guests */
#include "base/cleanup.h"
#include "engine/engine.h"
#include "guest/client.h"

int
sandbox_begin(struct sandbox *sb, int *guest_fd, struct guest_client **client, struct err *err)
{
    cleanup_buf struct buf guard = BUF_INIT(MSG_GUARD_MAX);
    struct msg_setup m;

    if (sandbox_connect(sb, guest_fd, err) < 0 || guest_client_new(*guest_fd, client, err) < 0 ||
        sandbox_setup(sb, &guard, &m, err) < 0)
        return -1;
    return guest_client_setup(*client, &m, err);
}
