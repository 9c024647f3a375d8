/* engine/native/plan_host.c: the host's tree for a host view made by root
 *
 * An ordinary user's child clones the whole tree recursively: it can read what its user can. As root the sandbox's
 * user owns nothing, so each real file system is cloned with root's files shown as the sandbox's own, read-only: the
 * command sees what the caller sees, as it would for any user. Kernel file systems (sysfs, cgroup ...) are left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "engine/native/mountinfo.h"
#include "engine/native/plan.h"
#include "engine/native/plan_real.h"
#include "match/path.h"
#include "wall/mnt.h"


/* What only root may read, and a sandboxed command has no business with. Closed in whatever tree of the host root
 * shows, because there root's files are the sandbox's own. */
static const char root_secrets[][48] = {
    "/etc/shadow",      "/etc/shadow-",     "/etc/gshadow",
    "/etc/gshadow-",    "/etc/sudoers",     "/etc/sudoers.d",
    "/etc/ssl/private", "/etc/ssh",         "/etc/NetworkManager/system-connections",
    "/etc/wireguard",   "/etc/krb5.keytab", "/var/lib/cloche",
    "/etc/letsencrypt", "/var/lib/docker",  "/var/lib/cloche-serve",
    "/etc/kubernetes",  "/var/lib/kubelet", "/sys/kernel/debug",
    "/sys/kernel/tracing", "/sys/kernel/security", "/sys/firmware/efi",
    "/var/backups",     "/etc/security/opasswd", "/etc/gitlab-runner",
    "/etc/rancher",     "/var/lib/rancher",  "/var/lib/containerd",
    "/var/lib/containers", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d",
    "/etc/mysql/debian.cnf", "/etc/openvpn",  "/etc/ppp",
    "/etc/ipsec.secrets", "/etc/ipsec.d",    "/etc/swanctl",
    "/etc/pki/tls/private", "/etc/pki/consumer", "/etc/sssd",
    "/etc/salt/pki",    "/etc/chef",         "/etc/puppetlabs",
    "/etc/postfix/sasl_passwd", "/etc/exim4/passwd.client", "/etc/ceph",
    "/etc/cloudflared", "/var/lib/tailscale", "/etc/vault.d",
    "/etc/consul.d",    "/etc/nomad.d",      "/etc/luks-keys",
    "/etc/cryptsetup-keys.d", "/etc/samba/private", "/var/lib/samba/private",
    "/etc/grafana",     "/etc/gitea",        "/etc/pve/priv",
    "/var/lib/jenkins", "/var/lib/cloud",    "/run/cloud-init",
    "/run/secrets",     "/run/credentials",  "/var/lib/systemd/credential.secret",
    "/etc/credstore",   "/etc/credstore.encrypted", "/etc/iwd",
    "/var/lib/iwd",     "/etc/wpa_supplicant", "/var/lib/bluetooth",
    "/var/spool/cron",  "/var/lib/sss",      "/etc/iscsi",
    "/etc/boto.cfg",    "/etc/s3cfg",        "/etc/msmtprc",
    "/etc/netrc",       "/var/lib/private",  "/etc/bind/rndc.key",
};

static bool
kernel_fs(struct str type)
{
    static const char *const names[] = {
        "proc",      "sysfs",       "devtmpfs",   "devpts",   "cgroup", "cgroup2",    "mqueue",
        "debugfs",   "tracefs",     "securityfs", "pstore",   "bpf",    "configfs",   "fusectl",
        "hugetlbfs", "binfmt_misc", "autofs",     "efivarfs", "nsfs",   "rpc_pipefs", "selinuxfs",
    };

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_eq_c(type, names[i]))
            return true;
    return false;
}

static int
add_mount(struct native_plan *plan, const char *point, int userns, struct err *err)
{
    cleanup_close int fd = -1;
    struct root_item *item;
    struct err ignored = ERR_INIT;

    if (strcmp(point, "/") == 0 || path_within(str_of(point), STR_LIT("/dev")) ||
        path_within(str_of(point), STR_LIT("/proc")) || path_within(str_of(point), STR_LIT("/sys")))
        return 0;
    fd = open(point, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return 0;       /* hidden below another mount */
    item = plan_item(plan, ROOT_BIND, plan_printf(plan, "%s", point), plan_printf(plan, "%s", point), err);
    if (item == NULL)
        return -1;
    item->fleeting = true;
    item->tree = mnt_clone(fd, "", MNT_RO, userns, &ignored);
    if (item->tree < 0) /* without the mapping it shows less, never more */
        item->tree = mnt_clone(fd, "", MNT_RO, -1, err);
    if (item->tree < 0 && errno == EINVAL) {    /* unmounted since the list was read */
        plan->n_items--;
        return 0;
    }
    return item->tree < 0 ? -1 : 0;
}

static int
each_mount(struct native_plan *plan, int userns, struct err *err)
{
    cleanup_buf struct buf text = BUF_INIT(MOUNTINFO_MAX);
    struct mount_line line;
    char *at;

    if (mountinfo_read(&text, err) < 0)
        return -1;
    at = (char *)text.p;
    while (mountinfo_next(&at, &line))
        if (!kernel_fs(str_of(line.type)) && add_mount(plan, line.point, userns, err) < 0)
            return -1;
    return 0;
}

int
plan_host(struct native_plan *plan, struct err *err)
{
    cleanup_close int userns = -1;

    userns = ns_idmap(geteuid(), plan->ids.outside_uid, getegid(), plan->ids.outside_gid, 0, err);
    if (userns < 0)
        return -1;
    plan->root.host_tree = mnt_clone(AT_FDCWD, "/", MNT_RO, userns, err);
    if (plan->root.host_tree < 0) {
        err_wrap(err, "host view");
        return err_hint(err, "as root the host's tree is shown under another owner, which this root file system cannot "
                        "do; run as an ordinary user, or use the private view");
    }
    return each_mount(plan, userns, err);
}

int
plan_host_secrets(struct native_plan *plan, const struct policy *p, struct policy_list *out, struct err *err)
{
    struct policy_entry entries[ARRAY_LEN(root_secrets)] = { { .value = NULL } };
    const struct policy_list secrets = { .v = entries, .n = ARRAY_LEN(entries) };

    for (size_t i = 0; i < secrets.n; i++) {
        entries[i].value = entries[i].written = plan_printf(plan, "%s", root_secrets[i]);
        if (entries[i].value == NULL)
            return err_set(err, ERR_SYSTEM, "memory", "out of memory");
        entries[i].literal = true;
        entries[i].from.kind = ORIGIN_BUILTIN;
    }
    (void)p;
    return plan_rules_more(plan, &secrets, out, err);
}
