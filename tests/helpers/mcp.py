"""A client of /mcp that says exactly what a test wants it to say, in either form of the protocol."""
import json

SESSIONS = "2025-11-25"
STATELESS = "2026-07-28"
ACCEPT = "application/json, text/event-stream"
META = "io.modelcontextprotocol/"


def events(text):
    """The messages of a text/event-stream."""
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


class Client:
    """One client; @version says how it speaks. Requests are `client(method, params)`: the message that answered."""

    def __init__(self, daemon, version=SESSIONS, token=None, capabilities=None):
        self.daemon, self.version, self.token = daemon, version, token
        self.capabilities = capabilities or {}
        self.session = None
        self.number = 0
        self.heard = []     # of the last request: all that its stream said
        if version != STATELESS:
            answer = self("initialize", {"protocolVersion": version, "capabilities": self.capabilities,
                                         "clientInfo": {"name": "test", "version": "1"}})
            self.initialized = answer["result"]
            self.session = self.answer.headers["Mcp-Session-Id"]
            self.tell("notifications/initialized")

    def headers(self, method=None, params=None):
        made = {"Content-Type": "application/json", "Accept": ACCEPT}
        if self.token:
            made["Authorization"] = f"Bearer {self.token}"
        if self.session:
            made["Mcp-Session-Id"] = self.session
        if self.session or self.version == STATELESS:
            made["MCP-Protocol-Version"] = self.version
        if self.version == STATELESS and method:
            made["Mcp-Method"] = method
            name = (params or {}).get("uri" if method == "resources/read" else "name")
            if name:
                made["Mcp-Name"] = name
        return made

    def message(self, method, params=None, notify=False):
        params = dict(params or {})
        if self.version == STATELESS:
            params["_meta"] = {META + "protocolVersion": self.version, META + "clientCapabilities": self.capabilities,
                               **params.get("_meta", {})}
        made = {"jsonrpc": "2.0", "method": method, "params": params}
        if not notify:
            self.number += 1
            made["id"] = self.number
        return made

    def raw(self, body, headers=None, method="POST"):
        return self.daemon(method, "/mcp", body, self.headers() if headers is None else headers)

    def __call__(self, method, params=None):
        self.answer = self.raw(self.message(method, params), self.headers(method, params))
        if self.answer.headers["Content-Type"] == "text/event-stream":
            self.heard = events(self.answer.body.decode())
        else:
            self.heard = [self.answer.json]
        last = self.heard[-1]
        assert last["id"] == self.number and last["jsonrpc"] == "2.0", last
        return last

    def tell(self, method, params=None):
        answer = self.raw(self.message(method, params, notify=True), self.headers(method, params))
        assert answer.status == 202 and answer.body == b"", answer

    def call(self, tool, meta=None, **args):
        """What a tool's call came to, as structured content; the same is there as text."""
        params = {"name": tool, "arguments": args, **({"_meta": meta} if meta else {})}
        result = self("tools/call", params)["result"]
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"], result
        assert result["isError"] == (not result["structuredContent"]["success"]), result
        return result["structuredContent"]

    def tools(self):
        return {t["name"]: t for t in self("tools/list")["result"]["tools"]}
