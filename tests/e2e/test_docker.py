"""The engine docker, on a real dockerd: what any sandbox must do; what its walls keep; what is left; what it refuses.

Needs root and dockerd (Debian's docker.io, tools/deps check), of which one is started for all of these.
"""
import json
import os
import signal
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from helpers import images, leaks, requirement
from helpers.dockerd import started
from helpers.engines import Engine
from helpers.podman import Podman, lacks
from helpers.runner import wait_for

pytestmark = [requirement("R41", "R21"), pytest.mark.root]
RUN = Path("/run/cloche-docker")


@pytest.fixture(scope="module")
def dockerd():
    with started() as made:
        yield made


def containers(dockerd):
    return dockerd.docker("ps", "-aq", "--no-trunc").stdout.split()


def orphans():
    """Folders of makers that are gone; others' tests may have some that live."""
    owners = {p: (p / "owner").read_text("ascii") for p in RUN.glob("*") if (p / "owner").exists()}
    return [p.name for p, owner in owners.items() if not Path("/proc", owner.split(":")[2]).exists()]


class Sandbox(Engine):
    """cloche run in a container of that daemon."""

    def __init__(self, cloche, dockerd):
        super().__init__(cloche, "--engine", "docker")
        self.dockerd = dockerd
        cloche.env["DOCKER_HOST"] = dockerd.host

    def start(self, text, *flags):
        run = self.cloche.popen(*self.flags(flags), "/bin/sh", "-c", f"echo up; {text}")
        assert run.stdout.readline().strip() in ("up", b"up")
        return run


@pytest.fixture
def sandbox(cloche, dockerd):
    yield Sandbox(cloche, dockerd)
    wait_for(lambda: not containers(dockerd) and not orphans())


# --- what any sandbox must do


def test_commands_and_streams(sandbox):
    data = os.urandom(1_000_000)
    assert sandbox("cat", stdin=data).out_bytes == data
    result = sandbox.sh("echo $A; pwd; echo err >&2; exit 42", "--env", "A=a b", "--workdir", "/tmp")
    assert (result.out, result.err, result.code) == ("a b\n/tmp\n", "err\n", 42), result


@pytest.mark.parametrize("text,code", (("ulimit -c 0; kill -SEGV $$", 139), ("no-such-program", 127), ("/etc/passwd", 126)))
def test_ends(sandbox, text, code):
    assert sandbox.sh(text).code == code


def test_timeout_ends_the_whole_tree(sandbox):
    assert sandbox.sh("setsid sleep 987124 & sleep 987124", "--timeout", "1s").code == 124
    wait_for(lambda: not leaks.named("sleep") or not any("987124" in Path(f"/proc/{pid}/cmdline").read_text("ascii")
                                                         for pid in leaks.named("sleep") if Path(f"/proc/{pid}").exists()))


def test_no_core_file_and_no_handler_for_one(sandbox):
    """The guest sets the limit before its filter lets nobody change it, itself included."""
    assert sandbox.sh("ulimit -c 0; grep core /proc/self/limits").out.split()[-3:] == ["1", "1", "bytes"]


def test_a_working_directory_that_is_not_there(sandbox):
    result = sandbox.sh("true", "--workdir", "/nope")
    assert result.code == 125 and "[wall.workdir]" in result.err, result


# --- its walls


@requirement("R26")
def test_who_it_is(sandbox):
    result = sandbox.sh("id -u; id -un; hostname; grep -E 'Cap|NoNew|Seccomp:' /proc/self/status; ls /sys /.cloche; ls /sys/class/net")
    words = result.out.split()
    assert int(words[0]) > 0x70000000 and words[1:3] == ["agent", "cloche"], result
    assert words.count("0" * 16) == 5 and words[words.index("NoNewPrivs:") + 1] == "1", result
    assert words[words.index("Seccomp:") + 1] == "2" and result.err.count("No such file") == 3, result


@requirement("R26")
def test_the_daemons_view(sandbox):
    """What was asked for is in force as the daemon has it, too: whoever looks at the container sees it."""
    run = sandbox.start("exec sleep 600", "--memory", "200M", "--cpus", "0.5", "--pids", "30")
    said, = json.loads(sandbox.dockerd.docker("inspect", *containers(sandbox.dockerd)).stdout)
    host = said["HostConfig"]
    assert host["NetworkMode"] == "none" and host["ReadonlyRootfs"] and host["AutoRemove"] and host["CapDrop"] == ["ALL"], host
    assert host["SecurityOpt"] == ["no-new-privileges", "seccomp=unconfined"] and not host["Privileged"] and not host["Binds"], host
    assert host["NanoCpus"] == 500_000_000 and host["PidsLimit"] == 31 and 200 << 20 <= host["Memory"] == host["MemorySwap"], host
    assert [m["RW"] for m in said["Mounts"]] == [False] and said["Name"] == f"/cloche-{said['Config']['Labels']['dev.cloche.sandbox']}"
    assert "docker.sock" not in json.dumps(said) and sandbox.dockerd.host.partition("://")[2] not in json.dumps(said)
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 143


@requirement("R43")
def test_the_containers_name_begins_as_the_settings_say(sandbox):
    settings = sandbox.cloche.project / "s.yaml"
    settings.write_text("containerPrefix: team_a-\nengineType: docker\n")
    run = sandbox.start("exec sleep 600", "--settings", settings)
    names = sandbox.dockerd.docker("ps", "--format", "{{.Names}}", "--filter", "name=^team_a-").stdout.split()
    assert len(names) == 1 and len(names[0]) == len("team_a-") + 32, names
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 143
    result = sandbox.cloche("run", "--settings", settings, "--engine", "native", "--", "true")
    assert result.code == 125 and "[engine.container-prefix]" in result.err, result


@requirement("R65")
def test_limits(sandbox):
    assert sandbox.sh("head -c 50000000 /dev/zero > /tmp/x", "--disk", "20M").code == 1
    result = sandbox("python3", "-c", "a = b'x' * 400000000; print('not limited')", flags=("--memory", "100M"))
    assert result.code == 137 and not result.out, result
    result = sandbox.sh("for i in $(seq 60); do sleep 5 & done; jobs -p | wc -l; wait", "--pids", "20", "--timeout", "30s")
    assert "Cannot fork" in result.err, result
    report = sandbox("python3", "-c", "sum(range(10**6))", flags=("--json", "--memory", "1G")).json
    assert report["engine"] == "docker" and report["peak_memory_bytes"] > 1_000_000 and report["cpu_ms"] > 0, report
    assert report["limits"]["memory_bytes"]["enforced_by"].startswith("cgroup"), report


@requirement("R40")
def test_a_project_that_is_written_keeps_its_hooks(sandbox, command):
    project = sandbox.cloche.project
    command(["git", "init", "-q", project])
    hook = project / ".git/hooks/pre-commit"
    result = sandbox.sh("echo x > a; echo x > .git/hooks/pre-commit; mv .git/hooks h; ls -a", "--workspace", project)
    assert not hook.exists() and (project / "a").read_text() == "x\n" and (project / ".git/hooks").is_dir(), result
    assert (project / "a").stat().st_uid == project.stat().st_uid


def test_read_only_and_copied_projects(sandbox):
    project = sandbox.cloche.project
    (project / "f").write_text("text")
    result = sandbox.sh("cat f; echo x > f; touch y", "--workspace", f"{project}:ro")
    assert result.out == "text" and result.err.count("ead-only") == 2, result
    result = sandbox.sh("rm f; echo new > g; ls", "--workspace", f"{project}:cow")
    assert result.out == "g\n" and [p.name for p in project.iterdir()] == ["f"], result
    assert sandbox.cloche("discard", result.err.split("cloche diff ")[1].split("`")[0]).ok


@requirement("R14")
@pytest.mark.parametrize("transparent", (False, True))
def test_hosts_by_name(online, dockerd, transparent):
    online.cloche.env["DOCKER_HOST"] = dockerd.host
    result = online.curl("https://ok.example.org/a", flags=("--engine", "docker"), transparent=transparent)
    assert result.ok and result.out == "hello ok.example.org /a\n", result
    assert [r["host"] for r in online.net.requests] == ["ok.example.org"]
    refused = online.curl("http://other.example.org/", flags=("--engine", "docker"), transparent=transparent)
    assert ("not resolve" in refused.err if transparent else "network-no-rule" in refused.out) and len(online.net.requests) == 1, refused


@requirement("R80", "R30")
def test_prove(sandbox):
    result = sandbox.cloche("prove", "--engine", "docker", "--json")
    report = result.json
    assert result.code == 0 and report["n_surprises"] == 0 and report["engine"] == "docker", result
    assert [m["mode"] for m in report["modes"]] == ["standard", "max"] and report["n_checks"] > 400


@requirement("R27")
def test_an_image_of_the_store_is_the_system(sandbox, tmp_path):
    """What is in it is below folders of ours, which a container of the daemon's has as any sandbox."""
    files = images.layer(images.folder("etc"), images.entry("etc/os-release", b"ID=mine\n"), images.folder("usr/share"),
                         images.entry("usr/share/a", b"a"))
    made = images.layout(tmp_path / "image", [images.system("sh", "cat", "ls", "id"), files], Env=["FROM=image"], User="1234")
    assert sandbox.cloche("image", "import", str(made.path), "sys:1").ok
    result = sandbox.sh("cat /etc/os-release; id -un; echo $FROM; echo new > /usr/share/a; cat /usr/share/a; ls /usr/bin/python3",
                        "--image", "sys:1")
    assert result.out == "ID=mine\nagent\nimage\nnew\n" and "python3" in result.err, result
    assert sandbox.sh("cat /usr/share/a", "--image", "sys:1").out == "a"
    result = sandbox("true", flags=("--image", "not-there"))
    assert result.code == 125 and "not-there" in result.err, result


def test_podman(cloche):
    """The same words, another daemon."""
    if lacks(rootless=False) is not None:
        pytest.skip(f"{lacks(rootless=False)} is not installed: tools/deps check")
    podman = Podman()
    try:
        with podman.service() as cloche.env["DOCKER_HOST"]:
            result = cloche("run", "--engine", "docker", "--workspace", cloche.project, "--", "/bin/sh", "-c", "echo x > f; id -un")
            assert result.out == "agent\n" and (cloche.project / "f").read_text() == "x\n", result
            report = cloche("prove", "--engine", "docker", "--mode", "standard", "--quick", "--json").json
            assert report["n_surprises"] == 0 and report["n_checks"] > 100, [
                c for m in report["modes"] for c in m["checks"] if c["state"] == "surprise"]
            assert not podman.podman("ps", "-aq").stdout.strip() and not orphans()
    finally:
        podman.end()


# --- its end: `sandbox` looks at what is left


@pytest.mark.parametrize("whom", ("cloche", "cloche and janitor", "cloche and holder", "guest", "container"))
def test_nothing_is_left_when_somebody_is_killed(sandbox, whom):
    run = sandbox.start("exec sleep 600")
    children = {name: pid for pid, (parent, _, name) in leaks.parents().items() if parent == run.pid}
    container, = containers(sandbox.dockerd)
    for name in ("janitor", "holder"):
        if name in whom:
            os.kill(children["cloche-docker" if name == "holder" else "cloche-janitor"], signal.SIGKILL)
    if whom == "container":
        sandbox.dockerd.docker("rm", "-f", container)
    elif whom == "guest":
        sandbox.dockerd.docker("kill", container)
    else:
        os.kill(run.pid, signal.SIGKILL)
    assert run.wait(60) == (-signal.SIGKILL if "cloche" in whom else 125)
    wait_for(lambda: leaks.reap_adopted(set()) or not containers(sandbox.dockerd))
    if "janitor" in whom:       # the folder is the next one's to remove
        assert sandbox("true").ok


def test_what_a_dead_maker_left_is_swept(sandbox):
    """A container that was made and never started has no guest that would end with its maker."""
    word = "0123456789abcdef" * 2
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    here = f"{boot}:{os.stat('/proc/self/ns/pid').st_ino}"
    assert sandbox("true").ok       # now the image is there
    owners = {word: f"{here}:{os.getpid()}:1", word[::-1]: f"{boot[:-1]}!:1:1:1"}
    for name, owner in owners.items():
        made = sandbox.dockerd.docker("create", "--name", f"cloche-{name}", "--label", f"dev.cloche.sandbox={name}", "--label",
                                      f"dev.cloche.owner={owner}", "localhost/cloche-empty:latest", "/x")
        assert made.returncode == 0, made
    (RUN / word).mkdir()
    (RUN / word / "owner").write_text(owners[word])
    assert sandbox("true").ok and not containers(sandbox.dockerd) and not (RUN / word).exists()


def test_labels_of_somebodys_image_make_no_container_ours(sandbox):
    """A container inherits the labels of its image, whoever wrote them."""
    assert sandbox("true").ok
    for name, word in (("somebodys", "0123456789abcdef" * 2), ("somebodys-x", "x")):
        made = sandbox.dockerd.docker("create", "--name", name, "--label", f"dev.cloche.sandbox={word}", "--label", "dev.cloche.owner=x",
                                      "localhost/cloche-empty:latest", "/x")
        assert made.returncode == 0, made
    ran, left = sandbox("true"), sandbox.dockerd.docker("ps", "--all", "--format", "{{.Names}}")
    sandbox.dockerd.docker("rm", "somebodys", "somebodys-x")
    assert ran.ok and {"somebodys", "somebodys-x"} <= set(left.stdout.split()), left


def test_what_lives_is_not_swept(sandbox):
    run = sandbox.start("exec sleep 600")
    before = containers(sandbox.dockerd)
    assert sandbox("true").ok and containers(sandbox.dockerd) == before
    run.send_signal(signal.SIGTERM)
    assert run.wait(60) == 143


# --- a daemon that gives less than it was asked for


def whole(one, until_close):
    """A message of HTTP: what is read to its end, or to the length that it names."""
    text = b""
    while True:
        piece = one.recv(65536)
        text += piece
        head, _, body = text.partition(b"\r\n\r\n")
        length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0)
        if not piece or (not until_close and b"\r\n\r\n" in text and len(body) >= length):
            return text


def between(listener, where, change):
    """Each request to the daemon, but for the one that makes the container, as it is."""
    while True:
        try:
            one, _ = listener.accept()
        except OSError:
            return
        with one, socket.socket(socket.AF_UNIX) as daemon:
            text = whole(one, False)
            head, _, body = text.partition(b"\r\n\r\n")
            if b"/containers/create" in head.split(b"\r\n")[0]:
                asked = json.loads(body)
                change(asked, asked["HostConfig"])
                body = json.dumps(asked).encode()
                lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"content-length")]
                text = b"\r\n".join([*lines, b"Content-Length: %d" % len(body)]) + b"\r\n\r\n" + body
            daemon.connect(where)
            daemon.sendall(text)
            one.sendall(whole(daemon, True))


WEAK = {
    "a capability": lambda c, h: h.update(CapAdd=["NET_RAW"]), "privileged": lambda c, h: h.update(Privileged=True),
    # not the host's network: dockerd keeps a mount of it
    "root": lambda c, h: c.update(User="0:0"), "the host's processes": lambda c, h: h.update(PidMode="host"), "the host's IPC": lambda c, h: h.update(IpcMode="host"),
    "the host's cgroups": lambda c, h: h.update(CgroupnsMode="host"),
    # what is mounted in the container is not in the sandbox's tree
    "the host's files": lambda c, h: h.update(Binds=["/:/host", "/etc:/usr/share"], ReadonlyRootfs=False),
}


def through(sandbox, tmp_path, change, *argv):
    """cloche run by way of somebody who changes what the daemon is asked for."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        thread = threading.Thread(target=between, args=(listener, sandbox.dockerd.host.partition("://")[2], change))
        thread.start()
        sandbox.cloche.env["DOCKER_HOST"] = f"unix://{tmp_path}/s"
        result = sandbox.sh(*argv)
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        return result


@requirement("R26", "R30")
@pytest.mark.parametrize("what", WEAK)
def test_a_weaker_container_is_noticed(sandbox, tmp_path, what):
    result = through(sandbox, tmp_path, WEAK[what], "echo ran; ls -d /host /usr/share/passwd")
    if what == "the host's files":
        assert result.out == "ran\n" and result.err.count("No such file") == 2, result
    else:
        # root without capabilities cannot open what is another user's
        code = "[docker.gone]" if what == "root" else "[docker.wall]"
        assert result.code == 125 and code in result.err and not result.out, result


def without_limits(_, host):
    for name in ("Memory", "MemorySwap", "NanoCpus", "PidsLimit"):
        host.pop(name, None)


@requirement("R65", "R26")
@pytest.mark.parametrize("flags,code", ((("--cpus", "1"), "wall.cpu.unsupported"), (("--memory", "1G", "--pids", "50", "--json"), None)))
def test_limits_that_the_daemon_does_not_set_are_not_promised(sandbox, tmp_path, flags, code):
    """As it does, with no more than a warning, where the kernel has not the controller."""
    result = through(sandbox, tmp_path, without_limits, "echo ran", *flags)
    if code is not None:
        assert result.code == 125 and f"[{code}]" in result.err and not result.out, result
    else:
        limits = result.json["limits"]
        assert limits["memory_bytes"]["enforced_by"] == "supervised" and limits["pids"]["enforced_by"] == "rlimit", limits


# --- what it refuses


@pytest.mark.parametrize("flags,code", (
    (("--mode", "light"), "docker.mode"), (("--view", "host"), "docker.view"), (("--network", "host"), "docker.network"),
    (("--runtime", "crun"), "policy.runtime.engine")))
def test_refusals(sandbox, flags, code):
    result = sandbox("echo", "ran", flags=flags)
    assert result.code == 125 and f"[{code}]" in result.err and "ran" not in result.out, result


@requirement("R26")
def test_the_daemons_socket_is_never_shown(sandbox):
    """Whoever may speak to it is root on the host."""
    where = Path(sandbox.dockerd.host.partition("://")[2])
    for flags in (("--workspace", f"{where.parent}:ro"), ("--bind", str(where.parent)), ("--bind", f"{where}:/s"),
                  ("--allow-unix-socket", str(where))):
        result = sandbox("true", flags=flags)
        assert result.code == 125 and "[docker.socket.reachable]" in result.err, (flags, result)


@pytest.mark.parametrize("host,code", (("tcp://127.0.0.1:1", "docker.host"), ("unix://relative", "docker.host"),
                                       ("unix:///nope/socket", "docker.socket.absent"), ("unix:///" + "x" * 200, "docker.host")))
def test_no_daemon(cloche, host, code):
    cloche.env["DOCKER_HOST"] = host
    result = cloche("run", "--engine", "docker", "--", "true")
    assert result.code == 125 and f"[{code}]" in result.err, result


def answer(listener, replies):
    for text in replies:
        one, _ = listener.accept()
        with one:
            one.recv(65536)
            one.sendall(text)


def http(body, status=200):
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


@pytest.mark.parametrize("replies,code", (
    ([http('{"ApiVersion": "1.24", "Version": "1.12"}')], "docker.too-old"), ([b"SSH-2.0-x\r\n"], "docker.answer"),
    ([http("{}")], "docker.answer"), ([http('{"message": "no"}', 403)], "docker.answer"), ([b""], "docker.answer"),
    ([b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"], "docker.answer")))
def test_what_is_no_daemon_for_it(cloche, tmp_path, replies, code):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        thread = threading.Thread(target=answer, args=(listener, replies))
        thread.start()
        cloche.env["DOCKER_HOST"] = f"unix://{tmp_path}/s"
        result = cloche("run", "--engine", "docker", "--", "true")
        thread.join()
    assert result.code == 125 and f"[{code}]" in result.err, result


def test_a_daemon_of_somebody_else_is_not_asked(cloche, tmp_path):
    code = (f"import os, socket as s; l = s.socket(s.AF_UNIX); l.bind('{tmp_path}/s'); os.setuid(1000); l.listen(); "
            "print(1, flush=True); l.accept()")
    with subprocess.Popen(["python3", "-c", code], stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        cloche.env["DOCKER_HOST"] = f"unix://{tmp_path}/s"
        result = cloche("run", "--engine", "docker", "--", "true")
        other.kill()
    assert result.code == 125 and "[docker.socket.owner]" in result.err, result


@pytest.mark.ordinary
def test_an_ordinary_user_is_told(cloche):
    result = cloche("run", "--engine", "docker", "--", "true")
    assert result.code == 125 and "[docker.root]" in result.err, result
