"""What docker-py's users do, against $DOCKER_HOST: lines [WHAT, RESULT] (tests/conformance/test_docker_api.py)."""
import io
import json
import sys
import tarfile

import docker
from docker.errors import APIError, ContainerError, NotFound

IMAGE = sys.argv[1]


def say(what, result):
    print(json.dumps([what, result]), flush=True)


def refused(call, *words, **more):
    try:
        call(*words, **more)
    except APIError as e:
        return [e.status_code, e.explanation]
    return None


def archive(name, data):
    room = io.BytesIO()
    with tarfile.open(fileobj=room, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return room.getvalue()


def unpacked(container, path):
    stream, stat = container.get_archive(path)
    with tarfile.open(fileobj=io.BytesIO(b"".join(stream))) as tar:
        return [stat["name"], stat["size"], tar.getnames(), tar.extractfile(tar.getmembers()[0]).read().decode()]


def runs(client):
    say("run", client.containers.run(IMAGE, ["echo", "hello"], remove=True).decode())
    say("both", sorted(client.containers.run(IMAGE, ["sh", "-c", "echo o; echo e >&2"], remove=True, stderr=True).decode().split()))
    try:
        client.containers.run(IMAGE, ["sh", "-c", "exit 7"], remove=True)
    except ContainerError as e:
        say("exit", e.exit_status)
    say("env", client.containers.run(IMAGE, ["sh", "-c", "echo $A; pwd"], environment={"A": "b"}, working_dir="/tmp", remove=True).decode().split())
    say("left", len(client.containers.list(all=True)))


def lives(client):
    one = client.containers.run(IMAGE, ["sh", "-c", "echo begun; exec sleep 1000"], detach=True, name="one", labels={"of": "test"})
    say("detached", [one.name, one.status, one.attrs["Config"]["Labels"], len(one.id)])
    one.reload()
    say("running", [one.status, one.attrs["State"]["Running"], client.containers.get(one.id[:12]).name, client.containers.get("one").id == one.id])
    say("list", [[c.name for c in client.containers.list(filters={"label": label})] for label in ("of", "of=test", "of=other")])
    log = one.logs(stream=True, follow=True)
    say("logs", [next(log).decode(), one.logs(tail=1).decode()])
    say("exec", [part.decode() if isinstance(part, bytes) else part for part in one.exec_run(["sh", "-c", "echo x; exit 3"])])
    code, both = one.exec_run(["sh", "-c", "echo o; echo e >&2"], demux=True)
    say("demux", [code, *[b.decode() for b in both]])
    say("exec env", one.exec_run(["sh", "-c", "echo $B; pwd"], environment={"B": "c"}, workdir="/tmp").output.decode().split())
    say("no such", one.exec_run(["nosuch"]).exit_code)
    say("put", one.put_archive("/workspace", archive("f", b"data")))
    say("get", unpacked(one, "/workspace/f"))
    say("top", [w for line in one.top()["Processes"] for w in line if w.startswith("sleep")])
    one.pause()
    one.reload()
    say("paused", one.status)
    one.unpause()
    one.stop(timeout=3)
    say("stopped", one.wait()["StatusCode"])
    one.reload()
    say("exited", [one.status, one.attrs["State"]["ExitCode"], one.logs().decode()])
    one.start()
    one.kill("SIGINT")
    say("killed", one.wait()["StatusCode"])
    one.remove(force=True)
    say("removed", [c.name for c in client.containers.list(all=True)])
    try:
        client.containers.get("one")
    except NotFound as e:
        say("gone", e.status_code)


def attached(client):
    box = client.containers.create(IMAGE, ["cat"], stdin_open=True)
    sock = box.attach_socket(params={"stdin": 1, "stdout": 1, "stream": 1})
    box.start()
    sock._sock.sendall(b"echoed\n")             # pylint: disable=protected-access
    got = b""
    while len(got) < 15:
        got += sock._sock.recv(4096)            # pylint: disable=protected-access
    say("attached", got[8:15].decode())
    sock.close()
    box.remove(force=True)


def main():
    client = docker.from_env()
    say("version", [client.version()["ApiVersion"], client.ping(), client.info()["OSType"]])
    runs(client)
    lives(client)
    attached(client)
    say("privileged", refused(client.containers.create, IMAGE, privileged=True))
    say("volume", refused(client.containers.create, IMAGE, volumes={"/etc": {"bind": "/host", "mode": "ro"}}))
    say("no image", refused(client.containers.create, "nosuch/image:1", "true"))
    say("pull", refused(client.images.pull, "nosuch/image", tag="1"))


main()
