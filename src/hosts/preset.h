/* hosts/preset.h: named sets of hosts: `--preset development`, and `--preset ci`
 *
 * development: package registries and code hosts, a fixed list; `cloche policy show --preset development` shows it.
 * ci: hosts of the CI server that a job runs for, from its own variables.
 * GitLab: CI_SERVER_URL (needed; and one label in front of its host), CI_REGISTRY, CI_DEPENDENCY_PROXY_SERVER,
 * CI_API_V4_URL, CI_SERVER_SHELL_SSH_HOST. GitHub: GITHUB_SERVER_URL, GITHUB_API_URL (needed), GITHUB_GRAPHQL_URL,
 * ACTIONS_RUNTIME_URL, ACTIONS_RESULTS_URL, ACTIONS_CACHE_URL.
 */
#ifndef CLOCHE_HOSTS_PRESET_H
#define CLOCHE_HOSTS_PRESET_H

#include "policy/policy.h"

/* Add what @p's preset means to its allowed hosts. As registry_open. 0, or -1 with @err: for ci outside of such a
 * job, and when a variable is missing or says no host. */
int preset_open(struct policy *p, struct err *err);

#endif
