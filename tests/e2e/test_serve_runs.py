"""Commands that go on without their client: begun, listed, followed and taken up again, written to, signalled, ended."""
import base64
import json
import time

import pytest

from helpers import places, requirement
from helpers.daemon import restart
from helpers.runner import wait_for

pytestmark = requirement("R61", "R65")

PYTHON = [places.PYTHON, "-I", "-S", "-c"]


def begin(box, command, **members):
    """The exec_id of a command in the background."""
    answer = box.daemon.post(f"{box.at}/exec", {"command": command, "background": True, **members})
    assert answer.status == 202 and answer.headers["Location"] == f"{box.at}/exec/{answer.json['exec_id']}", answer
    return answer.json["exec_id"]


def show(box, exec_id):
    answer = box.daemon.get(f"{box.at}/exec/{exec_id}")
    assert answer.status == 200, answer
    return answer.json


def ended(box, exec_id):
    assert wait_for(lambda: show(box, exec_id)["state"] == "ended", 60), show(box, exec_id)
    return show(box, exec_id)


def listed(box):
    return box.daemon.get(f"{box.at}/exec").json["commands"]


class Events:
    """Its output as events: (id, name, data)."""

    def __init__(self, box, exec_id, query="", last=None):
        self.connection = box.daemon.connection()
        headers = {**box.daemon.credential(), **({"Last-Event-ID": last} if last else {})}
        self.connection.request("GET", f"{box.at}/exec/{exec_id}/stream{query}", headers=headers)
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.out = {"stdout": "", "stderr": ""}
        self.gaps = {"stdout": 0, "stderr": 0}
        self.last = None

    def step(self):
        fields = {}
        while (line := self.response.readline()) not in (b"\n", b""):
            name, value = line.decode().rstrip("\n").split(": ", 1)
            fields[name] = value
        if "data" not in fields:
            return None if line == b"" else self.step()     # a comment; the end
        self.last, data = fields["id"], json.loads(fields["data"])
        if fields["event"] in self.out:
            self.out[fields["event"]] += data["data"]
        elif fields["event"] == "gap":
            self.gaps[data["stream"]] += data["bytes"]
        return fields["id"], fields["event"], data

    def until(self, text, stream="stdout"):
        while text not in self.out[stream]:
            assert self.step(), self.out
        return self

    def end(self):
        """The last event's name and data."""
        last = None
        while step := self.step():
            last = step[1:]
        self.close()
        return last

    def close(self):
        self.connection.close()


def test_it_goes_on_without_its_client(box):
    exec_id = begin(box, "echo out; echo err >&2; until [ -e go ]; do sleep 0.05; done; exit 7", cwd="/workspace")
    first = show(box, exec_id)
    assert first["state"] == "running" and first["exit_code"] is None and first["ended_ms"] is None and first["command"] == "/bin/sh", first
    assert [c["exec_id"] for c in listed(box)] == [exec_id]
    assert box.put("go", b"").ok
    last = ended(box, exec_id)
    assert last["exit_code"] == 7 and last["signal"] is None and not last["timed_out"], last
    assert (last["stdout_bytes"], last["stderr_bytes"], last["stdout_dropped"], last["stderr_dropped"]) == (4, 4, 0, 0)
    assert last["started_ms"] <= last["ended_ms"]
    events = Events(box, exec_id)
    name, data = events.end()
    assert (name, data["exit_code"], events.out, events.gaps) == ("exit", 7, {"stdout": "out\n", "stderr": "err\n"}, {"stdout": 0, "stderr": 0})
    # how it ended is known now: whoever connects again by itself need not
    assert events.last == "4.4.end" and Events(box, exec_id, last=events.last).status == 204
    assert Events(box, exec_id, "?after=4.4").end()[0] == "exit"


def test_who_was_cut_off_goes_on_where_that_was(box):
    script = "import sys\nfor line in sys.stdin: print('€' + line.strip(), flush=True); print('e' + line.strip(), file=sys.stderr, flush=True)"
    exec_id = begin(box, PYTHON + [script], stdin=True, env={"PYTHONIOENCODING": "utf-8"})
    at = f"{box.at}/exec/{exec_id}"
    assert box.daemon.post(f"{at}/stdin", b"1\n2\n").json == {"bytes": 4}
    one = Events(box, exec_id)
    one.until("€1\n")
    seen = dict(one.out)
    one.close()
    assert box.daemon.post(f"{at}/stdin", b"3\n").ok
    two = Events(box, exec_id, last=one.last).until("€3\n")
    assert seen["stdout"] + two.out["stdout"] == "€1\n€2\n€3\n"
    two.close()
    # two at the same time, from the beginning and from the end of what was
    three, four = Events(box, exec_id), Events(box, exec_id, f"?after={two.last}&encoding=base64")
    assert box.daemon.post(f"{at}/stdin?end=true", b"4\n").json == {"bytes": 2}
    assert three.end()[1]["exit_code"] == 0
    assert three.out == {"stdout": "€1\n€2\n€3\n€4\n", "stderr": "e1\ne2\ne3\ne4\n"} and three.gaps == {"stdout": 0, "stderr": 0}
    rest = b""
    while (step := four.step()) and step[1] != "exit":
        rest += base64.b64decode(step[2]["data"]) if step[1] == "stdout" else b""
    assert rest.decode() == "€4\n"
    assert ended(box, exec_id)["exit_code"] == 0


def test_a_character_in_two_pieces_is_one(box):
    script = ("import os, sys\nos.write(1, b'a\\xe2')\nos.write(2, b'x')\nsys.stdin.read(1)\nos.write(1, b'\\x82\\xacb')\n"
              "os.write(2, b'\\xff')\n")
    exec_id = begin(box, PYTHON + [script], stdin=True)
    events = Events(box, exec_id)
    events.until("a").until("x", "stderr")
    assert events.last == "1.1"         # of the character it has nothing yet
    events.close()
    assert box.daemon.post(f"{box.at}/exec/{exec_id}/stdin", b"!").ok
    again = Events(box, exec_id, last=events.last)
    assert again.end()[1]["exit_code"] == 0 and again.out == {"stdout": "€b", "stderr": "\ufffd"}, again.out


def test_what_is_dropped_is_said(box):
    """More than is kept, before anybody looks: the newest of it is there, and how much is not."""
    exec_id = begin(box, "seq 100000 400000; echo over >&2")
    last = ended(box, exec_id)
    total = 7 * 300001
    assert last["stdout_bytes"] == total and 0 < total - last["stdout_dropped"] <= 262144 and last["stderr_dropped"] == 0, last
    events = Events(box, exec_id)
    assert events.step()[1] == "gap" and events.end()[0] == "exit"
    assert events.gaps == {"stdout": last["stdout_dropped"], "stderr": 0} and events.out["stderr"] == "over\n"
    assert len(events.out["stdout"]) + events.gaps["stdout"] == total and events.out["stdout"].endswith("399999\n400000\n")


def test_who_reads_misses_nothing(box):
    """Its output waits for who follows it, be it more than is kept."""
    exec_id = begin(box, "read -r go; seq 100000 400000", stdin=True)
    events = Events(box, exec_id)
    assert box.daemon.post(f"{box.at}/exec/{exec_id}/stdin", b"go\n").ok
    assert events.end()[1]["exit_code"] == 0
    # a reader that is slower than seconds may miss some, which it is told then
    assert len(events.out["stdout"]) + events.gaps["stdout"] == 7 * 300001


def test_who_does_not_read_stops_nothing(box):
    exec_id = begin(box, "yes | head -c 20000000; echo over >&2")
    stuck = Events(box, exec_id)        # and never looked at again
    assert ended(box, exec_id)["stdout_bytes"] == 20000000
    stuck.close()


def test_signals_and_ends(box):
    exec_id = begin(box, "trap 'echo usr1' USR1; echo ready; while :; do sleep 0.05; done")
    at = f"{box.at}/exec/{exec_id}"
    events = Events(box, exec_id).until("ready\n")
    assert box.daemon.post(f"{at}/signal", {"signal": "SIGUSR1"}).json["state"] == "running"
    events.until("usr1\n")
    gone = box.daemon("DELETE", at)
    assert gone.status == 200 and (gone.json["state"], gone.json["signal"]) == ("ended", 15), gone
    assert events.end()[1]["signal"] == 15
    assert box.daemon.post(f"{at}/signal", {"signal": 9}).json["code"] == "exec.ended"
    # its record is there until that is not wanted either
    assert show(box, exec_id)["signal"] == 15 and box.daemon("DELETE", at).json["exec_id"] == exec_id
    missing = box.daemon.get(at)
    assert missing.status == 404 and missing.json["code"] == "exec.unknown" and listed(box) == [], missing


def test_who_ignores_sigterm_is_killed(daemon):
    box = daemon.create(policy={"limits": {"grace": "1s"}})
    exec_id = begin(box, "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    Events(box, exec_id).until("ready\n").close()
    assert daemon("DELETE", f"{box.at}/exec/{exec_id}").json["signal"] == 9


def test_a_time_limit(box):
    exec_id = begin(box, "sleep 1000", timeout_ms=300)
    last = ended(box, exec_id)
    assert last["timed_out"] and last["signal"] == 15, last


def test_a_terminal(box):
    exec_id = begin(box, "stty size; trap 'stty size; exit 3' WINCH; echo ready; while :; do sleep 0.05; done", pty={"rows": 24, "cols": 80})
    at = f"{box.at}/exec/{exec_id}"
    events = Events(box, exec_id).until("ready\r\n")
    assert events.out["stdout"].startswith("24 80\r\n") and show(box, exec_id)["pty"]
    assert box.daemon.post(f"{at}/resize", {"rows": 50, "cols": 132}).ok
    assert events.end()[1]["exit_code"] == 3 and "50 132\r\n" in events.out["stdout"], events.out
    typed = begin(box, ["cat"], pty={"rows": 24, "cols": 80})
    assert box.daemon.post(f"{box.at}/exec/{typed}/stdin", b"hello\n\x03").ok
    assert ended(box, typed)["signal"] == 2
    plain = begin(box, "sleep 1000")
    assert box.daemon.post(f"{box.at}/exec/{plain}/resize", {"rows": 1, "cols": 1}).json["code"] == "exec.no-terminal"


def test_stdin(box):
    exec_id = begin(box, ["sha256sum"], stdin=True)
    at = f"{box.at}/exec/{exec_id}"
    data = bytes(range(256)) * 8192
    assert show(box, exec_id)["stdin"]
    assert box.daemon.post(f"{at}/stdin", data).json == {"bytes": len(data)}
    assert box.daemon.post(f"{at}/stdin?end=true", b"").json == {"bytes": 0}
    events = Events(box, exec_id)
    events.end()
    want = box.daemon.cloche.run(["sha256sum"], stdin=data).out
    assert events.out["stdout"] == want
    late = box.daemon.post(f"{at}/stdin", b"x")
    assert late.status == 409 and late.json["code"] in ("exec.ended", "exec.stdin-closed"), late
    none = begin(box, "cat; sleep 1000")
    closed = box.daemon.post(f"{box.at}/exec/{none}/stdin", b"x")
    assert closed.status == 409 and closed.json["code"] == "exec.stdin-closed", closed


def test_what_cannot_be_begun(box):
    def tried(**members):
        answer = box.daemon.post(f"{box.at}/exec", {"background": True, **members})
        return answer.status, answer.json["code"]
    assert tried(command=["no-such-program"]) == (422, "exec.not-found")
    assert box.exec(["sh", "-c", "printf '#!/no/such/shell\\n' > s; chmod +x s"])["exit_code"] == 0
    assert tried(command=["./s"]) == (422, "exec.no-interpreter")
    assert tried(command="true", stdin="text") == (400, "exec.request")
    assert tried(command="true", encoding="base64") == (400, "exec.request")
    assert tried(command="true", pty={"rows": 0, "cols": 1}) == (400, "exec.request")
    assert tried(command="true", cwd="/none") == (400, "exec.cwd")
    assert box.daemon.post(f"{box.at}/exec", {"command": "true", "background": "yes"}).status == 400
    assert listed(box) == []


@pytest.mark.parametrize("query", ["?after=1", "?after=1.2.3", "?after=-1.0", "?after=0.0.end.end", "?encoding=hex", "?after=99.0", "?after=0.99"])
def test_a_place_that_is_none(box, query):
    answer = box.daemon.get(f"{box.at}/exec/{begin(box, 'true')}/stream{query}")
    assert answer.status == 400 and answer.json["code"] in ("exec.request", "exec.position"), answer


def test_the_newest_are_kept(box):
    first = begin(box, "read -r line", stdin=True)
    ids = []
    for _ in range(70):
        ids.append(begin(box, "true"))
        ended(box, ids[-1])
    now = [c["exec_id"] for c in listed(box)]
    assert len(now) == 64 and now == [first] + ids[-63:]     # what runs is not pushed out
    assert box.daemon.get(f"{box.at}/exec/{ids[0]}").status == 404


@pytest.mark.parametrize("more, status", [(b"", 200), (b"5\r\nmore\n\r\n", 409)])
def test_a_command_that_ends_when_it_has_read_enough(daemon, box, more, status):
    """Before its client has said that this is all: what was written was read. What comes after that is not."""
    exec_id = begin(box, "read -r line; echo $line", stdin=True)
    c = daemon.connection()
    c.putrequest("POST", f"{box.at}/exec/{exec_id}/stdin")
    c.putheader("Transfer-Encoding", "chunked")
    c.endheaders()
    c.send(b"5\r\nfirst\r\n1\r\n\n\r\n")
    ended(box, exec_id)
    c.send(more + b"0\r\n\r\n")
    answer = c.getresponse()
    assert answer.status == status, answer.read()
    c.close()


def test_they_outlive_the_front_and_the_warden(daemon, box):
    exec_id = begin(box, "echo before; read -r line; echo \"$line\"; exit 5", stdin=True)
    events = Events(box, exec_id).until("before\n")
    for name in ("cloche-front", "cloche-warden"):
        restart(daemon, name)
    events.close()
    assert show(box, exec_id)["state"] == "running"
    assert daemon.post(f"{box.at}/exec/{exec_id}/stdin", b"after\n").ok
    again = Events(box, exec_id, last=events.last)
    assert again.end()[1]["exit_code"] == 5 and again.out["stdout"] == "after\n"


def test_who_runs_is_not_idle(daemon):
    """Nor is one that the next warden found running."""
    def made():
        box = daemon.create(idle_timeout=2)
        answer = daemon.post(f"{box.at}/exec", {"command": "read -r line", "background": True, "stdin": True})
        return (box, answer.json["exec_id"]) if answer.status == 202 else None      # it may be idle before that
    box, exec_id = next(filter(None, (made() for _ in range(20))))
    restart(daemon)
    other = daemon.create(idle_timeout=2)       # which is idle
    assert other.wait_for("stopped")
    assert box.show()["state"] == "ready" and show(box, exec_id)["state"] == "running"
    assert daemon.post(f"{box.at}/exec/{exec_id}/stdin?end=true", b"").ok
    assert box.wait_for("stopped") and "idle" in box.show()["detail"]


def test_pause(box):
    exec_id = begin(box, "i=0; while :; do i=$((i+1)); echo $i; sleep 0.02; done")
    Events(box, exec_id).until("3\n").close()
    assert box.daemon.post(f"{box.at}/pause").ok
    at = f"{box.at}/exec/{exec_id}"
    for method, path, body in (("POST", f"{at}/signal", {"signal": 9}), ("POST", f"{at}/stdin", b"x"), ("DELETE", at, None)):
        answer = box.daemon(method, path, body)
        assert answer.status == 409 and answer.json["code"] == "sandbox.paused", answer
    # to be looked at all the same; what it had written before may still be on its way
    assert wait_for(lambda: (show(box, exec_id)["stdout_bytes"], time.sleep(0.3))[0] == show(box, exec_id)["stdout_bytes"], 60)
    still = show(box, exec_id)["stdout_bytes"]
    assert show(box, exec_id)["state"] == "running"
    assert box.daemon.post(f"{box.at}/resume").ok
    assert wait_for(lambda: show(box, exec_id)["stdout_bytes"] > still, 60)


@pytest.mark.parametrize("how", ["delete", "kill", "limit"])
def test_they_end_with_their_sandbox(daemon, how):
    """Whoever follows is told. Many at once: a keeper that is killed, instead of told to end, tells nobody."""
    boxes = [daemon.create(**({"max_lifetime": 15} if how == "limit" else {})) for _ in range(12)]
    followed = []
    for box in boxes:
        exec_id = begin(box, "echo ready; sleep 1000")
        followed.append((box, exec_id, Events(box, exec_id).until("ready\n")))
    if how == "kill":
        assert daemon.post("/v1/kill").ok
    for box, exec_id, events in followed:
        if how == "delete":
            assert box.delete().ok
        name, data = events.end()
        assert data.get("signal") == 9, (name, data)
        assert box.wait_for("stopped")
        answer = daemon.get(f"{box.at}/exec/{exec_id}")
        assert answer.status == 409 and answer.json["code"] == "sandbox.state", answer


def test_the_records_have_them(daemon, box):
    exec_id = begin(box, "echo secretly; read -r line; exit 4", stdin=True)
    assert daemon.post(f"{box.at}/exec/{exec_id}/stdin?end=true", b"x\n").ok
    ended(box, exec_id)
    entries = daemon.get(f"{box.at}/transcript").json["entries"]
    own = [e for e in entries if str(e.get("operation")) == exec_id]
    assert [e["event"] for e in own] == ["exec", "output", "result"] and own[1]["text"] == "secretly\n" and own[2]["exit_code"] == 4, own
    # nobody waits for the record where it is not required
    assert wait_for(lambda: any("exec_stdin" in line and exec_id in line for line in
                                map(json.dumps, daemon.get(f"{box.at}/audit?limit=1000").json["entries"])))
    usage = daemon.get(f"{box.at}/usage").json["usage"][0]
    assert usage["operations"] == 0
