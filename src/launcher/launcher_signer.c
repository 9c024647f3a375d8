/* launcher/launcher_signer.c: cloche-signer, which has the key that signs, where the configuration names one
 *
 * It belongs to one warden and ends with it, as cloche-webhook does.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "launcher/launcher.h"

int
start_signer(struct launcher *l, struct err *err)
{
    char name[] = "cloche-signer", serve[] = "serve";
    char *argv[] = { name, serve, l->plan->signing_key, l->plan->signing_policy, NULL };
    cleanup_close int theirs = -1;
    int pair[2];

    if (l->plan->signing_key[0] == '\0')
        return 0;
    lesser_end(&l->signer);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return err_sys(err, errno, "serve.start", "socketpair");
    theirs = pair[1];
    l->signer.pid = launcher_make(l, &(struct maker_order){
        .program = MAKE_SIGNER, .words = argv, .log = l->log, .fds = { theirs }, .n_fds = 1 }, err);
    if (l->signer.pid < 0) {
        close(pair[0]);
        return -1;
    }
    (void)launcher_say(l, EDGE_SIGNER, NULL, pair[0]);
    return 0;
}
