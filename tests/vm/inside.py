#!/usr/bin/python3
"""What tests/vm/run.py has the machine's systemd start: cloche as its units and its package bring it.

Says one line for each thing, "ok NAME" or "not ok NAME: why", on the second serial port, and turns the machine off.
"""
import http.client
import json
import os
import pathlib
import socket
import subprocess
import time

OUT = open("/dev/ttyS1", "w", buffering=1, encoding="utf-8")
SOCKET = "/run/cloche/api.sock"
SERVICE = pathlib.Path("/sys/fs/cgroup/system.slice/cloche.service")
PATIENCE = 120          # an emulated machine is slow; nothing here is timed
EATER = ["python3", "-c", "x = bytearray(300 << 20)"]


class Local(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(self.path)


def ask(method, path, body=None, where=SOCKET, kind="application/json"):
    c = Local(where)
    c.request(method, path, None if body is None else json.dumps(body), {"Content-Type": kind})
    r = c.getresponse()
    text = r.read()
    return r.status, json.loads(text) if text else None


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, timeout=5 * PATIENCE, check=False)


def as_user(name, *argv):
    uid = run("id", "-u", name).stdout.strip()
    place = f"/run/user/{uid}"
    return run("runuser", "-l", name, "-c", f"XDG_RUNTIME_DIR={place} DBUS_SESSION_BUS_ADDRESS=unix:path={place}/bus "
               + " ".join("'" + a.replace("'", "'\\''") + "'" for a in argv))


def until(what):
    end = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def state(name):
    """Of a sandbox, as the daemon says it; None while nobody answers."""
    try:
        status, said = ask("GET", f"/v1/sandboxes/{name}")
    except (OSError, http.client.HTTPException):
        return None
    return said["state"] if status == 200 else None


def state_id(name):
    return ask("GET", f"/v1/sandboxes/{name}")[1]["facts"]["run"]


def pid_of(name):
    return run("pgrep", "-u", "cloche", "-f", "-o", "^" + name).stdout.split()


def the_units_start():
    said = run("systemctl", "enable", "--now", "cloche.socket")
    assert said.returncode == 0, said
    assert run("systemctl", "is-active", "cloche.service").stdout == "inactive\n", "nobody has asked yet"
    assert ask("GET", "/v1/health")[0] == 200, "root, and the service is another user's"
    assert run("systemctl", "is-active", "cloche.service").stdout == "active\n"     # which it said itself: Type=notify


def others_are_refused():
    said = as_user("dev", "curl", "-sS", "--unix-socket", SOCKET, "http://localhost/v1/health")
    assert said.returncode == 7, said


def the_service_has_no_right():
    for name in ("/usr/bin/cloche serve", "cloche-front", "cloche-adapter", "cloche-warden"):
        status = pathlib.Path(f"/proc/{pid_of(name)[0]}/status").read_text()
        assert "CapPrm:\t0000000000000000" in status and "CapBnd:\t0000000000000000" in status, (name, status)


def cgroups_are_divided():
    status, box = ask("POST", "/v1/sandboxes", {"name": "limited", "policy": {"limits": {"memory": "64M", "pids": 30, "time": f"{PATIENCE}s"}}})
    assert status == 201, box
    assert {box["facts"][k] for k in ("memory_by", "pids_by", "cpu_by", "pause_by")} == {"cgroup v2"}, box
    mine = SERVICE / "cloche" / f"cloche-{box['facts']['run']}"
    assert (mine / "memory.max").read_text() != "max\n" and (mine / "pids.max").read_text() != "max\n"
    assert (SERVICE / "daemon" / "cgroup.procs").read_text().split(), "the daemon is in a leaf of its own"
    assert (SERVICE / "cgroup.procs").read_text() == ""


def the_process_limit_holds():
    code = "import os, time\nn = 0\ntry:\n    while n < 100:\n        if os.fork() == 0: time.sleep(60); os._exit(0)\n        n += 1\nexcept OSError: pass\nprint(n)"
    status, said = ask("POST", "/v1/sandboxes/limited/exec", {"command": ["python3", "-c", code]})
    assert status == 200 and 0 < int(said["stdout"]) < 30, said


def a_pause_freezes():
    assert ask("POST", "/v1/sandboxes", {"name": "cold"})[0] == 201
    assert ask("POST", "/v1/sandboxes/cold/pause")[0] == 200
    mine = SERVICE / "cloche" / f"cloche-{state_id('cold')}"
    frozen = (mine / "cgroup.events").read_text() if mine.exists() else ""
    assert "frozen 1" in frozen, (mine, frozen)
    assert ask("POST", "/v1/sandboxes/cold/resume")[0] == 200
    assert ask("POST", "/v1/sandboxes/cold/exec", {"command": ["echo", "warm"]})[1]["stdout"] == "warm\n"


def limits_change_alive():
    status, box = ask("POST", "/v1/sandboxes", {"name": "grows", "policy": {"limits": {"memory": "64M", "pids": 30, "time": f"{PATIENCE}s"}}})
    assert status == 201, box
    mine = SERVICE / "cloche" / f"cloche-{box['facts']['run']}"
    before = int((mine / "memory.max").read_text())
    status, said = ask("PATCH", "/v1/sandboxes/grows/policy", {"limits": {"memory": "512M", "pids": 20}}, kind="application/merge-patch+json")
    assert status == 200, said
    assert int((mine / "memory.max").read_text()) - before == 448 << 20 and int((mine / "pids.max").read_text()) <= 30
    said = ask("POST", "/v1/sandboxes/grows/exec", {"command": EATER})[1]
    assert said["exit_code"] == 0 and not said["oom_killed"], said


def the_memory_limit_ends_one_and_no_other():
    """What ate it, that is: the sandbox itself goes on (docs/limits.md)."""
    status, said = ask("POST", "/v1/sandboxes/limited/exec", {"command": EATER})
    assert status == 200 and said["oom_killed"], said
    for name in ("limited", "cold"):
        assert ask("POST", f"/v1/sandboxes/{name}/exec", {"command": ["echo", "on"]})[1]["stdout"] == "on\n" and state(name) == "ready", name


def a_reload_is_heard():
    said = run("systemctl", "reload", "cloche.service")
    assert said.returncode == 0 and until(lambda: state("cold") == "ready"), said


def killed_processes_are_started_again():
    for name in ("cloche-front", "cloche-adapter", "cloche-warden", "cloche-scribe"):
        before = pid_of(name)
        assert run("kill", "-9", before[0]).returncode == 0, name
        assert until(lambda: pid_of(name) not in ([], before)), name        # pylint: disable=cell-var-from-loop
        assert until(lambda: state("cold") == "ready"), name
    assert ask("POST", "/v1/sandboxes/cold/exec", {"command": ["echo", "there"]})[1]["stdout"] == "there\n"


def a_killed_daemon_is_started_again():
    which = ask("GET", "/v1/sandboxes/cold")[1]["id"]
    main = run("systemctl", "show", "-P", "MainPID", "cloche.service").stdout.strip()
    assert run("kill", "-9", main).returncode == 0
    assert until(lambda: run("systemctl", "show", "-P", "MainPID", "cloche.service").stdout.strip() not in ("0", main))
    assert until(lambda: state(which) in ("stopped", "destroyed")), state(which)
    assert ask("POST", "/v1/sandboxes", {"name": "after"})[0] == 201


def tokens_are_made_by_root():
    said = run("cloche", "token", "create", "--socket", SOCKET, "--role", "operator")
    assert said.returncode == 0 and said.stdout.startswith("cloche_"), said


def roots_folder_stays_roots():
    assert run("cloche", "run", "--", "true").returncode == 0
    said = run("cloche", "audit", "verify")
    assert said.returncode == 0, said
    assert os.stat("/var/lib/cloche").st_uid == 0 and os.stat("/var/lib/cloche-serve").st_uid != 0


def a_users_run_has_limits():
    """From the user's own systemd, which is asked over D-Bus."""
    said = json.loads(as_user("dev", "cloche", "run", "--json", "--memory", "64M", "--", *EATER).stdout)
    assert said["oom_killed"] and said["limits"]["memory_bytes"]["enforced_by"] == "cgroup v2", said


def a_users_daemon_has_limits():
    said = as_user("dev", "systemctl", "--user", "enable", "--now", "cloche.socket")
    assert said.returncode == 0, said
    where = "/home/dev/.local/state/cloche/serve/api.sock"
    status, box = ask("POST", "/v1/sandboxes", {"name": "u", "policy": {"limits": {"memory": "64M"}}}, where)
    assert status == 201 and box["facts"]["memory_by"] == "cgroup v2", box
    assert ask("POST", "/v1/sandboxes/u/exec", {"command": EATER}, where)[1]["oom_killed"]


def a_stop_leaves_nothing():
    said = run("systemctl", "stop", "cloche.service", "cloche.socket")
    assert said.returncode == 0, said
    assert not SERVICE.exists() and not pid_of("cloche"), (list(SERVICE.glob("*")), pid_of("cloche"))
    assert run("systemctl", "show", "-P", "Result", "cloche.service").stdout == "success\n"


def purged_it_is_gone_but_for_what_root_made():
    said = run("dpkg", "--purge", "cloche")
    assert said.returncode == 0, said
    assert not os.path.exists("/var/lib/cloche-serve") and os.path.exists("/var/lib/cloche/audit")
    assert not os.path.exists("/usr/bin/cloche")


def say_machine():
    version = run("systemctl", "--version").stdout.split("\n", maxsplit=1)[0]
    print(f"# {os.uname().release}, {version}, {run('stat', '-fc', '%T', '/sys/fs/cgroup').stdout.strip()}", file=OUT)


def main():
    say_machine()
    run("useradd", "-m", "-s", "/bin/bash", "dev")
    run("loginctl", "enable-linger", "dev")
    for test in (the_units_start, others_are_refused, the_service_has_no_right, cgroups_are_divided, the_process_limit_holds,
                 a_pause_freezes, limits_change_alive, the_memory_limit_ends_one_and_no_other, a_reload_is_heard,
                 killed_processes_are_started_again, a_killed_daemon_is_started_again, tokens_are_made_by_root,
                 roots_folder_stays_roots, a_users_run_has_limits, a_users_daemon_has_limits, a_stop_leaves_nothing,
                 purged_it_is_gone_but_for_what_root_made):
        try:
            test()
            print(f"ok {test.__name__}", file=OUT)
        except Exception as why:        # whatever it is: it is said, and the next one comes
            print(f"not ok {test.__name__}: {type(why).__name__} {str(why)[:1500]!r}", file=OUT)
    print("# end", file=OUT)
    log = run("journalctl", "-u", "cloche.service", "--no-pager", "-n", "40").stdout
    for line in log.splitlines():
        print("#", line, file=OUT)
    OUT.close()
    subprocess.run(["systemctl", "poweroff"], check=False)


if __name__ == "__main__":
    main()
