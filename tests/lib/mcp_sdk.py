"""The official Python SDK drives every tool: `mcp_sdk.py MODE stdio PROGRAM WORD...` or `MODE http URL TOKEN`, under a
Python that has it. One line of JSON per call on stdout."""
import asyncio
import json
import os
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

MODE, HOW, *WORDS = sys.argv[1:]


def server():
    if HOW == "stdio":
        return StdioServerParameters(command=WORDS[0], args=WORDS[1:], env=dict(os.environ))
    return streamable_http_client(WORDS[0], http_client=httpx2.AsyncClient(headers={"Authorization": f"Bearer {WORDS[1]}"}, timeout=120))


def say(*what):
    print(json.dumps(what), flush=True)


async def main():
    async with Client(server(), mode=MODE, read_timeout_seconds=120) as client:
        say("version", client.protocol_version)
        say("tools", [tool.name for tool in (await client.list_tools()).tools])

        async def call(name, /, **args):
            result = await client.call_tool(name, args)
            say(name, result.structured_content)
            return result.structured_content

        box = (await call("create_sandbox", name="sdk"))["sandbox_id"]
        said = []

        async def progress(_done, _total, message):
            said.append(message)

        result = await client.call_tool("code_execute", {"language": "python", "code": "print(6 * 7)", "sandbox_id": box}, progress_callback=progress)
        say("code_execute", result.structured_content)
        say("progress", "".join(said))
        await call("code_write_file", sandbox_id=box, file_path="a.txt", content="hello")
        await call("code_read_file", sandbox_id=box, file_path="a.txt")
        await call("code_list_files", sandbox_id=box)
        await call("code_context", sandbox_id=box, action="list")
        await call("code_install_package", sandbox_id=box, package="requests")
        await call("expose_port", sandbox_id=box, port=8000)
        await call("computer", sandbox_id=box, action="cursor_position")
        await call("diff", sandbox_id=box)
        await call("apply", sandbox_id=box)
        await call("list_sandboxes")
        await call("code_destroy_sandbox", sandbox_id=box)


asyncio.run(main())
