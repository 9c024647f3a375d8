/* engine/native/built_on.h: what engines share that are built on this one (oci/, docker/, microvm/)
 *
 * None of them has a light mode, shows the host's tree or its network, or lets a sandbox make user namespaces; all of
 * them need root. What differs is how they say it.
 */
#ifndef CLOCHE_ENGINE_NATIVE_BUILT_ON_H
#define CLOCHE_ENGINE_NATIVE_BUILT_ON_H

#include "engine/engine.h"
#include "engine/native/native.h"

struct built_on {
    const char *name;           /* the engine's; its codes are this, a dot and a word */
    const char *network, *no_network;   /* of the host's network: what it says, and what to use instead */
    const char *no_root;        /* what to do without root */
};

/* "the engine NAME @what", with @instead as the way out. -1. */
int built_on_refuse(const struct built_on *e, const char *code, const char *what, const char *instead,
                    struct err *err);
/* Said before anything is made: what such an engine does not do whatever the host is. */
int built_on_check(const struct built_on *e, const struct policy *p, struct err *err);
/* And of the finished plan; and of what was made, where the guest cannot watch the memory as native's can. */
int built_on_check_plan(const struct built_on *e, const struct native_plan *plan, struct err *err);
int built_on_check_memory(const struct built_on *e, const struct native *sb, struct err *err);

/* The report of an engine with the @n features @info, of which the first is that root, and the last a light mode:
 * @no_light says why there is none. The promises are the native engine's, and all features between are there. */
int built_on_probe(const struct feature_info *info, size_t n, const char *no_light, struct engine_report *out,
                   struct err *err);
/* That a feature is not there, or a promise not kept. */
void built_on_missing(struct feature_state *f, const char *why, const char *remedy);
void built_on_not_kept(struct engine_report *out, enum promise p, const char *why, const char *remedy);

#endif
