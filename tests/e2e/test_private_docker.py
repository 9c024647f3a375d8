"""--private-docker: a Docker Engine in a machine of the engine microvm, with no path to the host's (R15)."""
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from e2e import test_image_build as build
from helpers import images, kept, requirement
from helpers import machines as vm
from helpers.daemon import Daemon
from helpers.preview import expose

pytestmark = requirement("R15", "R67")

RECIPE = "about: the recipe docker, and what containers are made of\npackages: [busybox-static, ca-certificates, docker-compose, docker.io, iptables, redis-server]\n"
CONTAINERFILE = """FROM base AS build
RUN echo "made in a stage" > /made && busybox seq 1 3 >> /made
FROM base
COPY --from=build /made /srv/made
CMD ["busybox", "httpd", "-f", "-p", "80", "-h", "/srv"]
"""
COMPOSE = """version: "3"
services:
  web:
    build: { context: ., dockerfile: Containerfile }
    ports: ["8080:80"]
  cache:
    image: base
    command: [redis-server, --save, "", --bind, 0.0.0.0, --protected-mode, "no"]
"""
# Its first image is made of the machine's own programs: no registry is needed.
WORK = r"""
set -eu
export COMPOSE_HTTP_TIMEOUT=1200 DOCKER_CLIENT_TIMEOUT=1200     # emulated, the usual minute is not enough
mkdir -p /tmp/r/bin /tmp/r/tmp /tmp/r/etc && cp "$(command -v busybox)" /tmp/r/bin/ && ln -s busybox /tmp/r/bin/sh
for program in bash redis-server redis-cli; do
    path=$(command -v $program)
    for file in "$path" $(ldd "$path" | grep -o '/[^ ]*'); do cp --parents -L "$file" /tmp/r; done
done
echo 'root:x:0:0::/:/bin/sh' > /tmp/r/etc/passwd
# Not busybox' wget: where it is linked statically, as Debian has it, it dies of the first name it is to find.
cat > /tmp/r/bin/get <<'END'
exec 3<>/dev/tcp/$1/80
printf 'GET %s HTTP/1.0\r\nHost: %s\r\n\r\n' "$2" "$1" >&3
read -r _ code _ <&3 && [ "$code" = 200 ] && busybox cat <&3
END
tar -C /tmp/r -c . | docker import - base
get() { name=$1; shift; $name busybox timeout 200 bash /bin/get "$@" || echo "no way to $1"; }
cp -r /workspace /tmp/project && cd /tmp/project
docker build -q -t web -f Containerfile .
docker run --rm web busybox cat /srv/made | tr '\n' ' '; echo
docker run --rm --privileged -v /:/m base busybox sh -c 'echo x > /m/workspace/x || echo closed; busybox cat /m/etc/shadow | busybox wc -l'
docker-compose -p mine up -d
docker exec mine_cache_1 redis-cli ping
get "docker run --rm base" ok.example.org /a
get "docker exec mine_cache_1" ok.example.org /b
get "docker exec mine_cache_1" other.example.org /
get "docker exec mine_cache_1" 169.254.169.254 /
get "docker exec mine_cache_1" web /made
for i in 1 2 3 4 5 6 7 8 9; do bash -c '< /dev/tcp/127.0.0.1/8080' && break; sleep 2; done
echo serving
head -c 1 > /dev/null
"""


@pytest.fixture
def engine(cloche, has):
    """The name of an image with dockerd in @cloche's store. It is made once and kept, as packages are: it takes minutes."""
    if vm.why_not():
        pytest.skip(vm.why_not())
    has(*build.NEEDS)
    folder = kept.root() / f"image-engine-{hashlib.sha256(RECIPE.encode()).hexdigest()[:16]}"
    with kept.once(folder) as to_be_made:
        if to_be_made:
            (folder / "engine.tar").unlink(missing_ok=True)
            build.recipe(cloche, RECIPE, "engine")
            made = cloche("image", "build", "engine", *build.mirrors(), timeout=3000)
            assert made.ok, made
            saved = cloche("image", "save", "localhost/engine:bookworm", "--output", str(folder / "engine.tar"), timeout=3000)
            assert saved.ok, saved
    if not to_be_made:
        taken = cloche("image", "import", str(folder / "engine.tar"), timeout=3000)
        assert taken.ok, taken
    return "localhost/engine:bookworm"


@pytest.mark.root
def test_build_run_compose_and_reach_it(engine, online, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    (project / "Containerfile").write_text(CONTAINERFILE, encoding="ascii")
    (project / "docker-compose.yml").write_text(COMPOSE, encoding="ascii")
    online.cloche.env["CLOCHE_KERNEL_ROOT"] = vm.ROOT
    flags = ("--engine", "microvm", "--image", engine, "--private-docker", "--memory", "3g", "--cpus", "2",
             "--workspace", f"{project}:ro", "--publish", "8080", "--timeout", "2400")
    run = online.popen(["/bin/sh", "-c", WORK], flags=flags, stdin=subprocess.PIPE)
    said = []
    for line in run.stdout:
        said.append(line.decode().rstrip())
        if said[-1] == "serving":
            break
    else:
        pytest.fail(f"{said} {run.communicate()}")
    assert online.host(["curl", "-sS", "http://127.0.0.1:8080/made"]).out == "made in a stage\n1\n2\n3\n"
    assert run.communicate(b"x", timeout=600) and run.returncode == 0
    text = "\n".join(said)
    assert "made in a stage 1 2 3" in said and "PONG" in said, text
    assert "closed" in said and not (project / "x").exists(), text      # the host's mount keeps it, whoever asks
    # of one network and of another one, in which names are asked of dockerd first
    assert "hello ok.example.org /a" in said and "hello ok.example.org /b" in said and said.count("made in a stage") == 1, text
    assert [line for line in said if line.startswith("no way")] == ["no way to other.example.org", "no way to 169.254.169.254"], text
    assert [(r["host"], r["path"]) for r in online.net.requests] == [("ok.example.org", "/a"), ("ok.example.org", "/b")]


# As in WORK, for one command after the other.
BASE = r"""
set -eu
mkdir -p /tmp/r/bin /tmp/r/srv && cp "$(command -v busybox)" /tmp/r/bin/ && ln -s busybox /tmp/r/bin/sh && echo by a container > /tmp/r/srv/page
tar -C /tmp/r -c . | docker import - base
"""
SERVED = """limits: {cpus: 2, memory: 3g, time: 20m}
engine: microvm
private-docker: true
image: localhost/engine:bookworm
"""


@pytest.mark.root
@requirement("R41", "R23")
def test_in_a_sandbox_of_the_daemon(engine, cloche):
    """Its containers go with it, and a port of theirs is one of the sandbox's."""
    cloche.env["CLOCHE_KERNEL_ROOT"] = vm.ROOT
    settings = cloche.home / "settings.yaml"
    settings.write_text(SERVED, encoding="ascii")
    daemon = Daemon(cloche, "--settings", str(settings))
    box = daemon.create()
    assert (box.record["facts"]["boundary"], box.record["facts"]["network"]) == ("vm", "none"), box.record
    for command in (BASE, "docker run -d --name web -p 8080:80 base busybox httpd -f -p 80 -h /srv"):
        said = box.exec(command, timeout_ms=1200000)
        assert said["exit_code"] == 0, said
    assert daemon.get(expose(box, 8080)["path"] + "page").body == b"by a container\n"
    assert daemon.post(f"{box.at}/pause").ok and daemon.post(f"{box.at}/resume").ok
    said = box.exec("docker ps --format '{{.Names}} {{.State}}'; test -e /run/docker.sock && echo its own", timeout_ms=600000)
    assert said["stdout"] == "web running\nits own\n", said
    assert box.delete().ok and box.show()["state"] == "stopped"
    assert daemon.stop() == 0, daemon.log


STAGES = """ARG TAG=none
FROM localhost/base:${TAG} AS build
ARG WORD
RUN echo "$WORD" > /made && busybox id -u >> /made && busybox chown 33:33 /made
FROM localhost/base:1
ENV A=b
WORKDIR /srv
COPY --from=build /made /srv/
COPY note /srv/
CMD ["busybox", "cat", "made", "note"]
"""


@pytest.mark.root
def test_a_containerfile_becomes_an_image(cloche, engine, tmp_path):
    """R67: of two stages, from an image of the store, by a machine that reaches nothing."""
    busybox = images.layer(images.folder("bin"), images.entry("bin/busybox", Path("/bin/busybox").read_bytes(), mode=0o755),
                           images.link("bin/sh", "busybox"), images.folder("tmp"))
    (tmp_path / "base.tar").write_bytes(busybox)
    assert cloche("image", "import", str(tmp_path / "base.tar"), "localhost/base:1").ok
    project = tmp_path / "project"
    project.mkdir()
    (project / "Containerfile").write_text(STAGES, encoding="ascii")
    (project / "note").write_text("of the project\n", encoding="ascii")
    cloche.env["CLOCHE_KERNEL_ROOT"] = vm.ROOT
    flags = ("--builder", engine, "--memory", "3g", "--timeout", "40m", "--build-arg", "TAG=1", "--build-arg", "WORD=two words")
    made = cloche("image", "build", str(project), "mine:1", *flags, timeout=3000)
    assert made.ok and made.out.startswith("mine:1  sha256:") and "Step 4/" in made.err, made
    shown = json.loads(cloche("image", "inspect", "mine:1", "--json").out)
    assert "A=b" in shown["env"] and shown["workdir"] == "/srv", shown
    ran = cloche("run", "--image", "mine:1")
    assert ran.ok and ran.out == "two words\n0\nof the project\n", ran
    (project / "Other").write_text("FROM localhost/base:1\nRUN echo why not >&2; exit 3\n", encoding="ascii")
    failed = cloche("image", "build", str(project), "mine:2", *flags, "--file", "Other", timeout=3000)
    assert failed.code == 125 and "returned a non-zero code: 3" in failed.err and "[image.build]" in failed.err, failed
    assert "[image.unknown]" in cloche("image", "inspect", "mine:2").err


def test_what_a_containerfile_needs_is_said_first(cloche, tmp_path):
    project = tmp_path / "Project"
    project.mkdir()
    assert "[image.name]" in cloche("image", "build", str(project)).err        # no name by itself: a capital letter
    said = cloche("image", "build", str(project), "mine:1")
    assert "[image.unknown]" in said.err and "cloche image build docker" in said.err, said
    (tmp_path / "any.tar").write_bytes(images.layer(images.entry("a", b"a")))
    assert cloche("image", "import", str(tmp_path / "any.tar"), "any:1").ok
    rows = [(None, (), "containerfile.read", "Containerfile or Dockerfile"),
            ("FROM nobody:1\n", (), "image.unknown", "cloche image pull nobody:1"),
            ("# x\nFROM $WHICH\n", (), "containerfile.variable", "line 2"),
            ("FROM $WHICH\n", ("--build-arg", "WHICH=nobody:2"), "image.unknown", "nobody:2"),
            ("FROM any:1\n", ("--file", "../any.tar"), "containerfile.read", "../any.tar"),
            ("FROM any:1\n", ("--file", "none"), "containerfile.read", "none"),
            ("FROM any:1\n", ("--build-arg", "WHICH"), "image.build-arg", "NAME=VALUE")]
    for text, flags, code, words in rows:
        if text is not None:
            (project / "Dockerfile").write_text(text, encoding="ascii")
        said = cloche("image", "build", str(project), "mine:1", "--builder", "any:1", *flags)
        assert said.code == 125 and f"[{code}]" in said.err and words in said.err, (text, flags, said)


def refused(cloche, code, *flags):
    result = cloche("run", "--private-docker", *flags, "--", "true")
    assert result.code == 125 and f"[{code}]" in result.err, result


def test_what_has_no_machine_is_refused(cloche):
    refused(cloche, "policy.private-docker.engine")
    refused(cloche, "policy.private-docker.engine", "--engine", "native")
    if shutil.which("crun"):
        refused(cloche, "policy.private-docker.engine", "--engine", "oci", "--runtime", "crun")


def test_who_is_not_root_is_refused(cloche):
    refused(cloche, "policy.private-docker.user", "--engine", "microvm", "--user", "1000")
