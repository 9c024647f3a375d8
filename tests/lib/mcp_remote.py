"""A remote MCP server of the official Python SDK, over TLS: `mcp_remote.py PORT CERTIFICATE KEY LOG`; and its client:
`mcp_remote.py MODE URL TOOL...`. Each call of a tool is a line of LOG, and each answer one of the client's stdout."""
import asyncio
import sys


def serve(port, certificate, key, log):
    import uvicorn
    from mcp.server import MCPServer
    from mcp.server.transport_security import TransportSecuritySettings
    server = MCPServer("remote")

    def add(name):
        @server.tool(name=name)
        def tool() -> str:
            with open(log, "a", encoding="utf-8") as f:
                f.write(name + "\n")
            return name + " done"

    for name in ("read_file", "write_file"):
        add(name)

    class Server(uvicorn.Server):
        async def startup(self, sockets=None):
            await super().startup(sockets)
            print("ready", flush=True)
    app = server.streamable_http_app(transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False))
    Server(uvicorn.Config(app, host="0.0.0.0", port=int(port), ssl_certfile=certificate, ssl_keyfile=key, log_level="error")).run()


async def drive(mode, url, tools):
    from mcp import Client
    for tool in tools:
        try:
            async with Client(url, mode=mode, read_timeout_seconds=20) as client:
                names = [t.name for t in (await client.list_tools()).tools]
                print(",".join(names), client.protocol_version, flush=True)
                print((await client.call_tool(tool, {})).content[0].text, flush=True)
        except Exception as e:
            print("refused", type(e).__name__, flush=True)


if sys.argv[1].isdigit():
    serve(*sys.argv[1:])
else:
    asyncio.run(drive(sys.argv[1], sys.argv[2], sys.argv[3:]))
