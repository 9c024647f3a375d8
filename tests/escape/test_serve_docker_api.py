"""The Docker Engine API's routes: what would weaken the wall is refused and nothing is made, nothing is silently left out, and no container
of another caller is there. docs/docker-api.md has the rows."""
import json
import socket

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller, token
from helpers.runner import HANG_GUARD
from helpers.shared import shared

pytestmark = [requirement("R93", "R12"), shared]
V = "/v1.44"
IMAGE = "cloche"            # the daemon's own sandbox
SLEEPS = {"Image": IMAGE, "Cmd": ["sleep", "1000"]}

# (member, value): each would be a way out, or more than the policy gives
WALL = [("Privileged", True), ("CapAdd", ["SYS_ADMIN"]), ("NetworkMode", "host"), ("NetworkMode", "container:x"), ("NetworkMode", "mine"),
        ("PidMode", "host"), ("IpcMode", "host"), ("IpcMode", "container:x"), ("UTSMode", "host"), ("UsernsMode", "host"), ("CgroupnsMode", "host"),
        ("Binds", ["/etc:/host"]), ("Binds", ["/etc:/host:ro"]), ("Binds", ["volume:/data"]),
        ("Mounts", [{"Type": "bind", "Source": "/", "Target": "/host"}]), ("VolumesFrom", ["x"]),
        ("Devices", [{"PathOnHost": "/dev/kvm", "PathInContainer": "/dev/kvm", "CgroupPermissions": "rwm"}]),
        ("DeviceRequests", [{"Count": -1, "Capabilities": [["gpu"]]}]), ("DeviceCgroupRules", ["a *:* rwm"]),
        ("SecurityOpt", ["seccomp=unconfined"]), ("SecurityOpt", ["apparmor=unconfined"]), ("SecurityOpt", ["no-new-privileges:false"]),
        ("SecurityOpt", ["no-new-privileges", "label=disable"]), ("MaskedPaths", []), ("ReadonlyPaths", []), ("Sysctls", {"kernel.x": "1"}),
        ("CgroupParent", "/"), ("GroupAdd", ["0"]), ("Runtime", "runc"), ("OomKillDisable", True), ("PidsLimit", -1)]
# done by nobody here: said, and not left out
ABSENT = [("PortBindings", {"80/tcp": [{"HostPort": "80"}]}), ("PublishAllPorts", True), ("RestartPolicy", {"Name": "always"}), ("ShmSize", 1 << 30),
          ("Ulimits", [{"Name": "nofile", "Soft": 1, "Hard": 2}]), ("Dns", ["1.1.1.1"]), ("ExtraHosts", ["a:1.2.3.4"]), ("Links", ["a:b"]),
          ("CpuShares", 5), ("CpusetCpus", "0"), ("MemoryReservation", 5), ("MemorySwap", -1), ("OomScoreAdj", -500), ("LogConfig", {"Type": "syslog"}),
          ("Tmpfs", {"/data": ""}), ("Tmpfs", {"/tmp": "size=1g"}), ("BlkioWeight", 5), ("StorageOpt", {"size": "1g"}), ("SomethingNew", {"on": True})]
TOP = [("User", "0", 403), ("User", "0:0", 403), ("User", "1000:0", 403), ("User", "root", 400), ("Runtime", "runc", 403), ("Volumes", {"/data": {}}, 501),
       ("Healthcheck", {"Test": ["CMD", "true"]}, 501), ("MacAddress", "02:42:ac:11:00:02", 501), ("NetworkingConfig", {"EndpointsConfig": {"n": {"IPAMConfig": {"x": "y"}}}}, 501),
       ("StopSignal", "SIGNONE", 400), ("Cmd", [1], 400), ("Env", ["A"], 400), ("Env", ["=b"], 400), ("Env", "A=b", 400), ("Tty", "yes", 400),
       ("Labels", {"docker-image": "other"}, 400), ("Labels", {"a": "b\nc=d"}, 400), ("Labels", {"a\ndocker-how=r": "x"}, 400), ("Image", "", 400), ("Shell", ["sh"], 501)]


def boxes(who):
    return [b["id"] for b in who.get("/v1/sandboxes").json["sandboxes"] if b["state"] == "ready"]


def refused(answer, *statuses):
    assert answer.status in statuses and set(answer.json) == {"message"} and answer.json["message"].endswith("]"), answer
    return answer.json["message"]


@pytest.mark.parametrize("who", ["owner", "agent"])
def test_nothing_weakens_the_wall(daemon, who):
    """The attack is real: without the member the same request makes a container."""
    asks = daemon if who == "owner" else caller(daemon, "agent")
    before = boxes(daemon)
    for member, value in WALL:
        said = refused(asks("POST", f"{V}/containers/create", {**SLEEPS, "HostConfig": {member: value}}), 403)
        assert member in said and "docker.wall" in said, said
    for member, value in ABSENT:
        said = refused(asks("POST", f"{V}/containers/create", {**SLEEPS, "HostConfig": {member: value}}), 501)
        assert member in said and "docker.not-offered" in said, said
    for member, value, status in TOP:
        refused(asks("POST", f"{V}/containers/create", {**SLEEPS, member: value}), status)
    assert boxes(daemon) == before
    made = asks("POST", f"{V}/containers/create", {**SLEEPS, "HostConfig": {
        "Privileged": False, "CapAdd": None, "CapDrop": ["ALL"], "NetworkMode": "none", "SecurityOpt": ["no-new-privileges"], "MaskedPaths": None, "Binds": []}})
    assert made.status == 201, made
    assert asks("DELETE", f"{V}/containers/{made.json['Id']}").status == 204


def test_what_limits_is_done(daemon):
    made = daemon("POST", f"{V}/containers/create", {**SLEEPS, "User": "1234", "WorkingDir": "/tmp", "Hostname": "box", "Env": ["A=b"], "HostConfig": {
        "Memory": 64 << 20, "NanoCpus": 500000000, "PidsLimit": 20, "ReadonlyRootfs": True, "NetworkMode": "none"}})
    assert made.status == 201, made
    policy = daemon.get(f"/v1/sandboxes/{made.json['Id']}/policy").json
    asked = json.dumps(policy)
    for word in ('"box"', "1234", "read-only-root", str(64 << 20)):
        assert word in asked, (word, asked)
    seen = daemon("POST", f"/v1/sandboxes/{made.json['Id']}/exec", {"command": "id -u; pwd; hostname; echo $A; touch /opt/x 2>&1"}).json["stdout"].split("\n")
    assert seen[:4] == ["1234", "/tmp", "box", "b"] and "Read-only" in seen[4], seen
    assert daemon("DELETE", f"{V}/containers/{made.json['Id']}?force=1").status == 204


def calls(box):
    at = f"{V}/containers/{box}"
    return [("GET", at + "/json"), ("POST", at + "/start"), ("POST", at + "/stop"), ("POST", at + "/kill"), ("POST", at + "/pause"), ("POST", at + "/unpause"),
            ("POST", at + "/wait"), ("POST", at + "/attach?stream=1&stdout=1"), ("GET", at + "/logs?stdout=1"), ("POST", at + "/resize?h=1&w=1"),
            ("GET", at + "/archive?path=/etc"), ("GET", at + "/top"), ("DELETE", at + "?force=1"),
            ("POST", f"{V}/exec/{box}{'0' * 16}/start"), ("GET", f"{V}/exec/{box}{'0' * 16}/json"), ("POST", f"{V}/exec/{box}{'0' * 16}/resize?h=1&w=1")]


def test_anothers_container_is_not_there(daemon):
    mine, other = caller(daemon, "agent"), caller(daemon, "agent")
    made = mine("POST", f"{V}/containers/create?name=hers", SLEEPS).json["Id"]
    assert mine("POST", f"{V}/containers/{made}/start").status == 204
    execd = mine("POST", f"{V}/containers/{made}/exec", {"Cmd": ["true"]}).json["Id"]
    for method, at in calls(made) + [("GET", f"{V}/exec/{execd}/json"), ("POST", f"{V}/exec/{execd}/start"), *calls(made[:12])[:13], *calls("hers")[:13]]:
        said = refused(other(method, at, {} if method == "POST" else None), 404)
        assert "No such" in said, (at, said)
    refused(other("POST", f"{V}/containers/{made}/exec", {"Cmd": ["true"]}), 404)
    refused(other("PUT", f"{V}/containers/{made}/archive?path=/workspace", b"x"), 404)
    assert other.get(f"{V}/containers/json?all=1").json == []
    assert [c["Id"] for c in mine.get(f"{V}/containers/json").json] == [made]
    assert mine.get(f"{V}/containers/{made}/json").json["State"]["Running"] is True
    assert caller(daemon, "auditor")("POST", f"{V}/containers/{made}/kill").status == 403
    assert mine("DELETE", f"{V}/containers/{made}?force=1").status == 204


def test_over_tcp_nobody_is_the_owner(cloche):
    daemon = Daemon(cloche, tcp=True)
    stranger = daemon.remote()
    for method, at in (("GET", f"{V}/containers/json"), ("GET", "/_ping"), ("GET", "/version"), ("GET", f"{V}/info"), ("POST", f"{V}/containers/create")):
        refused(stranger(method, at, SLEEPS if method == "POST" else None), 401)
    assert stranger("GET", "/_ping", None, {"Authorization": f"Bearer {token(daemon, 'agent')['token']}"}).body == b"OK"
    assert daemon.stop() == 0, daemon.log


def test_a_sandbox_that_is_no_container_is_left_alone(daemon):
    box = daemon.create(name="plain")
    for method, at in calls(box.id) + calls("plain")[:13]:
        refused(daemon(method, at, {} if method == "POST" else None), 404)
    assert box.show()["state"] == "ready"


def test_other_versions_and_routes(daemon):
    assert "too new" in refused(daemon.get("/v1.99/containers/json"), 400) and "too old" in refused(daemon.get("/v1.12/containers/json"), 400)
    for method, at in (("POST", f"{V}/build"), ("GET", f"{V}/events"), ("POST", f"{V}/networks/create"), ("GET", f"{V}/volumes"), ("POST", f"{V}/swarm/init"),
                       ("POST", f"{V}/containers/x/update"), ("POST", f"{V}/commit"), ("GET", f"{V}/plugins")):
        assert "docker.not-offered" in refused(daemon(method, at, {} if method == "POST" else None), 501), at
    assert "cloche image pull some/image:1" in refused(daemon("POST", f"{V}/images/create?fromImage=some/image&tag=1"), 501)


def hijacked(daemon, at):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(HANG_GUARD)
    s.connect(str(daemon.path))
    s.sendall(f"POST {V}{at} HTTP/1.1\r\nHost: d\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n".encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += s.recv(1)
    assert head.startswith(b"HTTP/1.1 101"), head
    return s


def test_who_floods_a_hijacked_stream_fills_nothing(daemon):
    """A client that sends to a command that reads nothing is held back, and one that reads nothing holds its command up; both can go."""
    made = daemon("POST", f"{V}/containers/create", {**SLEEPS, "OpenStdin": True}).json["Id"]
    assert daemon("POST", f"{V}/containers/{made}/start").status == 204
    s = hijacked(daemon, f"/containers/{made}/attach?stream=1&stdin=1&stdout=1")
    s.setblocking(False)
    sent = 0
    try:
        while sent < 64 << 20:
            sent += s.send(b"x" * 65536)
    except BlockingIOError:
        pass
    assert sent < 16 << 20, sent
    assert daemon.get(f"{V}/containers/{made}/json").json["State"]["Running"] is True
    s.close()
    assert daemon("DELETE", f"{V}/containers/{made}?force=1").status == 204
    assert daemon.get("/_ping").body == b"OK"
