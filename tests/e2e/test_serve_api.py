"""/api/sandbox: the routes, statuses and words that existing clients match on."""
import contextlib
import os
import socket
import threading

import pytest

from helpers import requirement
from helpers.daemon import Daemon
from helpers.dockerd import started
from helpers.runner import wait_for

pytestmark = requirement("R47")
STATUS = {"state", "mode", "containerId", "browserContainerId", "running", "startedAt", "cdpEndpoint", "wsEndpoint"}
KEYS = "keys contains unsupported characters; allowed: letters, numbers, space, +, _, ., ,, :, -"
FORMATS = "wav, mp3, ogg, flac, m4a"


@requirement("R42", "R43")
def test_the_default_sandbox(daemon):
    status = daemon.get("/api/sandbox/status")
    assert status.status == 200 and set(status.json) == STATUS, status
    assert status.json["state"] == "uninitialized" and status.json["running"] is False
    started = daemon.post("/api/sandbox/start").json
    assert started["state"] == "ready" and started["running"] and started["mode"] == "standard" and started["startedAt"]
    assert daemon.post("/api/sandbox/start").json == started        # there is one
    assert daemon.get("/api/sandbox/status").json == started
    run = daemon.post("/api/sandbox/exec", {"command": "sh -c 'echo $0 \"a  b\"' x"})
    assert run.status == 422 and "shell syntax" in run.json["stderr"] and not run.json["executedInSandbox"], run
    run = daemon.post("/api/sandbox/exec", {"command": "printf '%s,' \"a  b\" c\\ d ''", "workdir": "/tmp", "timeoutMs": 60000})
    assert run.status == 200 and run.json["stdout"] == "a  b,c d,,", run
    assert set(run.json) == {"exitCode", "stdout", "stderr", "durationMs", "executedInSandbox"} and run.json["executedInSandbox"]
    assert daemon.post("/api/sandbox/exec", {"command": "pwd", "workdir": "/tmp"}).json["stdout"] == "/tmp\n"
    run = daemon.post("/api/sandbox/exec", {"command": "ls /nowhere"})
    assert run.status == 422 and run.json["exitCode"] == 2 and run.json["stderr"], run
    run = daemon.post("/api/sandbox/exec", {"command": "sleep 600", "timeoutMs": 200})
    assert run.status == 422 and run.json["exitCode"] == 124, run
    assert daemon.post("/api/sandbox/exec", {"command": "no-such"}).json["exitCode"] == 127
    assert daemon.post("/api/sandbox/recover").json == started      # it needs none
    number = daemon.post("/api/sandbox/exec", {"command": "true", "workdir": None, "timeoutMs": 60000.0})
    assert number.status == 200, number
    stopped = daemon.post("/api/sandbox/stop").json
    assert stopped["state"] == "stopped" and stopped["containerId"] is None, stopped
    assert daemon.get("/api/sandbox/status").json["state"] == "stopped"
    run = daemon.post("/api/sandbox/exec", {"command": "true"})
    assert run.status == 422 and run.json["exitCode"] == 1 and not run.json["executedInSandbox"], run
    assert run.json["stderr"] == "Sandbox not ready (state=stopped)"
    assert daemon.post("/api/sandbox/recover").json["state"] == "ready"
    events = daemon.get("/api/sandbox/events").json["events"]
    assert {"container_start", "exec", "state_change", "container_stop", "exec_denied"} <= {e["type"] for e in events}
    assert all(e["timestamp"] and e["detail"] == e["message"] for e in events)
    assert {e["metadata"]["sandbox"] for e in events} == {started["containerId"]}


EVENTS = {"state_change", "exec", "exec_denied", "container_start", "container_stop", "health_check", "error"}


def test_events_are_of_the_kinds_that_clients_know(daemon):
    """And of one sandbox: what else happens in the daemon is for /v1/events."""
    assert daemon.get("/api/sandbox/events").json == {"events": []}
    box = daemon.create(name="other")
    daemon.token("agent")
    assert daemon.post(f"{box.at}/key").ok and daemon.post(f"{box.at}/pause").ok and daemon.post(f"{box.at}/resume").ok
    for _ in range(60):
        assert box.exec("true")["exit_code"] == 0 and daemon.post(f"{box.at}/key").ok
    assert daemon.get("/api/sandbox/events").json == {"events": []}
    for which in box.id, "other":
        events = daemon.get(f"/api/sandbox/events?id={which}").json["events"]
        kinds = [e["type"] for e in events]
        assert {*kinds} <= EVENTS and kinds.count("exec") == 60 and len(kinds) <= 100, kinds
        assert {e["metadata"]["sandbox"] for e in events} == {box.id}
    for _ in range(60):
        box.exec("true")
    assert [e["type"] for e in daemon.get("/api/sandbox/events?id=other").json["events"]] == ["exec"] * 100
    assert daemon.get("/api/sandbox/events?id=nobody").status == 404


def test_nothing_was_started(daemon):
    run = daemon.post("/api/sandbox/exec", {"command": "true"})
    assert run.status == 422 and run.json["stderr"] == "Sandbox not ready (state=uninitialized)", run
    assert daemon.post("/api/sandbox/stop").json["state"] == "uninitialized"
    assert daemon.post("/api/sandbox/recover").json["state"] == "uninitialized"
    assert daemon.post("/api/sandbox/recover?id=nobody").json["error"].startswith("Recovery failed: ")


def test_another_one_by_its_id(daemon):
    box = daemon.create(name="other")
    assert daemon.get(f"/api/sandbox/status?id={box.id}").json["containerId"] == box.id
    assert daemon.post(f"/api/sandbox/exec?id={box.id}", {"command": "hostname"}).ok
    assert daemon.post(f"/api/sandbox/start?id={box.id}").json["state"] == "ready"
    assert daemon.post(f"/api/sandbox/stop?id={box.id}").json["state"] == "stopped"
    assert daemon.post(f"/api/sandbox/start?id={box.id}").json["state"] == "ready"
    assert daemon.get("/api/sandbox/status").json["state"] == "uninitialized"
    assert daemon.get("/api/sandbox/status?id=a/b").status == 400
    assert daemon.get("/api/sandbox/status?id=" + "0" * 32).status == 404


def test_what_is_said_about_the_host(daemon):
    platform = daemon.get("/api/sandbox/platform").json
    assert set(platform) == {"platform", "arch", "dockerInstalled", "dockerRunning", "dockerAvailable",
                             "appleContainerAvailable", "wsl2", "recommended"}
    assert platform["platform"] == "linux" and platform["arch"] in ("x64", "arm64")
    capabilities = daemon.get("/api/sandbox/capabilities").json
    assert {n for n, c in capabilities.items() if c["available"]} == {"shell"}
    assert set(capabilities) == {"screenshot", "audioRecord", "audioPlay", "computerUse", "windowList", "browser", "shell"}
    assert daemon.get("/api/sandbox/browser").json == {"cdpEndpoint": None, "wsEndpoint": None, "noVncEndpoint": None}
    windows = daemon.get("/api/sandbox/screen/windows")
    assert windows.status == 200 and windows.json["windows"] == [] and windows.json["error"], windows


@contextlib.contextmanager
def daemon_with(cloche, host):
    cloche.env["DOCKER_HOST"] = host
    made = Daemon(cloche)
    try:
        yield made
    finally:
        assert made.stop() == 0, made.log


def docker(daemon):
    platform = daemon.get("/api/sandbox/platform").json
    return platform["dockerRunning"], platform["dockerAvailable"]


def listener(path, answer):
    """Somebody at a socket, who says @answer to each that comes, and then nothing."""
    at = socket.socket(socket.AF_UNIX)
    at.bind(str(path))
    at.listen()
    kept = []
    def serve():
        with contextlib.suppress(OSError):
            while True:
                peer, _ = at.accept()
                kept.append((peer, peer.recv(4096)))
                peer.sendall(answer)
    threading.Thread(target=serve, daemon=True).start()
    return at, kept


def fails_to_start(daemon):
    answer = daemon.post("/api/sandbox/docker/start")
    return answer.status == 500 and answer.json["success"] is False and answer.json["error"] == answer.json["message"] and \
        answer.json["error"].startswith("Failed to start Docker: ") and answer.json["waitMs"] == 0


def test_a_socket_without_a_daemon_does_not_run(cloche):
    path = cloche.home / "stale"
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(path))
    assert path.is_socket()
    with daemon_with(cloche, f"unix://{path}") as daemon:
        assert docker(daemon) == (False, False) and fails_to_start(daemon)


@pytest.mark.parametrize("host", ["tcp://127.0.0.1:2375", "unix:///nowhere/docker.sock", "unix:///" + "x" * 200])
def test_no_daemon_at_all(cloche, host):
    with daemon_with(cloche, host) as daemon:
        assert docker(daemon) == (False, False) and fails_to_start(daemon)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 500 No\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n"])
def test_who_listens_and_is_no_docker_is_not_waited_for(cloche, answer):
    at, kept = listener(cloche.home / "other", answer)
    with at, daemon_with(cloche, f"unix://{cloche.home}/other") as daemon:
        assert docker(daemon) == (False, False) and fails_to_start(daemon)
        assert 1 <= len(kept) <= 2 and all(said.startswith(b"GET /_ping HTTP/1.1\r\n") for _, said in kept), kept


def test_a_daemon_of_whose(cloche):
    at, _ = listener(cloche.home / "pong", b"HTTP/1.1 200 OK\r\n\r\nOK")
    with at, daemon_with(cloche, f"unix://{cloche.home}/pong") as daemon:
        assert docker(daemon) == (True, os.getuid() == 0)
        answer = daemon.post("/api/sandbox/docker/start")
        assert answer.status == 200 and answer.json == {"success": True, "message": "Docker is already running", "waitMs": 0}


@pytest.mark.root
def test_a_real_dockerd(cloche):
    with started() as dockerd, daemon_with(cloche, dockerd.host) as daemon:
        assert wait_for(lambda: docker(daemon) == (True, True))
        assert daemon.get("/api/sandbox/platform").json["dockerInstalled"] is True
        assert wait_for(lambda: daemon.post("/api/sandbox/docker/start").status == 200)


SCREEN = "this sandbox has no screen: there is no default sandbox"
AUDIO = "this sandbox has no audio: there is no default sandbox"
ROWS = [
    ("GET", "screen/screenshot", None, 500, f"Screenshot failed: {SCREEN}"),
    ("POST", "screen/screenshot", None, 500, f"Screenshot failed: {SCREEN}"),
    ("POST", "screen/screenshot", {"x": 0, "y": 0, "width": 1, "height": 1}, 500, f"Screenshot failed: {SCREEN}"),
    ("POST", "screen/screenshot", b"{", 400, "Invalid JSON body"),
    ("POST", "screen/screenshot", {}, 500, f"Screenshot failed: {SCREEN}"),       # all of it
    ("POST", "screen/screenshot", {"display": 1}, 500, f"Screenshot failed: {SCREEN}"),
    ("POST", "screen/screenshot", b"5", 400, "Screenshot region payload must be a JSON object"),
    ("POST", "screen/screenshot", {"x": 0}, 400, "Region requires integer x, y, width, and height values"),
    ("POST", "screen/screenshot", {"x": 0.0, "y": 0, "width": 1.0, "height": 1}, 500, f"Screenshot failed: {SCREEN}"),
    ("POST", "screen/screenshot", [], 400, "Screenshot region payload must be a JSON object"),
    ("POST", "screen/screenshot", {"x": 1.5, "y": 0, "width": 1, "height": 1}, 400,
     "Region requires integer x, y, width, and height values"),
    ("POST", "screen/screenshot", {"x": 0, "y": 0, "width": 0, "height": 1}, 400, "Region width and height must be greater than 0"),
    ("POST", "audio/record", None, 500, f"Audio recording failed: {AUDIO}"),
    ("POST", "audio/record", b"{", 400, "Invalid JSON in request body"),
    ("POST", "audio/record", [], 400, "Request body must be a JSON object"),
    ("POST", "audio/record", b"null", 400, "Request body must be a JSON object"),
    ("POST", "audio/record", {"durationMs": 300.0}, 500, f"Audio recording failed: {AUDIO}"),
    ("POST", "audio/record", {"durationMs": "1"}, 400, "durationMs must be a finite number"),
    ("POST", "audio/record", {"durationMs": 300.5}, 400, "durationMs must be an integer number of milliseconds"),
    ("POST", "audio/record", {"durationMs": 249}, 400, "durationMs must be between 250 and 30000 milliseconds"),
    ("POST", "audio/record", {"durationMs": 30001}, 400, "durationMs must be between 250 and 30000 milliseconds"),
    ("POST", "audio/record", {"durationMs": 250}, 500, f"Audio recording failed: {AUDIO}"),
    ("POST", "audio/play", [], 400, "Body must be a JSON object"),
    ("POST", "audio/play", {}, 400, "Missing 'data' field (base64 audio)"),
    ("POST", "audio/play", b"{", 400, "Invalid JSON in request body"),
    ("POST", "audio/play", {"data": " "}, 400, "Missing 'data' field (base64 audio)"),
    ("POST", "audio/play", {"data": "AA==", "format": " WAV "}, 500, f"Audio playback failed: {AUDIO}"),
    ("POST", "audio/play", {"data": "AA==", "format": ""}, 500, f"Audio playback failed: {AUDIO}"),
    ("POST", "audio/play", {"data": "AA==", "format": None}, 500, f"Audio playback failed: {AUDIO}"),
    ("POST", "audio/play", {"data": "AA==", "format": 1}, 400, "format must be a string"),
    ("POST", "audio/play", {"data": "AA==", "format": "a/b"}, 400, f"format contains unsupported characters; use one of: {FORMATS}"),
    ("POST", "audio/play", {"data": "AA==", "format": "aac"}, 400, f"format must be one of: {FORMATS}"),
    ("POST", "computer/click", [], 400, "Click payload must be a JSON object"),
    ("POST", "computer/click", b"{", 400, "Invalid JSON in request body"),
    ("POST", "computer/click", b'"x"', 400, "Click payload must be a JSON object"),
    ("POST", "computer/click", {"x": 1.0, "y": 2}, 500, f"Click failed: {SCREEN}"),
    ("POST", "computer/click", {"x": 1.5, "y": 2}, 400, "Click payload requires integer x and y coordinates"),
    ("POST", "computer/click", {"x": 1}, 400, "Click payload requires integer x and y coordinates"),
    ("POST", "computer/click", {"x": 1, "y": 2, "button": "middle"}, 400, "button must be either 'left' or 'right'"),
    ("POST", "computer/click", {"x": 1, "y": 2, "button": "right"}, 500, f"Click failed: {SCREEN}"),
    ("POST", "computer/type", [], 400, "Type payload must be a JSON object"),
    ("POST", "computer/type", {"text": 1}, 400, "Type payload requires a string 'text' field"),
    ("POST", "computer/type", {"text": ""}, 400, "text cannot be empty"),
    ("POST", "computer/type", {"text": "x" * 4097}, 400, "text exceeds maximum length (4096)"),
    ("POST", "computer/type", {"text": "ä" * 4096}, 500, f"Type failed: {SCREEN}"),
    ("POST", "computer/keypress", [], 400, "Keypress payload must be a JSON object"),
    ("POST", "computer/keypress", {}, 400, "Keypress payload requires a string 'keys' field"),
    ("POST", "computer/keypress", {"keys": ""}, 400, "keys cannot be empty"),
    ("POST", "computer/keypress", {"keys": " "}, 400, "keys cannot be empty"),
    ("POST", "computer/keypress", {"keys": " " + "a" * 128 + "\n"}, 500, f"Keypress failed: {SCREEN}"),
    ("POST", "computer/keypress", {"keys": "a" * 129}, 400, "keys exceeds maximum length (128)"),
    ("POST", "computer/keypress", {"keys": "a;b"}, 400, KEYS),
    ("POST", "computer/keypress", {"keys": "ctrl+c"}, 500, f"Keypress failed: {SCREEN}"),
    ("POST", "sign", {}, 503, "Signing service not configured"),
    ("POST", "sign/approve", {}, 503, "Signing service not configured"),
    ("POST", "sign/reject", {}, 503, "Signing service not configured"),
    ("GET", "sign/pending", None, 503, "Signing service not configured"),
    ("GET", "sign/address", None, 503, "Signing service not configured"),
    ("POST", "exec", {}, 400, "Missing 'command' field"),
    ("POST", "exec", b"{", 400, "Invalid JSON in request body"),
    ("POST", "exec", b"5", 400, "Missing 'command' field"),
    ("POST", "exec", None, 400, "Missing 'command' field"),
    ("POST", "exec", {"command": ["a"]}, 400, "Missing 'command' field"),
    ("GET", "nothing", None, 404, "Unknown sandbox route: GET /api/sandbox/nothing"),
    ("POST", "status", None, 404, "Unknown sandbox route: POST /api/sandbox/status"),
    ("PATCH", "status", None, 404, "Unknown sandbox route: PATCH /api/sandbox/status"),
]


def test_the_words(daemon):
    for method, path, body, status, words in ROWS:
        answer = daemon(method, f"/api/sandbox/{path}", body)
        assert (answer.status, answer.json) == (status, {"error": words}), (method, path, body, answer)
