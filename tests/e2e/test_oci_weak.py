"""`cloche prove` under the engine oci: what a runtime keeps otherwise is excused thing by thing, so a bundle that is weaker in
one thing is noticed. The runtime here is a program that changes the bundle, and then becomes the real one."""
import os
import shutil
import sys

import pytest

from helpers import places, requirement

pytestmark = [requirement("R30", "R80"), pytest.mark.root]
BUILD = places.find_cloche().parents[2]
HEAD = """#!{python} -I
import json, os, struct, subprocess, sys
name = "/sys/bundle/config.json"
c = json.load(open(name))
def bind(source, to, *options):
    c["mounts"].append(dict(destination=to, type="bind", source=source, options=["bind", "nosuid", "nodev", *options]))
def maps(inside, outside):
    for key in ("uidMappings", "gidMappings"):
        c["linux"][key] = [m if m["containerID"] != inside else dict(m, hostID=outside) for m in c["linux"][key]]
def lift(kind, *files):
    os.mkdir("/sys/lift")
    subprocess.run(["mount", "-t", "cgroup2" if not kind else "cgroup", *(["-o", kind] if kind else []), "x", "/sys/lift"], check=True)
    line = next(s for s in open("/proc/self/cgroup") if (":" + kind + ":" if kind else "0::") in s)
    for file in files:
        try:
            open("/sys/lift" + line.strip().split(":", 2)[2] + "/" + file, "w").write("-1" if kind else "max")
        except OSError as e:
            print(file, e, file=sys.stderr)
{weaken}
json.dump(c, open(name, "w"))
{become}
"""
ALL = "bounding effective permitted inheritable ambient"
LIFT = """lift("memory", "memory.memsw.limit_in_bytes", "memory.limit_in_bytes") if ":memory:" in open("/proc/self/cgroup").read() \\
    else lift("", "memory.max")"""
WEAK = {
    "nothing": ("", ()),
    "a folder in /usr": ("bind('/etc', '/usr/share/doc', 'ro')", ["posture.mounts.known"]),
    "a folder in /proc": ("bind('/etc', '/proc/fs', 'ro')", ["posture.mounts.known"]),
    "a folder to write": ("bind('/var', '/home', 'rw')", ["posture.mounts.known", "posture.mounts.read-only"]),
    "a folder with set-user-ID": ("bind('/usr', '/usr', 'ro'); c['mounts'][-1]['options'].remove('nosuid')", ["posture.mounts.nosuid"]),
    "a capability": (f"c['process']['capabilities'] = dict.fromkeys('{ALL}'.split(), ['CAP_NET_RAW'])", ["posture.caps.zero", "outside.privilege"]),
    "a capability of the bounding set": ("c['process']['capabilities'] = {'bounding': ['CAP_SYS_ADMIN']}", ["outside.privilege"]),
    "another filter": ("open('/sys/f', 'wb').write(struct.pack('HBBI', 6, 0, 0, 0x7fff0000)); bind('/sys/f', '/.cloche/filter', 'ro')",
                       ["posture.mounts.known", "attack.bpf", "attack.io-uring"]),
    "no masks": ("c['linux']['maskedPaths'] = []", ["posture.kernel.windows"]),
    "nothing read-only": ("c['linux']['readonlyPaths'] = []", ["posture.mounts.proc-sys"]),
    "a device": ("c['linux']['devices'] = [dict(path='/dev/kmsg', type='c', major=1, minor=11, fileMode=0o666)]", ["posture.mounts.known"]),
    "no user namespace": ("c['linux']['namespaces'].remove({'type': 'user'}); del c['linux']['uidMappings'], c['linux']['gidMappings']",
                          ["posture.namespace.user", "posture.identity.map"]),
    "root behind 0": ("maps(0, 0)", ["posture.identity.map"]),
    "root behind its user": ("maps(1000, 0)", ["outside.identity", "posture.identity.map"]),
    "root inside": ("c['process']['user'] = dict(uid=0, gid=0)", ["posture.identity.ids"]),
    "no limits": ("c['process']['rlimits'] = []", ["posture.limit.nproc"]),
    "what the host mounts": ("c['linux']['rootfsPropagation'] = 'shared'", ["posture.mounts.private"]),
    "programs in /proc": ("c['mounts'][0]['options'].remove('noexec')", ["posture.mounts.noexec"]),
    "no memory limit": (LIFT, ["outside.cgroup.memory"]),
    # the guest sets it again
    "no no_new_privs": ("c['process']['noNewPrivileges'] = False", ()),
}
GVISOR = ("a folder in /usr", "root behind 0", "no memory limit")


def prove(cloche, folder, name, weaken, become):
    runtime = folder / name
    runtime.write_text(HEAD.format(python=sys.executable, weaken=weaken, become=become))
    runtime.chmod(0o755)
    cloche.env["PATH"] = os.pathsep.join((str(folder), os.environ["PATH"]))
    result = cloche("prove", "--runtime", name, "--mode", "standard", "--quick", "--json")
    assert result.code in (0, 1), result
    return {c["id"]: c["detail"] for m in result.json["modes"] for c in m["checks"] if c["state"] == "surprise"}


def real(name):
    path = shutil.which(name, path=os.pathsep.join((str(BUILD), os.environ["PATH"])))
    if path is None:
        pytest.skip("runsc is not built: make runsc" if name == "runsc" else f"{name} is not installed: tools/deps check")
    return path


@pytest.mark.parametrize("name,what", [("crun", what) for what in WEAK] + [("runsc", what) for what in ("nothing", *GVISOR)])
def test_what_a_bundle_lacks_is_noticed(cloche, tmp_path, name, what):
    weaken, ids = WEAK[what]
    if name == "runsc" and what == "root behind 0":
        ids = ["outside.identity"]
    found = prove(cloche, tmp_path, name, weaken, f"os.execv('{real(name)}', sys.argv)")
    assert set(ids) <= set(found) and (ids or not found), found


def test_another_kernel_is_not_only_said(cloche, tmp_path):
    """A runsc that is no gVisor."""
    args = '["crun", "--root", "/sys/state", "--cgroup-manager=disabled", "run", "--preserve-fds=1", "--bundle=/sys/bundle", sys.argv[-1]]'
    found = prove(cloche, tmp_path, "runsc", "", f"os.execv('{real('crun')}', {args})")
    assert {"posture.kernel.boundary", "outside.identity"} <= set(found), found
