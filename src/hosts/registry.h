/* hosts/registry.h: `--allow-registry NAME`: the hosts that the installed client of a registry is set up for
 *
 * No registry's host is written in this program. Each client is asked, outside the sandbox (ask.h), where it would go;
 * where the files lie elsewhere than the index, the index is asked by way of the client.
 *
 *   npm     `npm config list`: registry and those of scopes; `npm view` of one package: where its archive lies
 *   pypi    `pip config list`, or pip's own default: indexes; `pip install --dry-run` of one package: where its file is
 *   go      `go env`: GOPROXY, GOSUMDB
 *   debian  `apt-get indextargets`: the repositories
 *   cargo   `cargo fetch` of one package: the URLs that it asks, and the "dl" of the index
 *   maven   `mvn -X -o validate` of an empty project: its repositories
 *
 * What is slow to be asked is kept (registry_kept.h). What is not kept is asked by a process of its own (asker.h),
 * which may take minutes: who has something else to hear meanwhile takes the steps one by one.
 */
#ifndef CLOCHE_HOSTS_REGISTRY_H
#define CLOCHE_HOSTS_REGISTRY_H

#include <jansson.h>

#include "policy/policy.h"

/* Add what was found for every entry of @p's registries to its allowed hosts, and as the same clients' variables
 * (without user and password) to its environment, since the host's configuration is not inside. Call once, when all of
 * @p but policy_validate is done. Nothing is asked when the network is not open by name. It waits. 0, or -1 with
 * @err. */
int registry_open(struct policy *p, struct err *err);

/* The same in steps. @answers: an object {NAME: answer}, of what is known already.
 *
 * recall: those that are kept are added to @answers. 1: nothing is to be asked; 0: something is; -1 with @err.
 * ask: what is missing in @answers is asked, and added. For a process that asks and nothing else. 0, or -1 with @err.
 * apply: add what was found to @p. 0, or -1 with @err. */
int registry_recall(const struct policy *p, json_t *answers, struct err *err);
int registry_ask(const struct policy *p, json_t *answers, struct err *err);
int registry_apply(struct policy *p, const json_t *answers, struct err *err);

#endif
