/* launcher/launcher_signer.c: cloche-signer, which has the key that signs, where the configuration names one */
#include "launcher/launcher.h"

int
start_signer(struct launcher *l, struct err *err)
{
    char name[] = "cloche-signer", serve[] = "serve";
    char *argv[] = { name, serve, l->plan->signing_key, l->plan->signing_policy, NULL };
    int edge;

    if (l->plan->signing_key[0] == '\0' || l->lessers[LESSER_SIGNER].given_up)
        return 0;
    lesser_end(l, LESSER_SIGNER);
    edge = lesser_make(l, LESSER_SIGNER, argv, -1, err);
    if (edge < 0)
        return -1;
    (void)launcher_say(l, EDGE_SIGNER, NULL, edge);
    return 0;
}
