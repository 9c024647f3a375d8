"""Each profile of `cloche agent` with the real program, from its npm or PyPI package, up to its prompt in a terminal.

A server of the test is the model: what is typed at the prompt reaches it, and what it says is on the screen.
"""
import fcntl
import json
import os
import re
import select
import struct
import termios
import time

import pytest

from helpers import npm, pypi, requirement

pytestmark = [requirement("R01", "R13"), pytest.mark.root]

MODEL = "model.example.org"
SAYS = "zebra-crossing"
PATIENCE = 240      # a machine that does other things as well
PACKAGES = {"claude": "@anthropic-ai/claude-code", "codex": "@openai/codex", "gemini": "@google/gemini-cli",
            "opencode": "opencode-ai"}


ESCAPE = re.compile(rb"\x1b\[[0-9;?<>=]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(\x07|\x1b\\)|\x1b[()][0-9A-B]|\x1b[=>78cM]")


def events(*lines):
    return "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in lines).encode()


class Terminal:
    """A program in a terminal, and what is on it without the colours."""

    def __init__(self, cloche, *argv, **start):
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.process = cloche.popen(*argv, stdin=slave, stdout=slave, stderr=slave, own_terminal=True, **start)
        os.close(slave)
        self.raw, self.seen = b"", 0

    def text(self):
        plain = ESCAPE.sub(b"", self.raw[self.seen:])
        return plain.decode("utf-8", "replace")

    def read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return
        try:
            piece = os.read(self.master, 65536)
        except OSError:
            piece = b""
        if not piece:
            time.sleep(0.05)
        self.raw += piece
        # what a terminal answers when it is asked
        if b"\x1b[6n" in piece:
            os.write(self.master, b"\x1b[1;1R")
        if b"\x1b[c" in piece:
            os.write(self.master, b"\x1b[?62;22c")

    def until(self, *patterns, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text = re.sub(r"\s+", "", self.text())
            for at, pattern in enumerate(patterns):
                if re.search(re.sub(" ", "", pattern), text):
                    return at
            if self.process.poll() is not None:
                break
            self.read(0.2)
        raise AssertionError(f"none of {patterns}, exit {self.process.poll()}:\n" + self.text()[-3000:])

    def end(self):
        self.process.kill()
        self.process.wait()
        os.close(self.master)

    def type(self, keys):
        """As a person does: a line's end that comes at once with the line is taken for something pasted."""
        self.seen = len(self.raw)
        for part in re.findall(r"[^\r]+|\r", keys):
            os.write(self.master, part.encode())
            end = time.monotonic() + 0.7
            while time.monotonic() < end:
                self.read(0.1)


def model(path, data):
    """The least that each program takes for an answer."""
    if "/messages" in path and "count_tokens" not in path:
        return "text/event-stream", events(
            {"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
                                                  "content": [], "stop_reason": None, "stop_sequence": None,
                                                  "usage": {"input_tokens": 1, "output_tokens": 1}}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAYS}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
             "usage": {"output_tokens": 2}},
            {"type": "message_stop"})
    if path.endswith("/responses"):
        item = {"type": "message", "id": "m1", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": SAYS, "annotations": []}]}
        return "text/event-stream", events(
            {"type": "response.created", "response": {"id": "r1"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "r1", "output": [item], "usage": {
                "input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None,
                "total_tokens": 2}}})
    if "GenerateContent" in path or "generateContent" in path:
        said = {"candidates": [{"content": {"role": "model", "parts": [{"text": SAYS}]}, "finishReason": "STOP", "index": 0}],
                "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
        if "stream" in path:
            return "text/event-stream", f"data: {json.dumps(said)}\r\n\r\n".encode()
        return "application/json", json.dumps(said).encode()
    if path.endswith("/chat/completions"):
        said = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        chunks = [{"index": 0, "delta": {"role": "assistant", "content": SAYS}, "finish_reason": None},
                  {"index": 0, "delta": {}, "finish_reason": "stop"}]
        return "text/event-stream", "".join(f"data: {json.dumps({**said, 'choices': [c]})}\n\n" for c in chunks).encode() + \
            b"data: [DONE]\n\n"
    return "application/json", b"{}"


CASES = {
    "claude": {"env": {"ANTHROPIC_BASE_URL": f"https://{MODEL}", "ANTHROPIC_AUTH_TOKEN": "token"},
               "dialogs": [("Choosethetextstyle", "\r"), ("PressEntertocontinue", "\r"), ("Yes,Itrustthisfolder", "\r")],
               "prompt": "forshortcuts|Try\"|❯"},
    "codex": {"args": ["-c", f'model_providers.t={{name="t",base_url="https://{MODEL}/v1",env_key="T_KEY",wire_api="responses"}}',
                       "-c", 'model_provider="t"', "-c", 'model="gpt-5"'], "env": {"T_KEY": "key"},
              "dialogs": [("Yes,continue", "\r")], "prompt": "›AskCodex|›(?!1[.]).*forshortcuts"},
    "gemini": {"env": {"GOOGLE_GEMINI_BASE_URL": f"https://{MODEL}", "GEMINI_API_KEY": "key"},
               "files": {".gemini/settings.json": json.dumps({"security": {"auth": {"selectedType": "gemini-api-key"}}})},
               "dialogs": [("Doyoutrustthefiles", "\r")], "prompt": "Typeyourmessage"},
    "opencode": {"files": {".config/opencode/opencode.json": json.dumps({
        "model": "t/m", "small_model": "t/m", "provider": {"t": {
            "npm": "@ai-sdk/openai-compatible", "name": "T", "options": {"baseURL": f"https://{MODEL}/v1", "apiKey": "k"},
            "models": {"m": {"name": "M"}}}}})}, "env": {"OPENCODE_DISABLE_MODELS_FETCH": "true"}, "prompt": "Askanything"},
    "aider": {"args": ["--model", "openai/m", "--no-show-model-warnings", "--no-git", "--no-pretty"],
              "env": {"OPENAI_API_BASE": f"https://{MODEL}/v1", "OPENAI_API_KEY": "key"}, "prompt": ">"},
}


def program(name):
    """The folder that has it, from its package."""
    if name == "aider":
        return pypi.python_with("aider-chat").parent
    package = PACKAGES[name]
    return npm.packages(package, scripts=[package]) / "node_modules/.bin"


def start(online, name, folder):
    case = CASES[name]
    flags = ["--allow-domain", MODEL, "--extra-ca", online.net.ca]
    for variable, value in case.get("env", {}).items():
        flags += ["--env", f"{variable}={value}"]
    return Terminal(online.cloche, "agent", *flags, name, *case.get("args", ()), cwd=online.bare.project,
                    env={"PATH": f"{folder}:{os.environ['PATH']}", "TERM": "xterm-256color"})


@pytest.mark.parametrize("name", CASES)
def test_up_to_its_prompt_and_an_answer(online, has, name):
    has("node")
    case, folder = CASES[name], program(name)
    online.net.model = model
    for path, text in case.get("files", {}).items():
        at = online.bare.home / path
        at.parent.mkdir(parents=True)
        at.write_text(text, encoding="ascii")
    terminal = start(online, name, folder)
    try:
        left = list(case.get("dialogs", ()))    # not every version has each
        while (at := terminal.until(*[text for text, _ in left], case["prompt"])) < len(left):
            terminal.type(left.pop(at)[1])
        terminal.type("hello\r")
        terminal.until(SAYS)
    finally:
        terminal.end()
    asked = [r for r in online.net.requests if r["method"] == "POST"]
    assert asked and {r["host"] for r in asked} == {MODEL} and any(b"hello" in r["data"] for r in asked)
