"""The daemon's audit record: what is asked and done is in one chain, before it is done where that is required; nothing
that goes wrong loses or forges an entry; who may read it does, and what is secret is not in it."""
import contextlib
import datetime
import fcntl
import hashlib
import json
import os
import re
import signal
import subprocess
import threading
import time

import pytest

from helpers import places, requirement
from helpers.daemon import Caller, Daemon, caller, is_sanitized, kill_one, restart
from helpers.runner import wait_for

pytestmark = requirement("R45", "R47", "R68", "R86")


def entries(daemon, query=""):
    answer = daemon.get(f"/v1/audit?limit=1000{query}")
    assert answer.status == 200, answer
    return answer.json["entries"]


def what(entry):
    m = entry.get("metadata", {})
    return m.get("capability") or m.get("event") or m.get("decision")


def recorded(cloche, *words):
    """The chain as it lies there, checked."""
    said = cloche("audit", "verify", "--json", *words)
    assert said.ok and said.json["holds"], said
    found = cloche("audit", "query", "--json", *words)
    assert found.ok, found
    return [json.loads(line) for line in found.out.splitlines()]


def written(daemon, condition):
    """Entries come a moment after the answer where nobody waits for them."""
    return wait_for(lambda: [e for e in entries(daemon) if condition(e)] or None)


# --- what is in it ---------------------------------------------------------------------------------------------------

@pytest.mark.root       # to have no cgroups
def test_a_promise_that_is_kept_in_a_weaker_way_is_in_the_record(cloche):
    without = cloche.behind("unshare", "-m", "/bin/sh", "-c", 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"', "sh")
    without.state = cloche.state
    daemon = Daemon(without)
    box = daemon.create(policy={"fallback": "warn", "limits": {"cpus": 1}})
    warning, = [w for w in box.record["facts"]["warnings"] if "CPU" in w]
    found = written(daemon, lambda e: e["type"] == "plugin_fallback_attempt" and e["summary"] == warning)
    assert [(e["severity"], e["sandbox"]) for e in found] == [("warn", box.id)], found
    assert daemon.stop() == 0


def test_who_asked_and_until_when(cloche, daemon):
    agent, other = caller(daemon, "agent", name="builder"), caller(daemon, "agent", name="builder-2")
    ids = {t["name"]: t["id"] for t in daemon.get("/v1/tokens").json["tokens"]}
    first, second = agent.create(), other.create()
    assert first.exec("true")["exit_code"] == 0 and second.exec("true")["exit_code"] == 0
    assert daemon.create().exec("true")["exit_code"] == 0

    def boxes(query):
        found = entries(daemon, query)
        assert found, query
        return {e["metadata"]["by"].split(" ")[-1] for e in found}
    assert boxes("&by=builder") == boxes(f"&by={ids['builder']}") == {"builder"}
    assert boxes(f"&by={ids['builder-2']}&type=privileged_capability_invocation") == {"builder-2"}
    assert boxes("&by=the%20owner") == boxes("&by=owner") == {"owner"} and not entries(daemon, "&by=build") and not entries(daemon, "&by=nobody")
    # until a moment: what is in that millisecond is in it
    every = entries(daemon)
    middle = every[len(every) // 2]["timestamp"]
    ms = int(datetime.datetime.fromisoformat(middle.replace("Z", "+00:00")).timestamp() * 1000)
    early = entries(daemon, f"&until_ms={ms}")
    assert early == [e for e in every if e["timestamp"][:23] <= middle[:23]] and len(early) < len(every)
    # an agent counts what it may see
    for route in ("/v1/audit/size", "/api/audit/feed/size"):
        # what was done last may still be on its way into the record
        assert wait_for(lambda at=route: daemon.get(at).json == {"size": len(entries(daemon))})
        assert 0 < agent.get(route).json["size"] == len(agent.get("/v1/audit?limit=1000").json["entries"]) < len(every)
        assert agent.get(f"{route}?sandbox={first.id}&type=sandbox_lifecycle").json["size"] == \
            len(agent.get(f"/v1/audit?sandbox={first.id}&type=sandbox_lifecycle").json["entries"])
        assert agent.get(f"{route}?sandbox={second.id}").status == 404
    found = recorded(cloche, "--by", ids["builder"])
    assert found and {e["metadata"]["by"] for e in found} == {f"agent {ids['builder']} builder"}


def test_another_mode_is_in_the_record(daemon):
    box = daemon.create(policy={"mode": "standard"})
    assert box.delete().ok and daemon.post(f"{box.at}/recover").ok
    assert not entries(daemon, "&type=sandbox_mode_transition")     # the same
    assert box.delete().ok
    changed = daemon("PATCH", f"{box.at}/policy", json.dumps({"mode": "max"}).encode(), {"Content-Type": "application/merge-patch+json"})
    assert changed.ok and daemon.post(f"{box.at}/recover").ok, changed
    entry, = written(daemon, lambda e: e["type"] == "sandbox_mode_transition")
    assert entry["sandbox"] == box.id and entry["severity"] == "warn"
    assert (entry["metadata"]["from_mode"], entry["metadata"]["to_mode"]) == ("standard", "max"), entry


def test_every_operation_and_its_result_is_in_the_record(cloche, daemon):
    box = daemon.create(name="b")
    assert box.exec(["sh", "-c", "exit 3"])["exit_code"] == 3
    box.put("f", b"12345")
    assert daemon("DELETE", box.file("f")).ok
    assert box.read("f").status == 404
    assert daemon.post(f"{box.at}/pause").ok and daemon.post(f"{box.at}/resume").ok
    assert box.delete().ok
    assert daemon.post("/v1/kill").ok
    assert written(daemon, lambda e: e["type"] == "security_kill_switch")
    found = entries(daemon)
    of_box = [e for e in found if e.get("sandbox") == box.id]
    assert [what(e) for e in found if e["metadata"]["from"] == "warden" and "by" in e["metadata"]] == [
        "create", "exec", "write", "remove", "read", "pause", "resume", "delete"]
    assert all(e["metadata"]["by"] == "the owner" for e in found if "by" in e["metadata"])
    asked = next(e for e in of_box if what(e) == "exec")["metadata"]
    result = next(e for e in of_box if e["metadata"].get("event") == "result")["metadata"]
    assert (asked["command"], asked["words"]) == ("sh", 3) and asked["operation"] == result["operation"]
    assert asked["argv_sha256"] == hashlib.sha256(b"sh\0-c\0exit 3\0").hexdigest()
    assert (result["exit_code"], result["from"]) == (3, "keeper")
    missing = [e["metadata"] for e in of_box if e["metadata"].get("error")]
    assert [m["error"] for m in missing] == ["files.not-found"]
    assert {e["type"] for e in found} == {"privileged_capability_invocation", "sandbox_lifecycle", "security_kill_switch"}
    assert [e["severity"] for e in found if e["type"] == "security_kill_switch"] == ["critical"]
    assert [e["seq"] for e in found] == list(range(1, len(found) + 1))
    assert [e["hash"] for e in recorded(cloche)] == [e["hash"] for e in found]


def test_everything_else_that_is_asked_is_in_the_record(cloche, daemon):
    """What is no operation on files or commands: policies, ports, volumes, credentials, watching, commands in the background."""
    box = daemon.create(name="b", volume={"name": "v"})
    assert daemon("PATCH", f"{box.at}/policy", {"limits": {"output": "5"}}).ok
    port = daemon.post(f"{box.at}/ports", {"port": 8000})
    assert port.status == 201 and daemon("DELETE", f"{box.at}/ports/{port.json['id']}").ok
    assert daemon.get(f"{box.at}/watch?path=nothing-is-here").status == 404
    made = daemon.post("/v1/tokens", {"role": "agent"}).json
    assert daemon("DELETE", f"/v1/tokens/{made['id']}").ok
    behind = daemon.post(f"{box.at}/exec", {"command": "cat", "background": True, "stdin": True}).json["exec_id"]
    assert daemon.post(f"{box.at}/exec/{behind}/stdin", b"x").ok
    assert daemon.post(f"{box.at}/exec/{behind}/signal", {"signal": "CONT"}).ok
    assert daemon("DELETE", f"{box.at}/exec/{behind}").ok
    [volume] = daemon.get("/v1/volumes").json["volumes"]
    assert box.delete().ok and wait_for(lambda: daemon("DELETE", f"/v1/volumes/{volume['id']}").ok)
    expected = {"policy", "expose_port", "port_exposed", "unexpose_port", "port_closed", "watch", "token_created", "token_revoked",
                "exec_stdin", "exec_signal", "exec_end", "remove_volume", "volume", "made", "end"}
    assert wait_for(lambda: expected <= {what(e) for e in entries(daemon)}), expected - {what(e) for e in entries(daemon)}
    found = entries(daemon)
    assert not any(made["token"] in json.dumps(e) or port.json["path"] in json.dumps(e) for e in found)
    # and the page names all that there is
    text = (places.REPO / "docs" / "audit.md").read_text()
    kinds = {what(e) for e in found if e["type"] == "privileged_capability_invocation"}
    assert not [k for k in kinds if f"`{k}`" not in text], kinds


def test_the_feed_has_the_shape_of_the_sheet(daemon):
    box = daemon.create()
    written(daemon, lambda e: what(e) == "made")
    assert written(daemon, lambda e: what(e) == "state" and e["metadata"]["detail"] == "initializing to ready")
    before = daemon.get("/api/audit/feed").json["entries"]
    assert all(set(e) - {"traceId"} == {"timestamp", "type", "summary", "metadata", "severity"} for e in before)
    asked, made = [e for e in before if e["summary"] in ("a sandbox was asked for", "a sandbox was made")]
    assert asked["metadata"]["capability"] == "create" and made["metadata"]["sandbox"] == box.id
    assert len(daemon.get("/api/audit/feed?limit=1").json["entries"]) == 1
    some = daemon.get("/api/audit/feed?type=sandbox_lifecycle&severity=info").json["entries"]
    assert some and {e["type"] for e in some} == {"sandbox_lifecycle"}
    assert daemon.get("/api/audit/feed?severity=critical").json["entries"] == []
    assert daemon.get("/api/audit/feed?sinceMs=4000000000000").json["entries"] == []
    assert daemon.get(f"/api/audit/feed?sinceMs={box.record['created_ms'] - 60000}").json["entries"] == before
    for wrong in ("type=what", "severity=loud", "sinceMs=x", "limit=0", "limit=1001"):
        answer = daemon.get(f"/api/audit/feed?{wrong}")
        assert answer.status == 400 and set(answer.json) == {"error"}, answer


def test_pages_and_filters(daemon):
    one, other = daemon.create(name="one"), daemon.create(name="other")
    for i in range(5):
        one.put(f"f{i}", b"x")
    written(daemon, lambda e: what(e) == "write" and e["metadata"].get("path") == "f4")
    wait_for(lambda: len([e for e in entries(daemon) if e["metadata"].get("event") == "result"]) == 5)
    whole, after, seen = entries(daemon), 0, []
    assert [e["seq"] for e in daemon.get("/v1/audit?limit=3").json["entries"]] == [e["seq"] for e in whole[-3:]]
    while True:
        page = daemon.get(f"/v1/audit?limit=4&after={after or whole[0]['seq']}").json
        seen += page["entries"]
        assert len(page["entries"]) <= 4 and page["more"] == (page["next"] != whole[-1]["seq"])
        after = page["next"]
        if not page["more"]:
            break
    assert seen == whole[1:]
    for way in ("/v1/sandboxes/one/audit?limit=1000", f"/v1/audit?sandbox={one.id}&limit=1000"):
        mine = daemon.get(way).json["entries"]
        assert mine == [e for e in whole if e.get("sandbox") == one.id] and mine
    assert daemon.get("/v1/sandboxes/nobody/audit").status == 404
    assert other.delete().ok


def test_the_record_is_the_one_of_cloche_run(cloche, daemon):
    """One chain, many writers; the daemon shows its own."""
    daemon.create(name="a")
    assert cloche("run", "--", "true").ok
    daemon.create(name="b")
    written(daemon, lambda e: what(e) == "made" and e["metadata"]["name"] == "b")
    found = recorded(cloche)
    assert {"from" in e.get("metadata", {}) for e in found} == {True, False}
    assert all("from" in e["metadata"] for e in entries(daemon))
    assert cloche("audit", "tail", "-n", "1").out.count("\n") == 1


def test_a_state_folder_has_its_own_record(cloche):
    daemon = Daemon(cloche, "--state-dir", str(cloche.cwd / "s"), path=cloche.cwd / "s" / "api.sock")
    daemon.create()
    assert daemon.stop() == 0
    assert recorded(cloche, "--dir", str(cloche.cwd / "s" / "audit"))
    assert not (cloche.state / "cloche" / "audit" / "audit.jsonl").exists()


def writer_of(binary):
    writer = places.find_beside(binary, "tests/lib/audit_writer")
    assert writer is not None
    return writer


def test_what_is_too_old_goes(cloche, binary):
    """Not only when the next file begins, which may be in a year."""
    folder = cloche.state / "cloche" / "audit"
    for made in (folder.parent, folder):
        made.mkdir(mode=0o700)
    subprocess.run([writer_of(binary), folder, "old", "150", "10", "8000", "100", "lazy"], check=True, capture_output=True)
    full = sorted(folder.glob("audit-0*.jsonl"))
    assert 3 < len(full) < 8
    for path in full[:-1]:
        os.utime(path, (0, 0))
    daemon = Daemon(cloche, "--audit-retention", "1h")
    try:
        daemon.create()
        gone = written(daemon, lambda e: what(e) == "audit_retention")
        assert gone and gone[0]["metadata"]["file"] == full[0].name
        assert wait_for(lambda: sorted(folder.glob("audit-0*.jsonl")) == full[-1:], 60)
    finally:
        assert daemon.stop() == 0
    assert [e["metadata"]["file"] for e in recorded(cloche) if what(e) == "audit_retention"] == [p.name for p in full[:-1]]


def test_a_full_file_is_followed_by_the_next(cloche, binary):
    folder = cloche.state / "cloche" / "audit"
    for made in (folder.parent, folder):
        made.mkdir(mode=0o700)
    file, most = folder / "audit.jsonl", 64 << 20
    words = [writer_of(binary), folder, "old"]
    size = 0
    while size < most - 100_000:
        n = (most - 50_000 - size) // 600 if size else 1000     # an entry has less than that
        subprocess.run([*words, str(n), "1000", str(most), "100", "lazy"], check=True, capture_output=True)
        assert size < file.stat().st_size and list(folder.glob("audit-0*")) == []
        size = file.stat().st_size
    daemon = Daemon(cloche)
    try:
        box = daemon.create()
        while not list(folder.glob("audit-0*")):
            assert box.exec("true")["exit_code"] == 0
        assert box.put("last", b"x").ok and written(daemon, lambda e: e["metadata"].get("path") == "last")
    finally:
        assert daemon.stop() == 0
    assert [e for e in recorded(cloche, "--sandbox", box.id) if e["metadata"].get("path") == "last"]


class Held:
    """The record, locked by another process of its owner's."""

    def __init__(self, cloche):
        self.fd = os.open(cloche.state / "cloche" / "audit" / "audit.jsonl", os.O_RDWR)
        fcntl.flock(self.fd, fcntl.LOCK_EX)

    def release(self):
        os.close(self.fd)


def test_another_writer_is_waited_for(cloche, daemon):
    box = daemon.create()
    written(daemon, lambda e: what(e) == "made")
    held = Held(cloche)
    assert box.put("meanwhile", b"x").ok                    # nobody waits for the record where it is not required
    time.sleep(1)
    scribe = daemon.only("cloche-scribe")
    os.kill(scribe, signal.SIGSTOP)                         # while it waits; then it goes on
    os.kill(scribe, signal.SIGCONT)
    assert "meanwhile" not in (cloche.state / "cloche" / "audit" / "audit.jsonl").read_text()
    held.release()
    assert written(daemon, lambda e: e["metadata"].get("path") == "meanwhile")


def test_what_waits_is_written_before_the_end(cloche):
    daemon = Daemon(cloche)
    box = daemon.create()
    written(daemon, lambda e: what(e) == "made")
    held = Held(cloche)
    for i in range(20):
        assert box.put(f"f{i}", b"x").ok
    daemon.process.terminate()
    threading.Timer(1, held.release).start()
    assert daemon.stop() == 0, daemon.log
    paths = {e["metadata"].get("path") for e in recorded(cloche) if what(e) == "write" and "by" in e["metadata"]}
    assert paths == {f"f{i}" for i in range(20)}, paths


def test_a_record_that_is_cut_under_the_daemon_says_so(cloche, daemon):
    box = daemon.create()
    for i in range(4):
        box.put(f"f{i}", b"")
    assert written(daemon, lambda e: what(e) == "write" and e["metadata"].get("event") == "result")
    record = cloche.state / "cloche" / "audit" / "audit.jsonl"
    lines = record.read_bytes().splitlines(keepends=True)
    last = json.loads(lines[-1])
    with record.open("r+b") as f:
        f.truncate(sum(map(len, lines[:-5])))
    box.exec("true")
    cut = written(daemon, lambda e: what(e) == "audit_cut")[0]
    assert cut["severity"] == "critical" and cut["metadata"]["left"] == last["seq"] - 5, cut
    assert cut["metadata"]["written"] >= last["seq"], cut
    verdict = cloche("audit", "verify")
    assert verdict.code == 1 and "ENTRIES ARE MISSING" in verdict.out, verdict
    assert json.loads(cloche("audit", "verify", "--json").out)["cuts"] == 1


@pytest.mark.parametrize("mode", ["try", "required"])
def test_entries_that_nobody_could_write_by_the_end_are_counted(cloche, mode):
    """The record cannot be written, and the daemon is told to end: what is lost with it is said then, and is in the record of the next."""
    daemon = Daemon(cloche, "--audit", mode)
    box = daemon.create(name="b")
    record = cloche.state / "cloche" / "audit" / "audit.jsonl"
    assert wait_for(lambda: record.exists() and b'"made"' in record.read_bytes())
    record.rename(f"{record}.away")
    record.mkdir()
    asked = [daemon.post(f"{box.at}/exec", {"command": "true"}).status for _ in range(3)]
    assert asked == ([200] * 3 if mode == "try" else [503] * 3), asked
    assert daemon.stop() == 0
    said = re.search(r"(\d+) entries.*\[audit\.lost\]", daemon.log)
    assert said and int(said[1]) >= (6 if mode == "try" else 1), daemon.log
    record.rmdir()
    os.rename(f"{record}.away", record)
    for _ in range(2):      # once, and not again
        daemon.start()
        assert daemon.create().delete().ok
        assert daemon.stop() == 0
    gaps = [e["metadata"] for e in recorded(cloche) if e.get("metadata", {}).get("capability") == "audit_gap"]
    assert len(gaps) == 1 and gaps[0]["entries_missing"] == int(said[1]) and gaps[0]["refused"] == (0 if mode == "try" else 3), gaps


def test_off_writes_nothing(cloche):
    daemon = Daemon(cloche, "--audit", "off")
    box = daemon.create()
    assert box.exec("true")["exit_code"] == 0 and entries(daemon) == []
    refused = daemon.post("/v1/sandboxes", {"policy": {"audit": "required"}})
    assert refused.status == 400 and refused.json["code"] == "audit.off", refused
    assert daemon.stop() == 0
    assert not (cloche.state / "cloche" / "audit" / "audit.jsonl").exists()


def test_odd_words_of_the_configuration(cloche):
    for flags in (("--audit", "perhaps"), ("--audit-retention", "soon")):
        refused = cloche("serve", *flags)
        assert refused.code == 125 and "--audit" in refused.err, refused


# --- following -------------------------------------------------------------------------------------------------------

class Followed:
    def __init__(self, daemon, query="", last=None):
        self.connection = daemon.connection()
        self.connection.request("GET", f"/v1/audit/stream{query}", headers={"Last-Event-ID": str(last)} if last else {})
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.read()
        assert self.response.getheader("Content-Type") == "text/event-stream"
        assert self.response.readline().startswith(b":") and self.response.readline() == b"\n"

    def next(self):
        number, name, data, end = (self.response.readline() for _ in range(4))
        assert number.startswith(b"id: ") and name == b"event: entry\n" and data.startswith(b"data: ") and end == b"\n"
        entry = json.loads(data[6:])
        assert int(number[4:]) == entry["seq"]
        return entry

    def close(self):
        self.connection.close()


def test_following(daemon):
    stream = Followed(daemon)
    box = daemon.create(name="b")
    while what(first := stream.next()) != "create":     # what the daemon says about itself may come late
        assert "sandbox" not in first
    made = stream.next()
    assert what(made) == "made" and made["sandbox"] == box.id and made["prev"] == first["hash"]
    stream.close()
    box.put("f", b"x")
    again = Followed(daemon, last=made["seq"])      # nothing is missed
    seen = [again.next()]
    while what(seen[-1]) != "write":
        seen.append(again.next())
    assert seen[0]["prev"] == made["hash"]
    again.close()


def test_who_was_away_for_long_is_told_all_that_it_missed(daemon):
    """More than a stream holds for its client, which reads it: each entry once, and then those that come."""
    box = daemon.create()
    first = written(daemon, lambda e: what(e) == "made")[0]["seq"]
    kept = daemon.connection()
    for i in range(700):
        kept.request("PUT", f"{box.at}/files/{'x' * 200}{i}", b"")
        assert kept.getresponse().read() is not None
    kept.close()
    last = written(daemon, lambda e: e["metadata"].get("path", "").endswith("x699"))[-1]["seq"]
    deaf = [Followed(daemon, last=first) for _ in range(3)]         # who does not read holds nobody up
    for query in ("", "&type=privileged_capability_invocation"):
        stream = Followed(daemon, f"?sandbox={box.id}{query}", last=first)
        seen = [stream.next()]
        while seen[-1]["seq"] < last:
            seen.append(stream.next())
        numbers = [e["seq"] for e in seen]
        assert numbers == sorted(set(numbers)) and first < numbers[0]
        assert {p for e in seen if (p := e["metadata"].get("path"))} >= {"x" * 200 + str(i) for i in range(700)}
        assert len(json.dumps(seen)) > 512 * 1024
        box.put("then" + query, b"")
        while stream.next()["metadata"].get("path") != "then" + query:
            pass
        stream.close()
    for one in deaf:
        one.close()
    again = Followed(daemon, last=last)
    again.close()


def test_following_one_type_of_one_sandbox(daemon):
    one, other = daemon.create(name="one"), daemon.create(name="other")
    stream = Followed(daemon, "?sandbox=one&type=privileged_capability_invocation")
    other.put("f", b"x")
    one.put("mine", b"x")
    entry = stream.next()
    assert (entry["sandbox"], entry["metadata"]["path"]) == (one.id, "mine")
    stream.close()


def test_who_does_not_read_holds_nobody_up(daemon):
    box = daemon.create()
    slow = Followed(daemon)
    for i in range(20):
        box.put("x" * 200 + str(i), b"")
    assert wait_for(lambda: len([e for e in entries(daemon) if what(e) == "write"]) >= 20)
    slow.close()
    for _ in range(70):                 # places of those who have gone are free again
        Followed(daemon).close()
    stream = wait_for(lambda: Followed(daemon))
    stream.close()


# --- when it must be written -----------------------------------------------------------------------------------------

def test_required_is_written_before_it_is_done(cloche):
    daemon = Daemon(cloche, "--audit", "required")
    box = daemon.create()
    assert box.show()["facts"]["audit"] == "required"
    for i in range(10):
        assert box.exec(f"exit {i}")["exit_code"] == i
        done = [e["metadata"] for e in recorded(cloche) if what(e) == "exec" and "by" in e["metadata"]]
        assert len(done) == i + 1
    assert daemon.stop() == 0


def test_a_policy_can_be_stricter(cloche, daemon):
    strict = daemon.create(policy={"audit": "required"})
    assert strict.show()["facts"]["audit"] == "required"
    assert any(what(e) == "made" for e in recorded(cloche))
    strict.put("f", b"x")
    assert [e for e in recorded(cloche) if what(e) == "write" and "by" in e["metadata"]]
    assert daemon.create().show()["facts"]["audit"] == "try"


@pytest.fixture
def small_disk(cloche, command):
    """A daemon whose record is on a file system of 512 KiB that it alone sees; and the way there from here."""
    words = ["unshare", "-m"]
    if not places.IS_ROOT or not command([*words, "true"], check=False).ok:
        pytest.skip("no mount namespace here")
    folder = cloche.state / "cloche" / "audit"
    folder.mkdir(parents=True, mode=0o700)
    (cloche.state / "cloche").chmod(0o700)
    started = []

    def start(*flags, folder=folder, gate="off", size="512k"):
        inside = f"mount -t tmpfs -o size={size},mode=700 none {folder} && exec \"$@\""
        daemon = Daemon(cloche.behind(*words, "sh", "-c", inside, "sh"), *flags, gate=gate,
                        path=cloche.state / "cloche" / "serve" / "api.sock")
        daemon.path = f"/proc/{daemon.process.pid}/root{daemon.path}"
        started.append(daemon)
        return daemon, f"/proc/{daemon.process.pid}/root{folder}"
    yield start
    for daemon in started:
        assert daemon.stop() == 0, daemon.log


def fill(folder):
    with contextlib.suppress(FileNotFoundError):        # nor is anything kept for it any more (warden/state_room.c)
        os.truncate(f"{folder}/serve/state.room", 0)
    fd = os.open(f"{folder}/filler", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(fd, b"\0" * 4096)
    except OSError:
        pass
    finally:
        os.close(fd)


def failures(daemon):
    metrics = daemon.get("/metrics").body.decode()
    return int(re.search(r"^cloche_audit_failures_total (\d+)$", metrics, re.M)[1])


@pytest.mark.root
@requirement("R91")
def test_a_full_disk_stops_what_must_be_recorded(cloche, small_disk):
    daemon, folder = small_disk("--audit", "required")
    box = daemon.create(name="b")
    assert failures(daemon) == 0
    fill(folder)
    answers = [daemon.post(f"{box.at}/exec", {"command": "echo ran"}) for _ in range(60)]  # until its last page is full
    done = [a for a in answers if a.status == 200]
    refused = [a for a in answers if a.status != 200]
    assert refused and len(done) + len(refused) == 60
    assert {(a.status, a.json["code"]) for a in refused} == {(503, "audit.unavailable")}, refused[0]
    assert daemon.post("/v1/sandboxes", {"name": "c"}).status == 503
    assert box.show()["state"] == "ready" and daemon.get("/v1/health").ok       # what is not privileged goes on
    assert failures(daemon) >= 1
    os.unlink(f"{folder}/filler")
    assert wait_for(lambda: daemon.post(f"{box.at}/exec", {"command": "echo ran"}).status == 200)
    written(daemon, lambda e: what(e) == "audit_gap")
    found = recorded(cloche, "--dir", folder)
    ran = [e["metadata"]["operation"] for e in found if what(e) == "exec" and "by" in e["metadata"]]
    assert len(done) < len(ran) and len(set(ran)) == len(ran)
    gaps = [e["metadata"] for e in found if what(e) == "audit_gap"]
    assert sum(g["refused"] for g in gaps) >= len(refused)
    # what was refused did not run, and is not said to have been asked
    ended = [e["metadata"]["operation"] for e in found if e["metadata"].get("event") == "result"]
    assert set(ended) <= set(ran)


@pytest.mark.root
@requirement("R63", "R91")
def test_a_full_disk_makes_no_credential_and_approves_nothing(cloche, small_disk):
    daemon, folder = small_disk("--audit", "required", gate=None)
    agent = caller(daemon, "agent")
    box = agent.create()
    command = "POST", f"{box.at}/exec", {"command": "echo ran"}, {"Prefer": "respond-async"}
    told = agent(*command)
    assert told.status == 202, told
    fill(folder)
    # until its last page is full
    assert wait_for(lambda: daemon.post(f"{box.at}/exec", {"command": "true"}).status == 503)
    tokens = daemon.get("/v1/tokens").json
    for path in ("/v1/tokens", f"{box.at}/key", told.json["url"] + "/approve"):
        answer = daemon.post(path, {"role": "operator"} if path == "/v1/tokens" else None)
        assert (answer.status, answer.json["code"]) == (503, "audit.unavailable"), (path, answer)
    assert daemon.get("/v1/tokens").json == tokens and daemon.get(told.json["url"]).json["state"] == "pending"
    os.unlink(f"{folder}/filler")
    assert wait_for(lambda: daemon.post(told.json["url"] + "/approve").ok)
    assert agent(*command).json["stdout"] == "ran\n"
    assert daemon.post("/v1/tokens", {"role": "auditor"}).ok and daemon.post(f"{box.at}/key").ok
    written(daemon, lambda e: what(e) == "key_created")
    found = [what(e) for e in recorded(cloche, "--dir", folder)]
    assert [e["metadata"]["approval"] for e in entries(daemon) if what(e) == "approve"] == [told.json["approval"]]
    for asked, done in (("create_token", "token_created"), ("new_key", "key_created")):
        assert [w for w in found if w in (asked, done)] == [asked, done] * found.count(done) != [], found


@pytest.mark.root
@requirement("R23", "R91")
def test_a_key_that_cannot_be_kept_is_none(cloche, small_disk):
    """Else it would be none after the next start, and the former one a key again."""
    daemon, folder = small_disk(folder=cloche.state / "cloche")
    box = daemon.create()
    former = Caller(daemon, **{"X-Sandbox-Key": daemon.post(f"{box.at}/key").json["key"]})
    fill(folder)
    refused = wait_for(lambda: (a := daemon.post(f"{box.at}/key")).status != 200 and a)
    assert refused.json["code"] == "serve.state.full" and refused.json["detail"] == "make room there", refused
    assert former.get(box.at).ok
    os.unlink(f"{folder}/filler")


@pytest.mark.root
@requirement("R63", "R91")
def test_what_cannot_be_asked_about_is_no_denial(cloche, small_disk):
    """Nobody said no: who asked is told why, and asks again when there is room."""
    daemon, folder = small_disk(gate=None, folder=cloche.state / "cloche")
    agent = caller(daemon, "agent")
    box, n = agent.create(), iter(range(100000))

    def ask(**headers):
        return agent("POST", f"{box.at}/exec", {"command": f"echo {next(n)} " + "x" * 4000}, headers)
    fill(folder)
    refused = wait_for(lambda: (a := ask(Prefer="respond-async")).status != 202 and a)
    assert (refused.status, refused.json["code"]) == (507, "serve.state.full"), refused
    waiting = ask()
    assert (waiting.status, waiting.json["code"]) == (507, "serve.state.full"), waiting
    os.unlink(f"{folder}/filler")
    assert ask(Prefer="respond-async").status == 202


@pytest.mark.root
@requirement("R63", "R91")
def test_a_full_disk_keeps_no_grant_alive(cloche, small_disk):
    """A policy is changed while nothing can be put on record: what was granted and approved under the former one is over all the same."""
    daemon, folder = small_disk(gate=None, folder=cloche.state / "cloche", size="2m")  # SQLite's log alone takes some hundred KiB
    agent = caller(daemon, "agent")
    box = agent.create()

    def ask(command):
        return agent("POST", f"{box.at}/exec", {"command": command}, {"Prefer": "respond-async"})
    told = [ask(f"echo {i}") for i in range(4)]      # more than what is left of the last page takes
    for asked in told:
        assert daemon.post(asked.json["url"] + "/approve", {"scope": "sandbox", "expires": 3600}).ok, asked
    assert ask("echo before").status == 200
    fill(folder)
    refused = wait_for(lambda: (a := daemon.post(f"{box.at}/key")).status != 200 and a)
    assert refused.json["code"] == "serve.state.full", refused
    changed = daemon("PATCH", f"{box.at}/policy", {"limits": {"time": "40s"}})
    assert changed.status == 200, changed
    assert ask("echo after").status != 200 and ask("echo again").status != 200
    os.unlink(f"{folder}/filler")
    assert wait_for(lambda: ask("echo later").status == 202, 10)
    assert daemon.get("/v1/grants").json["grants"] == []
    restart(daemon)
    assert wait_for(lambda: daemon.state(box.id) == "ready")
    assert {daemon.get(asked.json["url"]).json["state"] for asked in told} == {"denied"} and ask("echo 0").status == 202
    assert daemon.get(f"{box.at}/policy").json["policy"] == {"limits": {"time": "40s"}}


@pytest.mark.root
@requirement("R91")
def test_a_port_that_was_taken_back_on_a_full_disk_stays_closed(cloche, small_disk):
    """What cannot be put on record is not said to be done: another warden would open it again."""
    daemon, folder = small_disk(folder=cloche.state / "cloche")
    box = daemon.create()
    numbers = iter(range(8000, 9000))
    failed, closed = set(), 0
    # A record that grows needs a page more at some time. A removal does not: it fits where SQLite's log has pages that
    # may be used again, or can be put into the file, which cannot grow: so that it must, there are more records. And once
    # more, until one does not.
    while not failed and closed < 200:
        for _ in range(40):
            assert daemon.post("/v1/tokens", {"role": "auditor"}).ok
        ports = [daemon.post(f"{box.at}/ports", {"port": next(numbers)}).json["id"] for _ in range(6)]
        fill(folder)
        while (more := daemon.post(f"{box.at}/ports", {"port": next(numbers)})).ok:
            ports.append(more.json["id"])
            fill(folder)
        assert more.json["code"] == "serve.state.full", more
        fill(folder)
        answers = {port: daemon("DELETE", f"{box.at}/ports/{port}") for port in ports}
        failed = {port for port in ports if answers[port].status != 200}
        closed += len(ports) - len(failed)
        os.unlink(f"{folder}/filler")
    assert failed and {answers[port].json["code"] for port in failed} == {"serve.state.full"}
    restart(daemon)
    assert wait_for(lambda: daemon.state(box.id) == "ready")
    assert {p["id"] for p in daemon.get(f"{box.at}/ports").json["ports"]} == failed


@pytest.mark.root
@requirement("R91")
def test_a_small_disk_is_not_full_of_what_is_on_record_twice(cloche, small_disk):
    """SQLite's log would grow to 4 MB before it is put into the file by itself."""
    daemon, folder = small_disk("--audit", "off", folder=cloche.state / "cloche", size="1m")
    box = daemon.create()
    for i in range(400):
        made = daemon.post(f"{box.at}/key")
        assert made.status == 200, (i, made, os.listdir(f"{folder}/serve"))
    assert os.stat(f"{folder}/serve/state.room").st_size > 0
    restart(daemon)
    assert wait_for(lambda: daemon.state(box.id) == "ready")
    assert Caller(daemon, **{"X-Sandbox-Key": made.json["key"]}).get(box.at).ok


@pytest.mark.root
@requirement("R61", "R91")
def test_a_full_disk_loses_nothing_of_what_happened(cloche, small_disk):
    """What cannot be put on record waits in memory, is seen meanwhile, said by /ready and the log, and is on record when there is room."""
    daemon, folder = small_disk("--audit", "off", folder=cloche.state / "cloche", size="1m")
    box, other = daemon.create(name="b"), daemon.create(name="o")

    def seen():
        return [(e["number"], e["type"], e.get("detail")) for e in daemon.get("/v1/events?limit=1000").json["events"]]

    def again():
        """Something that makes an event; no more than that."""
        assert daemon.post(f"{box.at}/pause").ok and daemon.post(f"{box.at}/resume").ok
        return daemon.get("/ready")
    assert daemon.get("/ready").json == {"status": "ready"}
    fill(folder)
    before = wait_for(lambda: (a := again()).status != 200 and a)
    assert (before.status, before.json["code"], before.json["detail"]) == (503, "serve.state.behind", "make room there"), before
    n = len(seen())
    for _ in range(20):
        assert again().status == 503
    assert len(seen()) == n + 40 and box.exec(["echo", "on"])["stdout"] == "on\n"
    assert other.delete().ok and other.show()["state"] == "stopped"
    refused = wait_for(lambda: (a := daemon.post("/v1/sandboxes", {"name": "more", "policy": {"env": {"X": "x" * 30000}}})).status != 201 and a)
    assert (refused.status, refused.json["code"]) == (507, "serve.state.full"), refused
    waiting = seen()
    assert [number for number, _, _ in waiting] == list(range(1, len(waiting) + 1))
    os.unlink(f"{folder}/filler")
    assert wait_for(lambda: daemon.get("/ready").json == {"status": "ready"})
    assert seen()[:len(waiting)] == waiting
    restart(daemon)
    assert wait_for(lambda: daemon.state(box.id) == "ready")
    assert seen()[:len(waiting)] == waiting
    assert other.show()["state"] == "stopped" and "killed" not in other.show()["detail"]
    assert daemon.stop() == 0
    assert daemon.log.count("[serve.state.full]") == 1 and "is on record now" in daemon.log, daemon.log


@pytest.mark.root
@requirement("R91")
def test_a_full_disk_does_not_keep_a_sandbox_alive(small_disk):
    daemon, folder = small_disk("--audit", "required")
    one, other = daemon.create(name="one"), daemon.create(name="other")
    fill(folder)
    wait_for(lambda: one.daemon.post(f"{one.at}/exec", {"command": "true"}).status == 503)
    assert one.delete().ok and daemon.post("/v1/kill").json["stopped"] == 1
    assert other.show()["state"] == "stopped"


@pytest.mark.root
@requirement("R91")
def test_a_full_disk_loses_nothing_of_what_is_tried(cloche, small_disk):
    daemon, folder = small_disk()
    box = daemon.create(name="b")
    fill(folder)
    for i in range(100):
        assert box.exec(["true", str(i)])["exit_code"] == 0
    os.unlink(f"{folder}/filler")
    assert wait_for(lambda: len([e for e in entries(daemon) if e["metadata"].get("event") == "result"]) == 100)
    found = [e["metadata"] for e in recorded(cloche, "--dir", folder) if what(e) == "exec"]
    assert len([m for m in found if "by" in m]) == len([m for m in found if m.get("event") == "result"]) == 100
    assert len({m["argv_sha256"] for m in found if "by" in m}) == 100


# --- when something dies ---------------------------------------------------------------------------------------------

def busy(daemon, box, rounds, disturb):
    """Commands whose answers came, while something else happens."""
    acknowledged, end = [], threading.Event()

    def work(which):
        i = 0
        while not end.is_set():
            words = ["true", f"{which}-{i}"]
            i += 1
            try:
                if daemon.post(f"{box.at}/exec", {"command": words}).status == 200:
                    acknowledged.append(hashlib.sha256("".join(w + "\0" for w in words).encode()).hexdigest())
            except Exception as e:      # a connection that ended has many names
                assert type(e).__module__ in ("http.client", "builtins", "socket"), e
    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    try:
        for _ in range(rounds):
            n = len(acknowledged)
            assert wait_for(lambda n=n: len(acknowledged) > n + 5, 60)
            disturb()
    finally:
        end.set()
        for t in threads:
            t.join()
    return acknowledged


@pytest.mark.parametrize("name", ["cloche-warden", "cloche-scribe"])
@pytest.mark.parametrize("mode", ["try", "required"])
def test_nothing_acknowledged_is_missing_when_one_is_killed(cloche, name, mode):
    daemon = Daemon(cloche, "--audit", mode)
    box = daemon.create(name="b")
    acknowledged = busy(daemon, box, 3, lambda: kill_one(daemon, name))
    assert daemon.stop() == 0, daemon.log
    asked = [e["metadata"]["argv_sha256"] for e in recorded(cloche) if what(e) == "exec" and "by" in e["metadata"]]
    assert set(acknowledged) <= set(asked) and len(acknowledged) > 10
    assert len(asked) == len(set(asked))        # nor is anything there twice


def test_nothing_acknowledged_is_missing_when_the_daemon_is_killed(cloche):
    daemon = Daemon(cloche, "--audit", "required")
    box = daemon.create(name="b")
    acknowledged = busy(daemon, box, 1, daemon.process.kill)
    daemon.process.communicate()
    asked = {e["metadata"]["argv_sha256"] for e in recorded(cloche) if what(e) == "exec" and "by" in e["metadata"]}
    assert set(acknowledged) <= asked and acknowledged


def test_a_new_warden_shows_what_was_written(daemon):
    box = daemon.create(name="b")
    box.put("f", b"x")
    wait_for(lambda: any(e["metadata"].get("event") == "result" for e in entries(daemon)))
    before = entries(daemon)
    restart(daemon)
    assert wait_for(lambda: entries(daemon)[:len(before)] == before)


def test_the_next_daemon_goes_on_with_the_record(cloche):
    first = Daemon(cloche)
    first.create()
    assert first.stop() == 0
    n = len(recorded(cloche))
    second = Daemon(cloche)
    assert wait_for(lambda: len(entries(second)) >= n)
    second.create()
    assert second.stop() == 0
    assert len(recorded(cloche)) > n


def test_the_scribe_can_do_nothing_else(daemon):
    """Root where the daemon is root, for the files are its own; but without any right."""
    pid = daemon.processes("cloche-scribe")[0]
    with open(f"/proc/{pid}/status") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
    assert (status["CapEff"], status["CapPrm"], status["NoNewPrivs"]) == ("0" * 16, "0" * 16, "1")
    assert status["Seccomp"] == ("0" if is_sanitized(daemon) else "2")
