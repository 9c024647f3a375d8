/* probe/catalog.h: the attacks, by name
 *
 * One table for both sides: the probe (inside) runs the functions, `cloche prove` (outside) knows what each mode
 * promises about them. The order is that of the report.
 *
 *   A(function, id, wall, promised in, not promised when, requirement, title)
 *
 * Sources of the classes: published container and sandbox CVEs since 2017 and the checks of well-known escape kits.
 */
#ifndef CLOCHE_PROBE_CATALOG_H
#define CLOCHE_PROBE_CATALOG_H

enum attack_promise {
    IN_LIGHT = 1, IN_STANDARD = 2, IN_MAX = 4,
    BOXED = IN_STANDARD | IN_MAX,       /* needs namespaces */
    ALWAYS = IN_LIGHT | BOXED,
};

enum attack_unless {
    UNLESS_NOTHING = 0,
    UNLESS_HOST_NETWORK = 1,            /* --network host gives it */
    UNLESS_ALL_SOCKETS = 2,             /* --allow-all-unix-sockets gives it */
    UNLESS_NESTED = 4,                  /* nested user namespaces were asked for */
    UNLESS_BY_NAME = 16,                /* with a network by name every address leads to cloche-egress, which the
                                         * trials ask */
    UNLESS_HOST_VIEW = 8,               /* view: host shows the host's tree */
};

#define ATTACKS(A) \
    /* files of the host */ \
    A(leaked_descriptors, "leaked-descriptors", "files", ALWAYS, 0, "R11", \
      "a descriptor of the host was left open (CVE-2024-21626)") \
    A(cwd_outside, "cwd-outside", "files", BOXED, 0, "R11", "the working directory leads out of the root") \
    A(dotdot_root, "dotdot-root", "files", BOXED, UNLESS_HOST_VIEW, "R11", \
      "/.. or a root of another process is the host's root") \
    A(proc_magic_links, "proc-magic-links", "files", BOXED, UNLESS_HOST_VIEW, "R11", \
      "/proc/PID/{root,cwd,fd} lead to the host's root") \
    A(symlink_escape, "symlink-escape", "files", BOXED, UNLESS_HOST_VIEW, "R11", \
      "a symbolic link that climbs out finds the host's file") \
    A(host_file_read, "host-file-read", "files", BOXED, UNLESS_HOST_VIEW, "R11", \
      "a file of the host, open to all, is read by its path") \
    A(host_file_write, "host-file-write", "files", ALWAYS, 0, "R11", \
      "a file of the host, open to all, is opened for writing") \
    A(host_file_truncate, "host-file-truncate", "files", ALWAYS, 0, "R11", \
      "a file of the host, open to all, is truncated by path") \
    A(host_folder, "host-folder", "files", ALWAYS, 0, "R11", \
      "a name is made, moved or removed in a folder of the host that is open to all") \
    A(host_file_attributes, "host-file-attributes", "files", BOXED, 0, "R11", \
      "mode or times of a file of the host are changed") \
    A(hard_link, "hard-link", "files", ALWAYS, 0, "R11", "a hard link takes a file of the host along") \
    A(write_exe, "overwrite-runtime", "files", ALWAYS, 0, "R26", \
      "the program outside is overwritten through /proc/PID/exe (CVE-2019-5736)") \
    A(write_cloche, "overwrite-cloche", "files", ALWAYS, 0, "R26", \
      "cloche's own program file is opened for writing") \
    A(shadow, "shadow", "files", BOXED, 0, "R03", "/etc/shadow is read") \
    A(file_handle, "file-handle", "files", ALWAYS, 0, "R26", "a file is opened by handle (Shocker)") \
    A(device_node, "device-node", "files", ALWAYS, 0, "R26", "a block device node is made and opened") \
    A(device_modes, "device-modes", "files", BOXED, 0, "R26", "the mode of a device that everybody uses is set") \
    A(raw_disk, "raw-disk", "files", ALWAYS, 0, "R26", "a disk of the host is opened") \
    /* mounts and namespaces */ \
    A(mount_tmpfs, "mount", "namespaces", ALWAYS, UNLESS_NESTED, "R26", "a file system is mounted") \
    A(mount_bind, "mount-bind", "namespaces", ALWAYS, UNLESS_NESTED, "R26", "a tree is bound elsewhere") \
    A(remount_writable, "remount", "namespaces", ALWAYS, UNLESS_NESTED, "R26", "a read-only mount is made writable") \
    A(unmount_masks, "unmount", "namespaces", ALWAYS, UNLESS_NESTED, "R26", "what covers /proc is taken away") \
    A(fresh_procfs, "fresh-procfs", "namespaces", ALWAYS, UNLESS_NESTED, "R26", \
      "a fresh procfs shows what was masked (CVE-2025-31133 class)") \
    A(new_mount_api, "new-mount-api", "namespaces", ALWAYS, UNLESS_NESTED, "R26", \
      "fsopen, open_tree, move_mount, mount_setattr") \
    A(pivot, "pivot-root", "namespaces", ALWAYS, UNLESS_NESTED, "R26", "pivot_root") \
    A(change_root, "chroot", "namespaces", ALWAYS, UNLESS_NESTED, "R26", "chroot, then climb out of it") \
    A(unshare_user, "nested-user-namespace", "namespaces", ALWAYS, UNLESS_NESTED, "R26", \
      "a user namespace of its own gives capabilities") \
    A(unshare_others, "unshare", "namespaces", ALWAYS, UNLESS_NESTED, "R26", "any other namespace is made") \
    A(clone_namespaces, "clone-namespaces", "namespaces", ALWAYS, UNLESS_NESTED, "R26", \
      "clone and clone3 with namespace flags") \
    A(enter_namespaces, "setns", "namespaces", ALWAYS, UNLESS_NESTED, "R26", \
      "the namespaces of another process are entered") \
    /* privilege */ \
    A(become_root, "setuid-zero", "privilege", ALWAYS, 0, "R26", "setuid(0), setgid(0), setgroups") \
    A(raise_capabilities, "raise-capabilities", "privilege", ALWAYS, 0, "R26", \
      "a capability is taken by capset or ambient") \
    A(setuid_program, "setuid-program", "privilege", ALWAYS, 0, "R26", \
      "a setuid program gives privilege (no_new_privs undone)") \
    A(drop_seccomp, "undo-seccomp", "privilege", ALWAYS, 0, "R26", "the system call filter is taken off") \
    A(set_user_id, "set-user-id", "privilege", ALWAYS, 0, "R26", \
      "a set-user-ID file is made, by chmod or from the start") \
    A(read_search, "dac-read-search", "privilege", ALWAYS, 0, "R26", \
      "permission bits do not matter (CAP_DAC_READ_SEARCH)") \
    /* processes */ \
    A(signal_host, "signal-host", "processes", ALWAYS, 0, "R12", "a process outside can be signalled") \
    A(read_host_process, "read-host-process", "processes", ALWAYS, 0, "R12", \
      "environment or memory of a process outside is read") \
    A(read_first, "read-init", "processes", ALWAYS, 0, "R26", "memory or environment of process 1 is read") \
    A(trace_first, "ptrace-init", "processes", ALWAYS, 0, "R26", "process 1 is traced") \
    A(write_first, "write-init", "processes", ALWAYS, 0, "R26", "memory of process 1 is opened for writing") \
    A(signal_first, "signal-init", "processes", IN_LIGHT, 0, "R26", "the guest is signalled by what it runs") \
    A(steal_transport, "steal-transport", "processes", ALWAYS, 0, "R26", \
      "the guest's transport is taken over (pidfd_getfd, /proc/1/fd)") \
    A(host_priority, "host-priority", "processes", ALWAYS, 0, "R12", \
      "limits or priority of a process outside are changed") \
    A(guest_limits, "guest-limits", "processes", ALWAYS, 0, "R65", \
      "limits, scheduling or priority of the guest are changed from inside") \
    /* terminal */ \
    A(caller_terminal, "caller-terminal", "terminal", ALWAYS, 0, "R26", \
      "the terminal of whoever called is the sandbox's too") \
    A(host_terminals, "host-terminals", "terminal", BOXED, 0, "R26", \
      "a terminal of the host is among those of the sandbox") \
    A(push_input, "tiocsti", "terminal", ALWAYS, 0, "R26", \
      "TIOCSTI types into the terminal, with high bits set too (CVE-2017-5226)") \
    A(console_paste, "tioclinux", "terminal", ALWAYS, 0, "R26", "TIOCLINUX reaches the driver (CVE-2023-28100)") \
    A(line_discipline, "tiocsetd", "terminal", ALWAYS, 0, "R26", "another line discipline is loaded") \
    /* kernel interfaces with a record of holes */ \
    A(use_bpf, "bpf", "kernel", ALWAYS, 0, "R26", "bpf") \
    A(use_perf, "perf", "kernel", ALWAYS, 0, "R26", "perf_event_open") \
    A(use_userfaultfd, "userfaultfd", "kernel", ALWAYS, 0, "R26", "userfaultfd") \
    A(use_io_uring, "io-uring", "kernel", ALWAYS, 0, "R26", "io_uring") \
    A(use_keys, "keyrings", "kernel", ALWAYS, 0, "R26", "keyctl, add_key, request_key") \
    A(other_abi, "other-abi", "kernel", ALWAYS, 0, "R26", "x32 and int 0x80 system calls pass the filter") \
    A(unknown_calls, "unknown-calls", "kernel", ALWAYS, 0, "R26", \
      "a number that no list knows reaches the kernel (CVE-2021-41133 class)") \
    A(call_table, "system-calls", "kernel", ALWAYS, UNLESS_NESTED, "R26", \
      "a system call that the table refuses reaches the kernel") \
    A(call_arguments, "call-arguments", "kernel", ALWAYS, 0, "R26", \
      "arguments of socket, setsockopt, personality or ioctl that no rule opens reach the kernel") \
    A(prctl_table, "prctl-options", "kernel", ALWAYS, 0, "R26", "an option of prctl that is on no list takes effect") \
    A(ioctl_table, "ioctl-requests", "kernel", ALWAYS, 0, "R26", \
      "an ioctl of terminals, sockets, files or namespaces that is on no list reaches the kernel") \
    A(load_module, "kernel-module", "kernel", ALWAYS, 0, "R26", "a kernel module is loaded or removed") \
    A(kexec, "kexec", "kernel", ALWAYS, 0, "R26", "another kernel is loaded") \
    A(restart, "reboot", "kernel", ALWAYS, 0, "R26", "the machine is restarted") \
    A(swap, "swap", "kernel", ALWAYS, 0, "R26", "swap or accounting is turned on") \
    A(set_clock, "clock", "kernel", ALWAYS, 0, "R26", "the clock is set") \
    A(set_hostname, "hostname", "kernel", ALWAYS, 0, "R26", "the host name is set") \
    A(kernel_log, "kernel-log", "kernel", ALWAYS, 0, "R26", "the kernel's log is read or written") \
    A(kernel_memory, "kernel-memory", "kernel", ALWAYS, 0, "R26", "/dev/mem, /dev/port, /proc/kcore") \
    A(sysctls, "sysctl", "kernel", ALWAYS, 0, "R26", \
      "core_pattern, modprobe and other kernel settings are opened for writing (CVE-2022-0811)") \
    A(sysrq, "sysrq", "kernel", ALWAYS, 0, "R26", "sysrq-trigger is opened for writing") \
    A(cgroup_files, "cgroup-files", "kernel", ALWAYS, 0, "R26", \
      "release_agent, devices.allow or own limits are opened for writing (CVE-2022-0492)") \
    A(cgroup_mount, "cgroup-mount", "kernel", ALWAYS, UNLESS_NESTED, "R26", "a cgroup hierarchy is mounted") \
    A(cgroup_leave, "cgroup-leave", "kernel", ALWAYS, 0, "R26", "the process moves itself out of its cgroup") \
    A(execute_data, "read-implies-exec", "kernel", ALWAYS, 0, "R26", "personality makes all memory executable") \
    A(kernel_helpers, "kernel-helpers", "kernel", ALWAYS, 0, "R26", "uevent_helper, binfmt_misc, debugfs, tracefs") \
    /* network */ \
    A(host_loopback, "host-loopback", "network", ALWAYS, UNLESS_HOST_NETWORK, "R12", \
      "a service on the host's 127.0.0.1 answers") \
    A(metadata, "cloud-metadata", "network", ALWAYS, UNLESS_HOST_NETWORK | UNLESS_BY_NAME, "R14", \
      "169.254.169.254 can be dialled") \
    A(route_out, "route-out", "network", ALWAYS, UNLESS_HOST_NETWORK | UNLESS_BY_NAME, "R14", \
      "a packet would find a way out (UDP, IPv4 and IPv6)") \
    A(raw_sockets, "raw-sockets", "network", ALWAYS, 0, "R14", "raw and packet sockets") \
    A(odd_families, "socket-families", "network", ALWAYS, 0, "R14", \
      "AF_VSOCK, AF_ALG, AF_KEY, AF_TIPC, AF_CAN, AF_BLUETOOTH, AF_XDP ...") \
    A(netlink, "netlink", "network", ALWAYS, 0, "R14", "netlink other than route") \
    A(make_interface, "network-setup", "network", ALWAYS, 0, "R14", "an interface is configured, a tun device made") \
    A(host_unix_socket, "host-unix-socket", "network", ALWAYS, UNLESS_ALL_SOCKETS, "R04", \
      "a unix socket of the host is connected to by path") \
    A(host_abstract_socket, "host-abstract-socket", "network", ALWAYS, 0, "R04", \
      "an abstract socket of the host answers (CVE-2020-15257)") \
    A(control_sockets, "control-sockets", "network", ALWAYS, UNLESS_ALL_SOCKETS, "R04", \
      "Docker, containerd, Podman, CRI-O, D-Bus, systemd answer")

/* The trials: what a sandbox of prove's own is tried for, with a project, a home and limits that were made for that.
 * They are run by the same machinery; the order is that of the report.
 *
 *   T(function, id, stage, wall, requirement, title)
 *
 * The first of each stage shows that there is something to try: the rest would hold in a place where nothing works. */
enum trial_stage { STAGE_ATTACKS, STAGE_PROJECT, STAGE_LIMITS, STAGE_NETWORK, STAGE_COPY };

#define TRIALS(T) \
    T(project_control, "project.writable", STAGE_PROJECT, "files", "R03", "the project can be written to, and run in") \
    T(project_present, "project.protected-present", STAGE_PROJECT, "files", "R03", \
      "protected names that exist are neither written nor replaced nor removed") \
    T(project_absent, "project.protected-absent", STAGE_PROJECT, "files", "R03", \
      "protected names that do not exist do not come into being") \
    T(project_moved, "project.protected-moved", STAGE_PROJECT, "files", "R03", \
      "folders around protected names are not moved away") \
    T(project_deny_write, "project.deny-write", STAGE_PROJECT, "files", "R03", \
      "what deny_write names is neither written nor replaced nor removed") \
    T(project_deny_read, "project.deny-read", STAGE_PROJECT, "files", "R03", "what deny_read names is not read") \
    T(project_git, "project.git-state", STAGE_PROJECT, "files", "R03", \
      "no repository comes into being that makes git run something") \
    T(project_git_keys, "project.git-keys", STAGE_PROJECT, "files", "R03", \
      "no configuration of git's comes into being that names a program or another file") \
    T(project_git_steps, "project.git-steps", STAGE_PROJECT, "files", "R03", \
      "nothing of an interrupted git command, of hooks, remotes and work trees comes into being that git runs") \
    T(project_git_index, "project.git-index", STAGE_PROJECT, "files", "R03", \
      "no index comes into being that names what is not in the work tree, no list of files for git to empty") \
    T(project_git_later, "project.git-later", STAGE_PROJECT, "files", "R03", \
      "no folder becomes a repository with what git runs in it already") \
    T(project_marks, "project.overlay-marks", STAGE_PROJECT, "files", "R03", \
      "no attribute of overlays is set, which would hide files later") \
    T(project_shut, "project.shut", STAGE_PROJECT, "files", "R03", \
      "what rules close behind a folder that nobody may search stays closed when its owner opens that") \
    T(project_shut_absent, "project.shut-absent", STAGE_PROJECT, "files", "R03", \
      "no protected name comes into being while the way to it is shut") \
    T(project_git_leads, "project.git-leads", STAGE_PROJECT, "files", "R03", \
      "no link comes to lie where git writes, or as .git, and no submodule's repository is moved up") \
    T(project_git_in_place, "project.git-in-place", STAGE_PROJECT, "files", "R03", \
      "a configuration that is written in place gets its name as it was judged") \
    T(project_led_to, "project.led-to", STAGE_PROJECT, "files", "R03", \
      "nothing is made or changed that a link, a mount, a file or git's configuration makes a protected name") \
    T(project_last_name, "project.last-name", STAGE_PROJECT, "files", "R11", \
      "a file whose name inside was removed while it was open is written to, as outside sees") \
    T(project_relative, "project.protected-relative", STAGE_PROJECT, "files", "R03", \
      "nor by a name that is relative to a folder, or leads through /proc, a link or ..") \
    T(project_mode, "project.modes", STAGE_PROJECT, "files", "R26", \
      "what is made is not open for writing to everybody, and an own mask counts") \
    T(project_tree, "project.tree", STAGE_PROJECT, "files", "R11", "the host's tree is mounted read-only") \
    T(project_further, "project.further", STAGE_PROJECT, "files", "R11", \
      "what confines itself further is not served with the guard's own rights") \
    T(project_environment, "project.environment", STAGE_PROJECT, "files", "R16", \
      "no variable that makes programs load something is passed on, though it is asked for") \
    T(project_door, "project.socket", STAGE_PROJECT, "network", "R04", \
      "a unix socket of the host in the project is not connected to") \
    T(project_leave, "project.leaves", STAGE_PROJECT, "processes", "R12", \
      "a process can be left behind, as outside sees") \
    T(project_linked, "project.linked", STAGE_PROJECT, "files", "R11", \
      "a file with a name outside is written to, as outside sees") \
    T(project_set_user_id, "project.set-user-id", STAGE_PROJECT, "privilege", "R26", \
      "no set-user-ID file is made in the project") \
    T(project_bait, "project.bait", STAGE_PROJECT, "files", "R03", \
      "no content of the home's closed places, or of places outside, is found anywhere in the tree") \
    T(project_bait_write, "project.bait-write", STAGE_PROJECT, "files", "R11", \
      "nothing of the host beside the project can be written to") \
    T(limit_control, "limit.real", STAGE_LIMITS, "limits", "R65", "within its limits a program works") \
    T(project_read_only, "project.read-only", STAGE_LIMITS, "files", "R11", \
      "a project that is bound read-only is not written to") \
    T(limit_pids, "limit.pids", STAGE_LIMITS, "limits", "R65", "no more processes than the limit") \
    T(limit_disk, "limit.disk", STAGE_LIMITS, "limits", "R65", \
      "no more bytes than the limit in /tmp, home and /dev/shm") \
    T(limit_inodes, "limit.inodes", STAGE_LIMITS, "limits", "R65", "the number of files in memory has a bound") \
    T(limit_nofile, "limit.nofile", STAGE_LIMITS, "limits", "R65", "no more open files than the limit") \
    T(limit_raise, "limit.raise", STAGE_LIMITS, "limits", "R65", "hard limits are not raised") \
    T(limit_precedence, "limit.precedence", STAGE_LIMITS, "limits", "R65", \
      "nothing is left of a precedence that the caller has, or may have") \
    T(copy_control, "copy.real", STAGE_COPY, "files", "R82", "a copy-on-write project can be written to") \
    T(copy_apart, "copy.apart", STAGE_COPY, "files", "R82", \
      "what is done to the copy does not reach the project, as outside sees") \
    T(copy_mount, "copy.mount", STAGE_COPY, "privilege", "R26", \
      "the copy is mounted without set-user-ID files and devices") \
    T(network_control, "egress.real", STAGE_NETWORK, "network", "R14", "a host that a rule names is let through") \
    T(network_names, "egress.names", STAGE_NETWORK, "network", "R14", "a name that no rule has gets no address") \
    T(network_connect, "egress.connect", STAGE_NETWORK, "network", "R14", \
      "CONNECT to a host that no rule names is refused by rule") \
    T(network_request, "egress.request", STAGE_NETWORK, "network", "R14", \
      "a request for a host that no rule names is refused by rule") \
    T(network_scope, "egress.scope", STAGE_NETWORK, "network", "R14", \
      "of a host that a rule opens for some requests, others are refused") \
    T(network_another, "egress.another", STAGE_NETWORK, "network", "R14", \
      "a request names the host that was connected to, and no other") \
    T(network_hello, "egress.hello", STAGE_NETWORK, "network", "R14", \
      "a ClientHello names the host that was connected to, in the open, as outside says") \
    T(network_socks, "egress.socks", STAGE_NETWORK, "network", "R14", \
      "SOCKS5 to a host that no rule names is refused by rule") \
    T(network_denied, "egress.denied", STAGE_NETWORK, "network", "R14", "a deny rule beats the allow rule around it") \
    T(network_port, "egress.port", STAGE_NETWORK, "network", "R14", "another port of an allowed host is refused") \
    T(network_loopback, "egress.loopback", STAGE_NETWORK, "network", "R12", \
      "the host's own 127.0.0.1 and metadata address are refused by every way") \
    T(network_led, "egress.led", STAGE_NETWORK, "network", "R12", \
      "an allowed name that leads to an address of the host, its network or a cloud is refused") \
    T(network_direct, "egress.direct", STAGE_NETWORK, "network", "R14", \
      "an address that no name led to is not connected") \
    T(network_rights, "egress.rights", STAGE_NETWORK, "network", "R14", \
      "cloche-egress has no capability, a filter, and is not root") \
    T(network_vault, "vault.rights", STAGE_NETWORK, "network", "R16", \
      "cloche-vault has no capability, a filter, and is not root")

#endif
