#!/usr/bin/env node
// A small agent CLI of the kind that cloche wraps: it does what such tools do all day, in one session.
//
// It keeps its state below ~/.agent, watches the project, edits files atomically, runs shells (with a pty through a
// Python helper), git and tests, talks to a tool server over a unix socket and to a preview server over localhost
// HTTP. Prints one JSON object: step → result. Exit 0 when every step worked.
'use strict';
const cp = require('node:child_process');
const fs = require('node:fs');
const http = require('node:http');
const net = require('node:net');
const os = require('node:os');
const path = require('node:path');
const crypto = require('node:crypto');

const here = __dirname;
const done = {};
const run = (file, args, options = {}) =>
  cp.spawnSync(file, args, { encoding: 'utf8', timeout: 60000, ...options });

function must(result, what) {
  if (result.status !== 0)
    throw new Error(`${what}: status ${result.status} ${result.error || ''} ${result.stderr}`);
  return result.stdout;
}

function writeAtomically(file, text) {
  const temporary = `${file}.${crypto.randomUUID()}.tmp`;
  const fd = fs.openSync(temporary, 'wx', 0o644);
  fs.writeSync(fd, text);
  fs.fsyncSync(fd);
  fs.closeSync(fd);
  fs.renameSync(temporary, file);
}

const steps = {
  state() {
    const dir = path.join(os.homedir(), '.agent', 'sessions');
    fs.mkdirSync(dir, { recursive: true });
    fs.appendFileSync(path.join(dir, `${crypto.randomUUID()}.jsonl`), '{"event":"start"}\n', { mode: 0o600 });
    return fs.readdirSync(dir).length;
  },

  async watch() {
    const seen = new Promise((resolve, reject) => {
      const watcher = fs.watch('.', (_, name) => {
        if (name === 'watched.txt') {
          watcher.close();
          resolve(name);
        }
      });
      setTimeout(() => reject(new Error('the watcher saw nothing')), 20000).unref();
    });
    setTimeout(() => fs.writeFileSync('watched.txt', 'x'), 50);
    return seen;
  },

  edit() {
    fs.mkdirSync('src', { recursive: true });
    writeAtomically('src/add.js', 'module.exports = (a, b) => a - b;\n');
    writeAtomically('src/add.test.js',
      "const test = require('node:test'); const assert = require('node:assert');\n" +
      "test('adds', () => assert.strictEqual(require('./add')(2, 3), 5));\n");
    return fs.readFileSync('src/add.js', 'utf8').length;
  },

  failingTest() {
    const result = run(process.execPath, ['--test', 'src/add.test.js']);
    if (result.status === 0)
      throw new Error('the test of the broken code passed');
    return result.status;
  },

  repair() {
    writeAtomically('src/add.js', fs.readFileSync('src/add.js', 'utf8').replace('a - b', 'a + b'));
    must(run(process.execPath, ['--test', 'src/add.test.js']), 'tests after the repair');
    return 'passed';
  },

  git() {
    const git = (...args) => must(run('git', args), `git ${args.join(' ')}`);
    git('checkout', '-q', '-b', `agent/${Date.now()}`);
    git('add', '-A', 'src');
    git('-c', 'user.name=Agent', '-c', 'user.email=agent@example.org', 'commit', '-qm', 'Repair add');
    return { diff: git('diff', '--stat', 'HEAD~1').includes('add.js'), head: git('log', '-1', '--format=%s').trim() };
  },

  shell() {
    const script = 'set -euo pipefail; for f in src/*.js; do wc -l < "$f"; done | paste -sd+ | bc 2>/dev/null || ' +
      'cat src/*.js | wc -l; [ "$PWD" = "$(pwd -P)" ]; mktemp -d | xargs rmdir; echo "$((6 * 7))"';
    return must(run('bash', ['-lc', script]), 'shell').trim().split('\n').pop();
  },

  async streaming() {
    const child = cp.spawn('sh', ['-c', 'for i in 1 2 3; do echo line $i; sleep 0.05; done; exit 3']);
    const lines = [];
    child.stdout.on('data', (d) => lines.push(...d.toString().trim().split('\n')));
    const code = await new Promise((resolve) => child.on('close', resolve));
    return { lines: lines.length, code };
  },

  async interrupt() {
    const child = cp.spawn('sh', ['-c', 'sleep 1000 & wait'], { detached: true });
    await new Promise((resolve) => child.on('spawn', resolve));
    process.kill(-child.pid, 'SIGTERM');
    return new Promise((resolve) => child.on('close', (_, signal) => resolve(signal)));
  },

  terminal() {
    return must(run('python3', [path.join(here, 'terminal.py')]), 'terminal').trim();
  },

  async toolServer() {
    const socket = path.join(os.tmpdir(), `tools-${process.pid}.sock`);
    const server = net.createServer((c) => c.on('data', (d) => {
      const { id, method } = JSON.parse(d);
      c.end(JSON.stringify({ jsonrpc: '2.0', id, result: { method, tools: ['read', 'write'] } }));
    }));
    await new Promise((resolve, reject) => server.on('error', reject).listen(socket, resolve));
    const answer = await new Promise((resolve, reject) => {
      const client = net.connect(socket, () => client.write('{"jsonrpc":"2.0","id":1,"method":"tools/list"}'));
      let text = '';
      client.on('data', (d) => { text += d; }).on('end', () => resolve(JSON.parse(text))).on('error', reject);
    });
    server.close();
    return answer.result.tools.length;
  },

  async preview() {
    const server = http.createServer((_, response) => response.end('<h1>preview</h1>'));
    await new Promise((resolve, reject) => server.on('error', reject).listen(0, '127.0.0.1', resolve));
    const { port } = server.address();
    const page = await (await fetch(`http://127.0.0.1:${port}/`)).text();
    const byName = await (await fetch(`http://localhost:${port}/`)).text();
    server.closeAllConnections();
    server.close();
    return page === byName ? page : `differs: ${byName}`;
  },

  search() {
    return must(run('grep', ['-rn', 'module.exports', 'src']), 'grep').trim().split('\n').length;
  },
};

(async () => {
  let code = 0;
  for (const [name, step] of Object.entries(steps)) {
    try {
      done[name] = await step();
    } catch (e) {
      done[name] = { error: String(e) };
      code = 1;
    }
  }
  console.log(JSON.stringify(done));
  process.exit(code);
})();
