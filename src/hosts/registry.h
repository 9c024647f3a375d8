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
 * What is slow to be asked is kept (registry_kept.h).
 */
#ifndef CLOCHE_HOSTS_REGISTRY_H
#define CLOCHE_HOSTS_REGISTRY_H

#include "policy/policy.h"

/* Ask for every entry of @p's registries; add what was found to its allowed hosts, and as the same clients' variables
 * (without user and password) to its environment, since the host's configuration is not inside. Call once, when all of
 * @p but policy_validate is done. Nothing is asked when the network is not open by name. 0, or -1 with @err. */
int registry_open(struct policy *p, struct err *err);

#endif
