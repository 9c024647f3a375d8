"""A person's editor in a sandbox: tickets, sessions, and OpenSSH's own client and server (docs/attach.md)."""
import json
import os
import socket
import time

import pytest

from helpers import requirement
from helpers.attach import PEM, Editor, code, events, needs, opened, session, ticket
from helpers.daemon import Caller, Daemon, caller, token
from helpers.runner import wait_for
from helpers.websocket import WebSocket

pytestmark = requirement("R25")


@pytest.fixture
def editor(cloche, daemon, box):
    needs("sftp", "scp")
    return Editor(cloche, daemon, box, "--write")


def test_a_command(editor, box):
    assert editor.said["mode"] == "write" and editor.said["sandbox"] == box.id and "ticket" not in editor.said
    done = editor.ssh("id -un; pwd; cat; echo done >&2; exit 7", stdin=b"typed")
    assert done.code == 7 and done.out == "agent\n/workspace\ntyped" and "done\n" in done.err, done
    # the session goes on: the ticket is used, and further connections need none
    assert editor.ssh("echo here > made-by-ssh; echo $CLOCHE_SANDBOX").out == f"{box.id}\n"
    assert box.read("made-by-ssh").body == b"here\n"
    assert editor.ssh("echo $HOME $SSH_ORIGINAL_COMMAND").out == "/home/agent\n"


def test_a_terminal(editor):
    done = editor.run("ssh", "-tt", editor.host, "stty size; tty", pty=True, size=(33, 99))
    assert done.ok and "33 99" in done.out and "/dev/pts/" in done.out, done


def test_files(editor, box, cloche):
    data = os.urandom(3 << 20)
    here = cloche.home / "here"
    here.write_bytes(data)
    assert editor.run("scp", "-q", str(here), f"{editor.host}:there").ok
    assert box.read("there").body == data
    editor.sftp("mkdir d", f"put {here} d/again", "rename d/again d/once", f"get d/once {cloche.home}/back", "chmod 700 d/once")
    assert (cloche.home / "back").read_bytes() == data
    assert box.exec("stat -c %a d/once")["stdout"] == "700\n"


def test_rsync(editor, box, cloche):
    needs("rsync")
    tree = cloche.home / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "f").write_text("one")
    shell = f"ssh -F {editor.said['config']}"
    there = box.exec("command -v rsync")["exit_code"] == 0
    if not there:
        pytest.skip("rsync is not in the sandbox")
    done = cloche.run(["rsync", "-a", "-e", shell, f"{tree}/", f"{editor.host}:copy/"], env=editor.env)
    assert done.ok and box.read("copy/sub/f").body == b"one", done


def test_nothing_is_forwarded(editor, cloche):
    """By the server, whatever the client's configuration says."""
    allowed = ("-o", "ClearAllForwardings=no", "-o", "ExitOnForwardFailure=yes")
    for words in (("-R", "0:127.0.0.1:22"), ("-R", f"{cloche.home}/sock:127.0.0.1:22")):
        done = editor.run("ssh", "-N", *allowed, *words, editor.host)
        assert done.code == 255 and "forward" in done.err, done
    done = editor.run("ssh", *allowed, "-W", "127.0.0.1:22", editor.host)
    assert done.code == 255 and "administratively prohibited" in done.err, done
    done = editor.ssh("-o", "ForwardAgent=yes", "-o", "ForwardX11=yes", "env")
    assert done.ok and "SSH_AUTH_SOCK" not in done.out and "DISPLAY" not in done.out, done


def test_the_configuration_trusts_nothing(editor):
    said = dict(line.split(" ", 1) for line in editor.run("ssh", "-G", editor.host).out.splitlines() if " " in line)
    for name, value in (("forwardagent", "no"), ("forwardx11", "no"), ("permitlocalcommand", "no"), ("stricthostkeychecking", "true"),
                        ("updatehostkeys", "false"), ("passwordauthentication", "no"), ("kbdinteractiveauthentication", "no"),
                        ("identitiesonly", "yes"), ("identityagent", "none"), ("clearallforwardings", "yes"), ("tunnel", "false")):
        assert said[name] == value, (name, said[name])
    # another host key is refused, not asked about
    folder = editor.said["folder"]
    with open(f"{folder}/known_hosts", encoding="ascii") as f:
        known = f.read()
    with open(f"{folder}/known_hosts", "w", encoding="ascii") as f:
        f.write(known[:-8] + ("AAAA" if known[-8:-4] != "AAAA" else "BBBB") + known[-4:])
    done = editor.ssh("true")
    assert done.code == 255 and "erification failed" in done.err, done


def test_the_folder_is_its_owners(editor, daemon, cloche):
    folder = editor.said["folder"]
    assert os.stat(folder).st_mode & 0o777 == 0o700
    for name in ("ticket", "user_key", "host_key", "config"):
        assert os.stat(f"{folder}/{name}").st_mode & 0o777 == 0o600, name
    assert editor.ssh("true").ok and not os.path.exists(f"{folder}/ticket") and os.stat(f"{folder}/session").st_mode & 0o777 == 0o600
    os.chmod(folder, 0o755)
    done = cloche("attach", "--proxy", folder, env=editor.env)
    assert done.code == 125 and "[attach.folder]" in done.err, done
    done = cloche("attach", editor.said["sandbox"], "--write", "--dir", folder, env={"CLOCHE_SOCKET": str(daemon.path)})
    assert done.code == 125 and "[attach.folder]" in done.err, done


@pytest.mark.parametrize("name, text", [("ticket", "[]"), ("session", "[]"), ("session", "{")])
def test_a_file_of_the_folder_that_is_none(editor, cloche, name, text):
    with open(f"{editor.said['folder']}/{name}", "w") as f:
        f.write(text)
    done = cloche("attach", "--proxy", editor.said["folder"], env=editor.env)
    assert done.code == 125 and f"{name} in " in done.err and "[attach.folder]" in done.err, done


@pytest.mark.parametrize("mode, says", [(None, "there is no ssh-keygen here"), (0o644, "ssh-keygen made no key"),
                                        (0o755, "ssh-keygen made no key")])
def test_no_key(cloche, daemon, box, tmp_path, mode, says):
    if mode is not None:
        (tmp_path / "ssh-keygen").write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "ssh-keygen").chmod(mode)
    done = cloche("attach", box.id, "--write", env={"CLOCHE_SOCKET": str(daemon.path), "PATH": str(tmp_path)})
    assert done.code == 125 and "[attach.client]" in done.err and says in done.err, done


# --- tickets --------------------------------------------------------------------------------------------------------------------


def test_a_ticket_is_used_once(daemon, box):
    made = ticket(daemon, box)
    assert opened(daemon, box, made["ticket"]).status == 201
    again = opened(daemon, box, made["ticket"])
    assert code(again) == (403, "attach.used"), again
    assert [e for e in events(daemon, "attach_refused") if "[attach.used]" in e and "the owner" in e]
    assert len(events(daemon, "attach_opened")) == 1


def test_a_ticket_is_for_one_sandbox(daemon, box):
    other = daemon.create(name="two")
    made = ticket(daemon, box)
    refused = opened(daemon, other, made["ticket"])
    assert code(refused) == (403, "attach.sandbox"), refused
    assert [e for e in daemon.get(f"/v1/events?sandbox={other.id}&limit=100").json["events"]
            if e["type"] == "attach_refused" and "[attach.sandbox]" in e["detail"]]
    assert opened(daemon, box, made["ticket"]).status == 201      # that used nothing up


def test_a_ticket_is_for_one_person(daemon):
    agent, operator = caller(daemon, "agent", name="priya"), caller(daemon, "operator", name="other")
    box = agent.create(name="work")
    made = ticket(agent, box)
    assert "priya" in made["person"]
    for who in (operator, daemon):
        assert code(opened(who, box, made["ticket"])) == (403, "attach.person")
    assert len([e for e in events(daemon, "attach_refused") if "[attach.person]" in e]) == 2
    assert [e for e in events(daemon, "attach_refused") if "other" in e]
    assert opened(agent, box, made["ticket"]).status == 201


def test_a_ticket_is_for_one_moment(daemon, box):
    made = ticket(daemon, box, within=1)
    wait_for(lambda: time.time() * 1000 > made["expires_ms"] + 100, 60)
    assert code(opened(daemon, box, made["ticket"])) == (403, "attach.late")
    assert [e for e in events(daemon, "attach_refused") if "[attach.late]" in e]


def test_a_ticket_is_for_one_workspace(daemon, box):
    made = ticket(daemon, box)
    assert box.delete().ok and daemon.post(f"{box.at}/recover").ok
    assert code(opened(daemon, box, made["ticket"])) == (403, "attach.workspace")


def test_a_ticket_is_signed(daemon, box):
    text = ticket(daemon, box, "inspect")["ticket"]
    head = len("cloche_ticket_")
    for at in (*range(head, len(text), 17), head + 128, len(text) - 1):      # 128: the mode
        forged = text[:at] + ("0" if text[at] != "0" else "1") + text[at + 1:]
        assert code(opened(daemon, box, forged)) == (403, "attach.ticket"), at
    for forged in ("", "cloche_ticket_", text[:-2], text + "00", text.upper(), text[head:]):
        assert code(opened(daemon, box, forged)) == (403, "attach.ticket"), forged
    assert opened(daemon, box, "x" * 300).status == 400
    assert opened(daemon, box, text).status == 201


def test_what_is_no_request(daemon, box):
    for body in ({}, {"mode": "both"}, {"mode": "write", "seconds": 0}, {"mode": "write", "seconds": 43201}, {"mode": "write", "within": 601},
                 {"mode": "write", "seconds": "60"}, {"mode": "write", "what": 1}, [], {"mode": ["write"]}):
        assert code(daemon.post(f"{box.at}/attach", body)) == (400, "attach.request"), body
    for body in ({}, {"ticket": 1}, {"ticket": "x", "more": 1}):
        assert code(daemon.post(f"{box.at}/attach/open", body)) == (400, "attach.request"), body


# --- sessions -------------------------------------------------------------------------------------------------------------------


def bearer(one):
    return f"Authorization: Bearer {one['token']}"


def test_a_session_answers_no_other_question(daemon, box):
    other = daemon.create(name="two")
    one = session(daemon, box)
    who = Caller(daemon, Authorization=f"Bearer {one['token']}")
    for method, at, body in (("GET", box.at, None), ("POST", f"{box.at}/exec", {"command": "true"}), ("GET", f"{box.at}/files/f", None),
                             ("GET", "/v1/sandboxes", None), ("POST", f"{box.at}/attach", {"mode": "write"}), ("DELETE", box.at, None),
                             ("GET", f"{box.at}/attach", None), ("POST", "/v1/tokens", {"role": "operator"}), ("POST", f"{box.at}/key", None),
                             ("GET", "/v1/events", None), ("GET", f"{box.at}/transcript", None)):
        answer = who(method, at, body)
        assert answer.status == 403 and answer.json["code"] == "auth.role", (method, at, answer)
    ws = WebSocket(daemon.path, f"{other.at}/attach/ws", headers=[bearer(one)])
    assert ws.status == 404
    assert [e for e in events(daemon, "auth_refused") if f"session {one['id']}: asked for {other.id}" in e], events(daemon, "auth_refused")


def test_no_other_credential_connects(daemon, box):
    session(daemon, box)
    key = daemon.post(f"{box.at}/key").json["key"]
    for headers, status in (([], 403), ([f"Authorization: Bearer {token(daemon, 'operator')['token']}"], 403), ([f"X-Sandbox-Key: {key}"], 403),
                            (["Authorization: Bearer cloche_attach_" + "0" * 64], 401)):
        assert WebSocket(daemon.path, f"{box.at}/attach/ws", headers=headers).status == status, headers


def first_message(daemon, box, one, message):
    ws = WebSocket(daemon.path, f"{box.at}/attach/ws", headers=[bearer(one)])
    assert ws.status == 101, ws.head
    ws.say(message)
    return json.loads(ws.hear()[1])


def test_keys_are_keys(daemon, box):
    """Nothing of the first message becomes another line of the server's file of keys, or an option of it."""
    needs()
    one = session(daemon, box)
    user = "ssh-ed25519 AAAA"
    for host_key, user_key in ((PEM, user + "\nssh-ed25519 BBBB"), (PEM, 'command="x" ' + user), (PEM, ""), (PEM, "ssh-rsa AAAA"), (PEM, user + " comment"),
                               (PEM + "ssh-ed25519 CCCC\n", user), ("", user), (PEM.replace("AAAA", "AA AA"), user), (PEM[:-1], user), (PEM * 30, user),
                               (PEM.replace("OPENSSH", "RSA"), user), ("ssh-ed25519 DDDD\n" + PEM, user), ([PEM], user), (PEM, None)):
        said = first_message(daemon, box, one, {"host_key": host_key, "user_key": user_key})
        assert said["type"] == "error" and said["code"] == "attach.request", (host_key, user_key, said)
    assert first_message(daemon, box, one, {"command": "true"})["code"] == "attach.request"
    assert first_message(daemon, box, one, {"host_key": PEM, "user_key": user})["type"] == "started"


def test_over_tcp(cloche):
    """The same way over the daemon's address for others, for the session's credential alone."""
    needs()
    daemon = Daemon(cloche, path=cloche.home / "s", tcp=True)
    box = daemon.create(name="one")
    one = session(daemon, box, "inspect")
    for headers, status in (([], 401), ([f"Authorization: Bearer {daemon.token()}"], 403), ([bearer(one)], 101)):
        ws = WebSocket(socket.create_connection(daemon.addresses()[0], 60), f"{box.at}/attach/ws", headers=headers)
        assert ws.status == status, ws.head
    ws.say({"host_key": PEM, "user_key": "ssh-ed25519 AAAA"})
    assert json.loads(ws.hear()[1])["type"] == "started"
    ws.close()
    assert daemon.stop() == 0, daemon.log


def test_a_session_ends_by_itself(cloche, daemon, box):
    needs()
    editor = Editor(cloche, daemon, box, "--write", "--for", "8s")
    done = editor.ssh("echo begun; sleep 200")
    assert done.code not in (0, 7) and done.out == "begun\n" and done.seconds < 120, done
    assert editor.ssh("true").code == 255
    wait_for(lambda: [e for e in events(daemon, "attach_over") if "its time is over" in e], 60)
    assert daemon.get(f"{box.at}/attach").json == {"sessions": []}
    assert [e for e in events(daemon, "attach_closed") if editor.said["id"] in e and "write" in e]


def in_the_background(editor):
    process = editor.cloche.start(["ssh", "-F", editor.said["config"], "-T", editor.host, "echo begun; sleep 300"], env=editor.env)
    assert process.stdout.read(6) == b"begun\n"
    return process


def test_a_session_is_ended(cloche, daemon, box):
    needs()
    editor = Editor(cloche, daemon, box, "--write")
    process = in_the_background(editor)
    listed = daemon.get(f"{box.at}/attach").json["sessions"]
    assert [(s["id"], s["mode"], s["person"]) for s in listed] == [(editor.said["id"], "write", "the owner")]
    shown = cloche("attach", "one", "ls", env=editor.env)
    assert shown.ok and editor.said["id"] in shown.out and "write" in shown.out, shown
    assert cloche("attach", "one", "rm", editor.said["id"], env=editor.env).ok
    assert process.wait(120) != 0
    assert editor.ssh("true").code == 255
    gone = cloche("attach", "one", "rm", editor.said["id"], env=editor.env)
    assert gone.code == 125 and "[attach.none]" in gone.err, gone
    process.communicate()


@pytest.mark.parametrize("what", ["sandbox", "token"])
def test_what_a_session_ends_with(cloche, daemon, what):
    needs()
    mine = token(daemon, "agent", name="priya")
    who = Caller(daemon, Authorization=f"Bearer {mine['token']}")
    box = who.create(name="work")
    editor = Editor(cloche, daemon, box, "--write", env={"CLOCHE_TOKEN": mine["token"]})
    process = in_the_background(editor)
    assert (who("DELETE", box.at) if what == "sandbox" else daemon("DELETE", f"/v1/tokens/{mine['id']}")).ok
    assert process.wait(120) != 0
    process.communicate()
    assert editor.ssh("true").code == 255
    wait_for(lambda: events(daemon, "attach_over"), 60)
    assert "priya" in events(daemon, "attach_opened")[0]


def test_who_and_which_mode_is_on_record(cloche, daemon, box):
    needs()
    editor = Editor(cloche, daemon, box, "--write")
    assert editor.ssh("true").ok
    wait_for(lambda: events(daemon, "attach_closed"), 60)
    assert cloche("attach", "one", "rm", editor.said["id"], env=editor.env).ok
    wait_for(lambda: "attach_over" in str(daemon.get(f"{box.at}/audit?limit=1000").json), 60)
    text = daemon.get(f"{box.at}/audit?limit=1000").json["entries"]
    have = {e["metadata"].get("capability"): e["metadata"] for e in text if "attach" in json.dumps(e) and e["metadata"].get("event") != "result"}
    for name in ("attach", "attach_open", "attach_tunnel"):
        assert have[name]["attach_mode"] == "write" and have[name]["by"], have
    for name in ("attach_ticket", "attach_opened", "attach_connected", "attach_closed", "attach_over"):
        assert editor.said["id"] in have[name]["detail"] and "write" in have[name]["detail"] and "the owner" in have[name]["detail"], have
    assert "cloche_ticket" not in json.dumps(text) and "cloche_attach" not in json.dumps(text)


def test_the_record_says_inspect(cloche, daemon, box):
    needs("sftp")
    box.put("f", b"text")
    editor = Editor(cloche, daemon, box, "--inspect")
    editor.sftp("pwd", f"get f {cloche.home}/got")
    assert (cloche.home / "got").read_bytes() == b"text"
    for kind in ("attach_ticket", "attach_opened", "attach_connected"):
        assert [e for e in events(daemon, kind) if f"{editor.said['id']}, inspect" in e and "the owner" in e], kind
    wait_for(lambda: [e for e in events(daemon, "attach_closed") if "inspect" in e], 60)


@pytest.mark.parametrize("words, refusal", [
    (["one"], "cli.attach.mode"), (["one", "--write", "--inspect"], "cli.attach.mode"), ([], "cli.sandbox"), (["--write"], "cli.sandbox"),
    (["one", "--write", "--for", "13h"], "cli.flag-value"), (["one", "--write", "--for", "soon"], "cli.flag-value"),
    (["one", "--write", "--within", "11m"], "cli.flag-value"), (["none", "--write"], "sandbox.not-found"), (["one", "--write", "--user", "a b"], "attach.user"),
    (["one", "--write", "more"], "cli.attach.verb"), (["--proxy", "/nowhere"], "attach.folder"), (["one", "--proxy", "/"], "cli.attach.verb"),
    (["one", "rm", "0" * 32], "attach.none"), (["one", "rm"], "cli.attach.verb"), (["one", "--write", "--dir", "/nowhere/at/all"], "attach.folder"),
])
def test_what_the_verb_refuses(cloche, daemon, box, words, refusal):
    assert box
    done = cloche("attach", *words, env={"CLOCHE_SOCKET": str(daemon.path)})
    assert done.code == 125 and f"[{refusal}]" in done.err and not done.out, done
