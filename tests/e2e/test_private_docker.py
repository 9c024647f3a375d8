"""--private-docker: a Docker Engine in a machine of the engine microvm, with no path to the host's (R15)."""
import shutil

import pytest

from e2e import test_image_build as build
from e2e import test_microvm as vm
from helpers import requirement

pytestmark = requirement("R15")

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
mkdir -p /tmp/r/bin /tmp/r/tmp /tmp/r/etc && cp "$(command -v busybox)" /tmp/r/bin/ && ln -s busybox /tmp/r/bin/sh
for program in redis-server redis-cli; do
    path=$(command -v $program)
    for file in "$path" $(ldd "$path" | grep -o '/[^ ]*'); do cp --parents -L "$file" /tmp/r; done
done
echo 'root:x:0:0::/:/bin/sh' > /tmp/r/etc/passwd
tar -C /tmp/r -c . | docker import - base
cp -r /workspace /tmp/project && cd /tmp/project
docker build -q -t web -f Containerfile .
docker run --rm web busybox cat /srv/made | tr '\n' ' '; echo
docker run --rm --privileged -v /:/m base busybox sh -c 'echo x > /m/workspace/x || echo closed; busybox cat /m/etc/shadow | busybox wc -l'
docker-compose -p mine up -d
docker exec mine_cache_1 redis-cli ping
docker run --rm base busybox wget -T 60 -q -O - http://ok.example.org/a || echo no way to it
docker run --rm base busybox wget -T 60 -q -O - http://other.example.org/ || echo no way to another
docker run --rm base busybox wget -T 60 -q -O - http://169.254.169.254/ || echo no way to metadata
for i in 1 2 3 4 5 6 7 8 9; do busybox wget -q -O /dev/null http://127.0.0.1:8080/made && break; sleep 2; done
echo serving
head -c 1 > /dev/null
"""


@pytest.mark.root
def test_build_run_compose_and_reach_it(cloche, online, has, tmp_path):
    if vm.why_not():
        pytest.skip(vm.why_not())
    has(*build.NEEDS)
    build.recipe(cloche, RECIPE, "engine")
    made = cloche("image", "build", "engine", *build.mirrors(), timeout=3000)
    assert made.ok, made
    project = tmp_path / "project"
    project.mkdir()
    (project / "Containerfile").write_text(CONTAINERFILE, encoding="ascii")
    (project / "docker-compose.yml").write_text(COMPOSE, encoding="ascii")
    online.cloche.env["CLOCHE_KERNEL_ROOT"] = vm.ROOT
    flags = ("--engine", "microvm", "--image", "localhost/engine:bookworm", "--private-docker", "--memory", "3g", "--cpus", "2",
             "--workspace", f"{project}:ro", "--publish", "8080", "--timeout", "2400")
    run = online.popen(["/bin/sh", "-c", WORK], flags=flags)
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
    assert "made in a stage 1 2 3 " in said and "PONG" in said, text
    assert "closed" in said and not (project / "x").exists(), text      # the host's mount keeps it, whoever asks
    assert "hello ok.example.org /a" in text and "no way to it" not in said, text
    assert "no way to another" in said and "no way to metadata" in said, text
    assert [r["host"] for r in online.net.requests] == ["ok.example.org"]


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
