"""Docker's own client and docker-py, as they are published, drive cloche serve with nothing but DOCKER_HOST (docs/docker-api.md)."""
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers import images, pypi, requirement
from helpers.shared import shared

pytestmark = [requirement("R93"), shared]
DOCKER = shutil.which("docker")
SDK = ("docker==7.1.0",)
LIB = Path(__file__).resolve().parents[1] / "lib"
IMAGE = "cloche"


@pytest.fixture
def served(daemon, cloche):
    return daemon, {**cloche.env, "DOCKER_HOST": f"unix://{daemon.path}"}


@pytest.fixture
def docker(served):
    if DOCKER is None:
        pytest.skip("no client of Docker's: apt-get install docker.io (tools/deps check)")

    def run(*words, stdin=None, code=0):
        done = subprocess.run([DOCKER, *words], input=stdin, env=served[1], capture_output=True, timeout=120, check=False)
        assert done.returncode == code, (words, done)
        return done.stdout.decode() if code == 0 else done.stderr.decode()
    return run


def test_run(docker):
    assert docker("run", "--rm", IMAGE, "echo", "hello") == "hello\n"
    assert docker("run", "--rm", "-i", IMAGE, "cat", stdin=b"in\n") == "in\n"
    assert docker("run", "--rm", "-i", IMAGE, "python3", "-c", "print(1)") == "1\n"
    assert docker("run", "--rm", IMAGE, "sh", "-c", "echo e >&2; exit 7", code=7) == "e\n"
    assert "executable file not found" in docker("run", "--rm", IMAGE, "nosuch", code=127)
    assert docker("run", "--rm", "-e", "A=b", "-w", "/tmp", "--entrypoint", "sh", IMAGE, "-c", "echo $A; pwd") == "b\n/tmp\n"
    assert docker("ps", "-aq") == ""


def test_large_streams_are_whole(docker):
    data = bytes(range(256)) * 20000
    assert docker("run", "--rm", "-i", IMAGE, "sha256sum", stdin=data).split()[0] == hashlib.sha256(data).hexdigest()
    assert len(docker("run", "--rm", IMAGE, "head", "-c", "5000000", "/dev/zero")) == 5000000


def test_terminal(docker, served):
    if shutil.which("script") is None:
        pytest.skip("no script: apt-get install bsdutils")
    for words in (f"run --rm -it {IMAGE} tty", f"run --rm -it {IMAGE} sh -c 'test -t 0 && tty'"):
        done = subprocess.run(["script", "-qec", f"{DOCKER} {words}", "/dev/null"], env=served[1], capture_output=True, timeout=120, check=False)
        assert b"/dev/pts/" in done.stdout, done


def test_a_life(docker, tmp_path):
    docker("run", "-d", "--name", "web", "--label", "of=test", IMAGE, "sh", "-c", "for i in 1 2 3; do echo line $i; done; exec sleep 1000")
    assert docker("ps", "--format", "{{.Names}} {{.Image}} {{.State}}", "--filter", "label=of=test") == f"web {IMAGE} running\n"
    assert docker("logs", "--tail", "2", "web") == "line 2\nline 3\n"
    assert docker("exec", "web", "sh", "-c", "echo x") == "x\n" and docker("exec", "-i", "web", "cat", stdin=b"y") == "y"
    docker("exec", "web", "sh", "-c", "exit 3", code=3)
    (tmp_path / "dir" / "sub").mkdir(parents=True)
    (tmp_path / "dir" / "sub" / "f").write_text("data")
    docker("cp", str(tmp_path / "dir"), "web:/workspace/")
    assert docker("exec", "web", "cat", "/workspace/dir/sub/f") == "data"
    docker("cp", "web:/workspace/dir", str(tmp_path / "back"))
    assert (tmp_path / "back" / "sub" / "f").read_text() == "data"
    assert "No such file" in docker("cp", "web:/nosuch", str(tmp_path / "none"), code=1)
    docker("pause", "web")
    assert docker("ps", "--format", "{{.State}}") == "paused\n"
    docker("unpause", "web")
    docker("stop", "-t", "5", "web")
    assert docker("wait", "web") == "143\n" and docker("inspect", "-f", "{{.State.Status}}", "web") == "exited\n"
    docker("start", "web")
    docker("kill", "web")
    assert docker("wait", "web") == "137\n" and "cannot remove" not in docker("rm", "web")
    assert docker("ps", "-aq") == ""


def test_who_is_removed_when_it_ends(docker, served):
    """-d --rm: whoever waits hears the code, and the sandbox is gone."""
    made = docker("run", "-d", "--rm", IMAGE, "sh", "-c", "sleep 3; exit 5").strip()
    assert docker("wait", made[:12]) == "5\n"
    assert docker("ps", "-aq") == "" and served[0].get(f"/v1/sandboxes/{made}").json["state"] in ("stopping", "stopped")


def test_an_image_of_the_store(docker, cloche, tmp_path):
    assert "No such image" in docker("create", "--pull", "never", "tiny:1", code=1)
    assert "cloche image pull" in docker("run", "--rm", "tiny:1", "true", code=125)
    system = images.system("sh", "echo", "cat", "sleep", "tar", "stat")
    images.saved(tmp_path / "tiny.tar", [system], tags=["tiny:1"], Entrypoint=["/bin/sh", "-c"], Cmd=["echo by itself: $X"], Env=["X=y", "PATH=/bin"])
    images.saved(tmp_path / "bare.tar", [system], tags=["bare:1"])
    for name in ("tiny", "bare"):
        made = cloche("image", "import", tmp_path / f"{name}.tar")
        assert made.ok, made
    assert docker("run", "--rm", "tiny:1") == "by itself: y\n" and docker("run", "--rm", "tiny:1", "echo mine") == "mine\n"
    assert docker("run", "--rm", "--entrypoint", "/bin/echo", "tiny:1", "a", "b") == "a b\n"
    assert docker("run", "--rm", "bare:1", "/bin/sh", "-c", "test ! -e /usr/bin/python3 && echo alone") == "alone\n"
    assert "no command specified" in docker("run", "--rm", "bare:1", code=125)
    docker("run", "-d", "--name", "one", "tiny:1", "exec sleep 1000")
    (tmp_path / "f").write_text("data")
    docker("cp", str(tmp_path / "f"), "one:/tmp/f")
    assert docker("exec", "one", "/bin/cat", "/tmp/f") == "data"
    assert docker("inspect", "-f", "{{.Path}} {{.Args}}", "one") == "/bin/sh [-c exec sleep 1000]\n" and docker("ps", "--format", "{{.Image}}") == "tiny:1\n"
    docker("rm", "-f", "one")


def said_by_sdk(env, cwd):
    done = subprocess.run([pypi.python_with(*SDK), LIB / "docker_sdk.py", IMAGE], cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-3000:])
    return dict(json.loads(line) for line in done.stdout.splitlines())


def test_docker_py(served, tmp_path):
    said = said_by_sdk(served[1], tmp_path)
    assert said["version"] == ["1.44", True, "linux"] and said["run"] == "hello\n" and said["both"] == ["e", "o"]
    assert said["exit"] == 7 and said["env"] == ["b", "/tmp"] and said["left"] == 0
    assert said["detached"] == ["one", "created", {"of": "test"}, 32] and said["running"] == ["running", True, "one", True]
    assert said["list"] == [["one"], ["one"], []] and said["logs"] == ["begun\n", "begun\n"]
    assert said["exec"] == [3, "x\n"] and said["demux"] == [0, "o\n", "e\n"] and said["exec env"] == ["c", "/tmp"] and said["no such"] == 127
    assert said["put"] is True and said["get"] == ["f", 4, ["f"], "data"] and said["top"] == ["sleep 1000"]
    assert said["paused"] == "paused" and said["stopped"] == 143 and said["exited"] == ["exited", 143, "begun\n"] and said["killed"] == 130
    assert said["removed"] == [] and said["gone"] == 404 and said["attached"] == "echoed\n"
    assert said["privileged"][0] == 403 and said["volume"][0] == 403 and said["no image"][0] == 404 and "cloche image pull" in said["pull"][1]
