"""What everybody can read of cloche's own processes: their arguments; and their environment, for whoever is the same user. No value of a
policy is in either, however it was given, but what somebody typed on a command line himself."""
import json
import os
import secrets
import subprocess

import pytest

from helpers import leaks, places, requirement
from helpers.daemon import Daemon, OthersDaemon
from helpers.runner import become, wait_for

pytestmark = requirement("R26", "R61")

NOBODY = 65534
HOST = "ok.example.org"

# Everything that whoever runs it may read of all processes: {pid: [what it was found in]}, and how many environments it could read.
SCAN = """
import json, os, sys
tokens, found, environments = [t.encode() for t in sys.argv[1:]], {}, []
for pid in [p for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid()]:
    for name in ('cmdline', 'environ', 'comm'):
        try:
            with open(f'/proc/{pid}/{name}', 'rb') as f: text = f.read()
        except OSError: continue
        if name == 'environ': environments.append(int(pid))
        found.setdefault(pid, []).extend(f'{name}: {t.decode()}' for t in tokens if t in text)
print(json.dumps({'found': {p: f for p, f in found.items() if f}, 'environments': environments}))
"""


class Values:
    """One of each kind, none of which is to be found: v.env, v.parent ..."""

    def __init__(self):
        self.kinds = {}

    def __getattr__(self, kind):
        return self.kinds.setdefault(kind, f"tkn{kind}{secrets.token_hex(8)}")

    def policy(self, root):
        """A settings file as an object, with one of each kind that it may hold."""
        closed = root / self.path
        closed.mkdir()
        return {
            "env": {"INLINE": self.env}, "hostname": self.hostname[:60], "filesystem": {"deny-read": [str(closed)], "protect": [self.protect]},
            "network": {"allow": [HOST, {"host": HOST, "methods": ["GET"], "path": f"/{self.rule}/**"}], "deny": [f"{self.denied}.example.org"],
                        "parent-proxy": {"http": f"http://user:{self.parent}@127.0.0.1:9", "https": f"http://user:{self.parents}@127.0.0.1:9",
                                         "no-proxy": f".{self.noproxy}.example.org"}},
            "secret-files": [{"path": "/tmp/.token", "text": f"{self.text}=${{TOK}}"}], "secrets": ["TOK"],
        }

    def seen(self, *, uid=None):
        """By us, or by another user: (where, in how many environments it looked)."""
        done = subprocess.run([*([] if uid is None else become(uid, uid)), places.PYTHON, "-I", "-S", "-c", SCAN, *self.kinds.values()],
                              capture_output=True, text=True, check=True)
        said = json.loads(done.stdout)
        return {int(pid): what for pid, what in said["found"].items()}, set(said["environments"])


def outside(pid):
    """It is a process of ours, not of a sandbox: of what runs inside, the variables are its own."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") == os.readlink("/proc/self/ns/pid")
    except OSError:
        return False


def nothing_is_seen(values, ours):
    """@ours: pids of cloche that are looked at for certain."""
    found, environments = values.seen()
    told = {pid: what for pid, what in found.items() if outside(pid) or any(not w.startswith("environ") for w in what)}
    table = leaks.parents()
    assert not told, {(pid, table.get(pid)): what for pid, what in told.items()}
    if places.IS_ROOT:
        assert ours <= environments, (ours, environments)       # they were read
        found, environments = values.seen(uid=NOBODY)
        assert not found and not ours & environments, (found, ours & environments)


def keep_a_secret(cloche, values):
    """One in the store of whoever runs cloche, given by a pipe."""
    done = cloche("secret", "set", "TOK", "--host", HOST, "--place", "bearer", stdin=values.secret)
    assert done.ok, done


def below(pid):
    """It and what it has started, living ones only."""
    table = leaks.parents()
    return {pid, *(p for p in leaks.descendants(pid, table) if table[p][1] not in "ZX")}


def test_a_daemons_settings(anyone):
    """In its configuration, in the settings file that this names, in what clients ask for."""
    values, root = Values(), anyone.project
    keep_a_secret(anyone, values)
    settings, config = root / f"{values.settings}.yaml", root / "serve.yaml"
    policy = values.policy(root)
    inline = policy.pop("env")
    network = policy.pop("network")
    settings.write_text(json.dumps({"version": 1, **policy, "network": {"allow": network["allow"]}}))
    config.write_text(f"gate: off\nsettings: {settings}\nsecurity:\n  sandbox:\n"
                      f"    network: {{allow: [{HOST}], parent-proxy: {{http: 'http://user:{values.proxy}@127.0.0.1:9'}}}}\n")
    make = OthersDaemon if anyone.person is not None else Daemon
    daemon = make(anyone, "--config", str(config), gate=None)
    # what the daemon was started with is its user's own
    del values.kinds["settings"]
    box = daemon.create(policy={"env": inline, "network": network})
    assert box.exec(["sh", "-c", "echo $INLINE; hostname"])["stdout"].split() == [values.env, values.hostname[:60]]
    begun = daemon.post(f"{box.at}/exec", {"command": ["sleep", "600"], "env": {"GIVEN": values.given}, "background": True})
    assert begun.ok, begun
    names = ("cloche-maker", "cloche-front", "cloche-adapter", "cloche-warden", "cloche-scribe", "cloche-keeper", "cloche-egress", "cloche-vault")
    for name in names:
        assert daemon.running(name), name
    ours = {pid for pid in below(daemon.process.pid) if outside(pid)}
    assert len(ours) >= 1 + len(names)
    nothing_is_seen(values, ours)
    # one that is started anew is told by its socket too
    old = daemon.only("cloche-egress")
    os.kill(old, 9)
    assert wait_for(lambda: daemon.processes("cloche-egress") not in ([], [old]), 60)
    nothing_is_seen(values, {pid for pid in below(daemon.process.pid) if outside(pid)})
    # nor is a change of the policy, and what it was made anew with
    network["parent-proxy"]["http"] = f"http://user:{values.changed}@127.0.0.1:9"
    assert daemon.create(policy={"env": {"INLINE": values.second}, "network": network}).exec("true")["exit_code"] == 0
    nothing_is_seen(values, {pid for pid in below(daemon.process.pid) if outside(pid)})
    assert daemon.stop() == 0


def test_a_run_with_settings(anyone):
    """`cloche run`, its helpers and its sandbox, with a settings file that holds one of each."""
    values, root = Values(), anyone.project
    keep_a_secret(anyone, values)
    settings = root / "settings.yaml"
    settings.write_text(json.dumps({"version": 1, **values.policy(root)}))
    run = anyone.popen("run", "--settings", str(settings), "--", "sh", "-c", "echo $INLINE; exec sleep 600", stdout=subprocess.PIPE)
    assert run.stdout.readline().strip() in (values.env, values.env.encode())
    ours = {pid for pid in below(run.pid) if outside(pid)}
    table = leaks.parents()
    assert {"cloche-egress", "cloche-vault"} <= {table[pid][2] for pid in ours if pid in table}, [table.get(pid) for pid in ours]
    nothing_is_seen(values, ours)
    run.terminate()
    run.communicate(timeout=60)


def test_what_is_typed_is_there_and_by_name_it_is_not(anyone):
    """The other side: a value on a command line is everybody's to read, as docs/policy.md says. --env NAME takes it from the
    environment, which is its user's own."""
    values = Values()
    typed = anyone.popen("run", "--env", f"TYPED={values.typed}", "--", "sh", "-c", "echo; exec sleep 600", stdout=subprocess.PIPE)
    named = anyone.popen("run", "--env", "NAMED", "--", "sh", "-c", "echo $NAMED; exec sleep 600", stdout=subprocess.PIPE,
                         env={"NAMED": values.named})
    piped = anyone.popen("run", "--settings", "-", "--", "sh", "-c", "echo $PIPED; exec sleep 600", stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE)
    piped.stdin.write(f"env: {{PIPED: {values.piped}}}\n".encode())
    piped.stdin.close()
    assert typed.stdout.readline() and values.named in str(named.stdout.readline()) and values.piped in str(piped.stdout.readline())
    found, _ = values.seen(uid=NOBODY if places.IS_ROOT else None)
    assert any(f"cmdline: {values.typed}" in what for pid, what in found.items() if pid in below(typed.pid)), found
    for value in (values.named, values.piped):
        assert not [what for what in found.values() if f"cmdline: {value}" in what], found
    assert not [pid for pid, what in values.seen()[0].items() if f"environ: {values.piped}" in what and outside(pid)]
    for run in (typed, named, piped):
        run.terminate()
        run.wait(timeout=60)


@pytest.mark.root
def test_it_is_noticed(tmp_path):
    """The look itself: one process that has a value in its arguments, one that has it in its environment."""
    values = Values()
    shown = subprocess.Popen(["sleep", "600"], env={"SHOWN": values.shown})
    said = subprocess.Popen(["/bin/sh", "-c", "read x; exit", values.said], stdin=subprocess.PIPE)
    assert wait_for(lambda: {shown.pid, said.pid} <= set(values.seen()[0]), 60)
    assert set(values.seen(uid=NOBODY)[0]) == {said.pid}
    for process in (shown, said):
        process.kill()
        process.communicate()
