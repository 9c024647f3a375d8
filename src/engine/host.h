/* engine/host.h: what this host is, as far as walls depend on it */
#ifndef CLOCHE_ENGINE_HOST_H
#define CLOCHE_ENGINE_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define HOST_NAMESPACES 9

/* What a failure is explained from. A value of -1 means that the file does not exist. */
struct host_facts {
    char kernel[72];
    unsigned kernel_major, kernel_minor;
    char machine[72];
    uid_t uid;
    bool cap_sys_admin;             /* effective, in our user namespace */
    bool init_userns;               /* our user namespace maps every uid: as a rule the host's own */
    char container[24]; /* "docker", "podman", "kubernetes", "lxc", "systemd-nspawn", "wsl", "unknown"; "" = none */
    char container_sign[96];        /* what told us */
    int64_t userns_clone;           /* kernel.unprivileged_userns_clone (Debian, Arch) */
    int64_t max_user_namespaces;
    int64_t max_namespaces[HOST_NAMESPACES];        /* /proc/sys/user/max_*_namespaces, of each feature of that name */
    int64_t apparmor_restrict;      /* kernel.apparmor_restrict_unprivileged_userns (Ubuntu >= 23.10) */
    int64_t memfd_noexec;           /* vm.memfd_noexec */
    int64_t yama;                   /* kernel.yama.ptrace_scope */
    int seccomp_mode;               /* of this very process: 2 = an enclosing filter is on us */
    bool no_new_privs;
    bool chrooted;                  /* our / is not the root of a mount: user namespaces are refused */
    bool user_manager;              /* systemd's user manager answers: it can delegate cgroups */
    bool cgroup_v2;                 /* /sys/fs/cgroup is the unified hierarchy */
    bool proc_masked;               /* something is mounted below /proc: a fresh procfs may be refused */
    char proc_mask_example[64];
    char lsm[192];                  /* /sys/kernel/security/lsm; "" when unreadable */
    char apparmor[128];             /* our confinement; "" when AppArmor is off */
    int64_t selinux_enforcing;      /* 1, 0, or -1 without SELinux */
    char self_exe[256];             /* our own path, for an AppArmor profile; "" unless plain characters */
};

/* Reads /proc and /sys only. */
void host_facts_read(struct host_facts *out);

#endif
