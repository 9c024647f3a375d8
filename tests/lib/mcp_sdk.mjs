// The official TypeScript SDK drives every tool: `node mcp_sdk.mjs stdio PROGRAM WORD...` or `http URL TOKEN`, from a
// folder with its node_modules. One line of JSON per call on stdout.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const require = createRequire(process.cwd() + '/');
const load = (path) => import(pathToFileURL(require.resolve('@modelcontextprotocol/sdk/' + path)));
const { Client } = await load('client/index.js');
const [how, ...words] = process.argv.slice(2);
let transport;
if (how === 'stdio') {
  const { StdioClientTransport } = await load('client/stdio.js');
  transport = new StdioClientTransport({ command: words[0], args: words.slice(1), env: process.env, stderr: 'inherit' });
} else {
  const { StreamableHTTPClientTransport } = await load('client/streamableHttp.js');
  transport = new StreamableHTTPClientTransport(new URL(words[0]), {
    requestInit: { headers: { Authorization: `Bearer ${words[1]}` } } });
}
const client = new Client({ name: 'test', version: '1' });
await client.connect(transport);
const { tools } = await client.listTools();
console.log(JSON.stringify(['tools', tools.map((t) => t.name)]));
let box;
const call = async (name, args, options) => {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  console.log(JSON.stringify([name, result.structuredContent]));
  return result.structuredContent;
};
box = (await call('create_sandbox', { name: 'sdk' })).sandbox_id;
let said = '';
// this SDK drops a notification that it reads together with the result: the command ends when it was heard
const heard = (p) => {
  said += p.message;
  client.callTool({ name: 'code_write_file', arguments: { sandbox_id: box, file_path: 'heard', content: '' } });
};
await call('code_execute', { language: 'python', sandbox_id: box, code: `
import os, time
print(6 * 7, flush=True)
while not os.path.exists('heard'):
    time.sleep(0.01)
os.remove('heard')` }, { onprogress: heard });
console.log(JSON.stringify(['progress', said]));
await call('code_write_file', { sandbox_id: box, file_path: 'a.txt', content: 'hello' });
await call('code_read_file', { sandbox_id: box, file_path: 'a.txt' });
await call('code_list_files', { sandbox_id: box });
await call('code_context', { sandbox_id: box, action: 'list' });
await call('code_install_package', { sandbox_id: box, package: 'requests' });
await call('expose_port', { sandbox_id: box, port: 8000 });
await call('computer', { sandbox_id: box, action: 'cursor_position' });
await call('diff', { sandbox_id: box });
await call('apply', { sandbox_id: box });
await call('list_sandboxes', {});
const stop = new AbortController();
await client.callTool({ name: 'code_execute', arguments: { language: 'shell', code: 'echo x; sleep 1234567', sandbox_id: box, timeout: 3000 } },
  undefined, { signal: stop.signal, onprogress: () => stop.abort() }).catch((e) => console.log(JSON.stringify(['aborted', stop.signal.aborted])));
for (;;) {
  const { structuredContent: seen } = await client.callTool({ name: 'code_execute', arguments: { language: 'shell', sandbox_id: box,
    code: 'cat /proc/[0-9]*/cmdline' } });
  if (!seen.stdout.includes('1234567')) break;
}
await call('code_destroy_sandbox', { sandbox_id: box });
await client.close();
