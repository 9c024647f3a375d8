/* prove/prove_posture_etc.c: what a private root's /etc tells of the host (see prove.h) */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "match/path.h"
#include "prove/prove.h"
#include "wall/capture.h"

/* The host's names in /etc that a private root has. Said here again: the engine's own table would hide what a slip
 * had put into it. */
static bool
known_in_etc(const struct policy *p, const char *name)
{
    static const char *const names[] = {
        "ld.so.cache", "ld.so.conf", "ld-musl-x86_64.path", "alternatives", "ssl", "pki", "crypto-policies",
        "localtime", "timezone", "services", "protocols", "bash.bashrc", "inputrc", "fonts", "java-17-openjdk",
        "java-21-openjdk", "java", "os-release", "debian_version", "lsb-release", "redhat-release",
    };
    static const char *const with_network[] = { "resolv.conf", "hosts", "nsswitch.conf", "gai.conf" };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (path_within(str_of(name), str_of(names[i])))
            return true;
    for (size_t i = 0; p->network.v == NETWORK_HOST && i < ARRAY_LEN(with_network); i++)
        if (strcmp(name, with_network[i]) == 0)
            return true;
    return false;
}

bool
prove_etc_is_given(const struct policy *p, const char *path)
{
    return strncmp(path, "/etc/", 5) == 0 && known_in_etc(p, path + 5);
}

/* Does anything of the policy's lie in /etc under @name? */
static bool
of_policy_in_etc(const struct policy *p, const char *name)
{
    const struct policy_list *lists[] = { &p->allow_read, &p->allow_write, &p->deny_read, &p->deny_write,
                                          &p->unix_sockets };
    char path[300];

    snprintf(path, sizeof(path), "/etc/%s", name);
    for (size_t i = 0; i < p->n_binds; i++)
        if (path_within(str_of(p->binds[i].dest), str_of(path)))
            return true;
    for (size_t i = 0; i < p->n_secret_files; i++)
        if (path_within(str_of(p->secret_files[i].path), str_of(path)))
            return true;
    for (size_t l = 0; l < ARRAY_LEN(lists); l++)
        for (size_t i = 0; i < lists[l]->n; i++)
            if (path_within(str_of(lists[l]->v[i].value), str_of(path)))
                return true;
    return false;
}

static bool
known_etc_name(const struct proof *p, const char *name)
{
    static const char *const own[] = { "passwd", "group", "hostname", "hosts", "nsswitch.conf", "resolv.conf" };

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (strcmp(name, own[i]) == 0)
            return true;
    return known_in_etc(p->policy, name) || of_policy_in_etc(p->policy, name);
}

static bool
own_account(const struct proof *p, const char *name)
{
    (void)p;
    return strcmp(name, "root") == 0 || strcmp(name, "agent") == 0 || strcmp(name, "nobody") == 0;
}

/* What a private root's own /etc/hosts and /etc/resolv.conf are made of. */
static bool
own_name(const struct proof *p, const char *word)
{
    static const char *const words[] = { "127.0.0.1", "::1", "127.0.1.1", "localhost", "ip6-localhost", "nameserver",
                                         CAPTURE_SERVICE_ADDRESS, "options", "timeout:2", "attempts:2" };

    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return strcmp(word, p->policy->hostname.p != NULL ? p->policy->hostname.p : "cloche") == 0;
}

/* A file that was copied has an inode of its own: mounts and needles do not show it. */
void
posture_check_etc(struct proof *p, const json_t *posture, const char *when)
{
    const json_t *names = json_object_get(posture, "etc"), *accounts = json_object_get(posture, "accounts");
    const json_t *hosts = json_object_get(posture, "names");
    const char *odd = NULL;

    if (!proof_private_root(p))
        return;
    bool ok = posture_all(names, known_etc_name, p, &odd) && json_array_size(names) > 0;
    proof_add(p, "posture.etc.names", "files", "R03", "/etc has no more of the host than programs need to start", when,
              ok ? CHECK_HELD : CHECK_SURPRISE, odd == NULL ? "%zu names" : "%zu names, among them %.200s",
              json_array_size(names), odd != NULL ? odd : "");
    if (of_policy_in_etc(p->policy, "passwd"))
        return;
    odd = NULL;
    ok = posture_all(accounts, own_account, p, &odd) && json_array_size(accounts) > 0;
    proof_add(p, "posture.etc.accounts", "files", "R03", "no account of the host is told", when,
              ok ? CHECK_HELD : CHECK_SURPRISE, odd == NULL ? "%zu accounts" : "%zu accounts, among them %.60s",
              json_array_size(accounts), odd != NULL ? odd : "");
    if (!proof_own_network(p) || of_policy_in_etc(p->policy, "hosts") || of_policy_in_etc(p->policy, "resolv.conf"))
        return;
    odd = NULL;
    ok = posture_all(hosts, own_name, p, &odd) && json_array_size(hosts) > 0;
    proof_add(p, "posture.etc.hosts", "network", "R12", "no name or resolver of the host's network is told", when,
              ok ? CHECK_HELD : CHECK_SURPRISE, odd == NULL ? "%zu words" : "%zu words, among them %.60s",
              json_array_size(hosts), odd != NULL ? odd : "");
}
