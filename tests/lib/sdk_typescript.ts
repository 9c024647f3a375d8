// What tests/conformance/test_sdk_typescript.py has done: node sdk_typescript.js NAME [WORD...]; whoever fails throws.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import * as fs from "node:fs";
import * as net from "node:net";
import * as os from "node:os";
import * as path from "node:path";
import { Readable, type Duplex } from "node:stream";
import { inspect } from "node:util";

import * as cloche from "cloche";

const client = (): cloche.Client => new cloche.Client();
const word = (n: number): string => process.argv[n + 3] ?? "";

async function until(condition: () => Promise<boolean>): Promise<void> {
  for (let i = 0; !(await condition()); i++) {
    assert.ok(i < 3000, "it never was");
    await new Promise((go) => setTimeout(go, 10));
  }
}

async function texts(stream: AsyncIterable<cloche.Output | cloche.Shown | cloche.Collected | cloche.Gap>): Promise<string> {
  let out = "";
  for await (const one of stream) if (one.type === "output") out += one.data;
  return out;
}

async function refused<E extends Error>(kind: new (...words: never[]) => E, what: () => Promise<unknown> | unknown): Promise<E> {
  try {
    await what();
  } catch (error) {
    assert.ok(error instanceof kind, inspect(error));
    return error;
  }
  return assert.fail(`no ${kind.name}`);
}

const tests: Record<string, () => Promise<void>> = {
  async life() {
    let id = "";
    {
      await using box = await cloche.Sandbox.create({ name: "life", labels: { a: "ü" }, policy: { limits: { memory: "256m" } } });
      id = box.id;
      assert.equal(box.info.state, "ready");
      const all: string[] = [];
      for await (const one of client().sandboxes.list()) all.push(one.id);
      assert.deepEqual(all, [id]);
      assert.equal((await box.run("echo $((6 * 7))")).check().stdout, "42\n");
      await box.pause();
      const error = await refused(cloche.ConflictError, () => box.run("true"));
      assert.equal(error.code, "sandbox.paused");
      await box.resume();
      assert.equal((await box.usage())?.id, id);
      assert.deepEqual((await box.policy.get()).policy, { limits: { memory: "256m" } });
      await refused(cloche.ConflictError, () => box.policy.patch({ limits: { time: "9s" } }, "0".repeat(32)));
      await box.policy.patch({ limits: { time: "9s" } }, (await box.policy.get()).revision);
      const { key } = await box.newKey();
      assert.equal((await (await new cloche.Client({ token: key }).sandboxes.get(id)).run("echo in")).stdout, "in\n");
      assert.ok(!inspect(box).includes(key) && !inspect(new cloche.Client({ token: key })).includes(key));
      {
        await using again = await cloche.Sandbox.connect("life");
        assert.equal(again.id, id);
      }
      assert.equal((await box.refresh()).state, "ready");
      await box.files.write("f", "of the first");
      const forks = await box.fork(2, "twin");
      assert.deepEqual(await Promise.all(forks.map((one) => one.files.readText("f"))), ["of the first", "of the first"]);
      const kept = await box.snapshot("kept");
      assert.deepEqual((await client().templates.list()).map((one) => one.id), [kept.id]);
      await client().templates.delete("kept");
      for (const one of forks) await one.delete();
      const exposed = await box.ports.expose(8000, { name: "site", ttl: 60 });
      assert.ok(exposed.path?.startsWith("/preview/"));
      await box.ports.delete(exposed.id);
      assert.deepEqual([await box.ports.list(), await box.attach.list()], [[], []]);
      assert.ok((await box.transcript.addMessage("user", { a: 1 })) > 0);
    }
    assert.equal((await client().sandboxes.info(id)).state, "stopped");
    await client().sandboxes.delete(id);
    await refused(cloche.SandboxNotFoundError, () => client().sandboxes.get(id));
  },

  async commands() {
    await using box = await cloche.Sandbox.create();
    const done = await box.run(["sh", "-c", 'echo "$0 $A"; echo e >&2; exit 3', "ü"], { env: { A: "x y" }, cwd: "/tmp" });
    assert.deepEqual([done.exit_code, done.stdout, done.stderr, done.ok], [3, "ü x y\n", "e\n", false]);
    await refused(cloche.CommandError, () => done.check());
    assert.deepEqual(Buffer.from((await box.run(["printf", "\\377\\000"], { encoding: "base64" })).stdoutBytes()), Buffer.from([255, 0]));
    assert.equal((await box.run("cat", { stdin: "in\n" })).stdout, "in\n");
    assert.equal((await box.run("sleep 60", { timeout_ms: 100 })).timed_out, true);
    const stream = await box.stream("echo one; until [ -e go ]; do sleep 0.01; done; cat go; exit 5");
    const first = await stream.next();
    assert.deepEqual(first.value, { type: "output", stream: "stdout", data: "one\n", encoding: "text" });
    await box.files.write("go", "two\n");
    assert.ok((await texts(stream)).endsWith("two\n"));
    assert.equal(stream.result?.exit_code, 5);
    for await (const one of await box.stream("echo begun; sleep 1000")) {
      assert.equal(one.type, "output");
      break;                                    // ends it
    }
    const stop = new AbortController();
    const waits = refused(Error, () => box.run("sleep 1000", { signal: stop.signal }));
    await until(async () => (await box.usage())?.operations === 1);
    stop.abort();
    assert.equal((await waits).name, "AbortError");
    await refused(cloche.TimedOut, () => box.run("sleep 1000", { timeout: 0.2 }));
    await refused(cloche.TimedOut, async () => texts(await box.stream("while :; do echo x; sleep 0.05; done", { timeout: 0.5 })));
    await until(async () => (await box.usage())?.operations === 0);
  },

  async background() {
    await using box = await cloche.Sandbox.create();
    const command = await box.spawn("while read l; do echo got $l; done; exit 7", { stdin: true });
    assert.deepEqual((await box.commands.list()).map((one) => one.exec_id), [command.id]);
    assert.deepEqual([await command.write("ä\n"), await command.write(Buffer.from("b\n"), { end: true })], [3, 2]);
    assert.equal((await command.wait()).exit_code, 7);
    const stream = command.stream();
    assert.equal(await texts(stream), "got ä\ngot b\n");
    assert.equal(await texts(command.stream({ after: stream.position ?? "" })), "");
    const sleeper = await box.commands.get((await box.spawn("sleep 1000")).id);
    await sleeper.signal("TERM");
    assert.equal((await sleeper.wait()).signal, 15);
    assert.equal((await (await box.spawn("sleep 1000")).delete()).state, "ended");
    assert.match(await texts((await box.spawn("stty size", { pty: { rows: 11, cols: 22 } })).stream()), /11 22/);
  },

  async undone() {
    const far = new cloche.Client({ url: word(0), retries: 0 });
    await refused(cloche.ConnectionLost, () => cloche.Sandbox.create({ name: "lost" }, far));
    const states = async (): Promise<string[]> => (await client().sandboxes.page({ state: "all" })).sandboxes.map((one) => one.state);
    assert.deepEqual(await states(), ["stopped"]);
    const stop = new AbortController();
    const waits = refused(Error, () => cloche.Sandbox.create({ signal: stop.signal }, new cloche.Client({ url: word(1) })));
    await until(async () => (await states())[1] === "ready");
    stop.abort();
    assert.equal((await waits).name, "AbortError");
    assert.deepEqual(await states(), ["stopped", "stopped"]);
  },

  // without a daemon
  async local() {
    const token = `cloche_operator_${"5".repeat(64)}`;
    const heard: string[] = [];
    let says = (answer: Duplex): unknown => answer.end("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
    const sockets: net.Socket[] = [];
    const server = net.createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => undefined);
      socket.once("data", (data) => {
        heard.push(String(data));
        says(socket);
      });
    });
    await new Promise<void>((go) => server.listen(0, "127.0.0.1", go));
    const at = `127.0.0.1:${(server.address() as net.AddressInfo).port}`;
    try {
      process.env["CLOCHE_TOKEN"] = token;                              // it is for the daemon of the environment
      await new cloche.Client({ url: `http://${at}` }).version();
      process.env["CLOCHE_URL"] = `http://${at}`;
      await new cloche.Client().version();
      assert.deepEqual(heard.map((one) => one.includes(token)), [false, true]);
      delete process.env["CLOCHE_TOKEN"];
      for (const timeout of [Infinity, 2 ** 32]) assert.deepEqual(await new cloche.Client({ timeout }).version(), {});
      for (const timeout of [NaN, -1]) await refused(RangeError, () => new cloche.Client({ timeout }));
      await refused(RangeError, () => new cloche.Client().execute("shell", "", { timeout: NaN }));
      await refused(cloche.ConnectionFailed, () => new cloche.Client({ url: `https://${at}` }).version());    // no TLS there: nothing was asked
      const box = await cloche.Sandbox.connect("one", new cloche.Client()).catch(() => undefined);
      assert.equal(box, undefined);                                     // it is no sandbox
      const json = (text: string): void => {
        says = (answer) => answer.end(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`);
      };
      json('{"id":"one","name":"one","state":"ready"}');
      const one = await cloche.Sandbox.connect("one");
      await refused(cloche.DeniedError, () => one.files.upload("/nonexistent/file", "../x"));     // and the file was not opened
      assert.match((await refused(Error, () => one.files.upload("/nonexistent/file", "x"))).message, /ENOENT/);
      json('{"exec_id":"two"}');
      const command = await one.commands.get("two");
      const begun = new Promise<Duplex>((go) => (says = go));
      const stream = command.stream();
      const next = stream.next();
      const answer = await begun;
      stream.close();                                                   // while it connects
      answer.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
      assert.equal((await next).done, true);
    } finally {
      for (const socket of sockets) socket.destroy();
      server.close();
    }
  },

  async relay() {
    const far = await cloche.Sandbox.connect(word(1), new cloche.Client({ url: word(0), retries: 5 }));
    assert.equal(await texts((await far.commands.get(word(2))).stream()), "1\n2\n3\n4\n");
  },

  async contexts() {
    await using box = await cloche.Sandbox.create();
    await using context = await box.contexts.create("python");
    await context.execute("x = 40");
    const done = await context.execute("print('ü')\nx + 2");
    assert.deepEqual([done.stdout, done.results, done.error, done.ok], ["ü\n", [{ main: true, text: "42" }], null, true]);
    assert.equal((await context.execute("1 / 0")).error?.name, "ZeroDivisionError");
    const stream = await context.stream("print('on', flush=True)\nwhile True: pass");
    assert.equal((await stream.next()).done, false);
    await context.interrupt();
    const interrupted = await stream.wait();
    assert.deepEqual([interrupted.error?.name, interrupted.results, interrupted.results_truncated], ["KeyboardInterrupt", [], false]);
    await context.restart();
    assert.equal((await context.execute("x")).error?.name, "NameError");
    assert.equal((await (await box.contexts.get(context.id)).refresh()).state, "idle");
    assert.equal((await box.contexts.list()).length, 1);
  },

  async files() {
    await using box = await cloche.Sandbox.create();
    assert.equal(await box.files.write("a/ü .txt", "hällo", { parents: true }), 6);
    assert.equal(await box.files.readText("a/ü .txt"), "hällo");
    assert.equal(Buffer.from(await box.files.read("/workspace/a/ü .txt", { offset: 1, length: 2 })).toString(), "ä");
    const binary = Buffer.from([...Array(256).keys()]);
    await box.files.write("bin", binary, { mode: 0o700 });
    assert.deepEqual(Buffer.from(await box.files.read("bin")), binary);
    assert.equal((await box.files.stat("bin")).mode, "0700");
    assert.equal(await box.files.write("pieces", [Buffer.from("a"), Buffer.alloc(0), Buffer.from("b")]), 2);
    assert.equal(await box.files.write("readable", Readable.from([Buffer.from("xyz")])), 3);
    assert.equal((await refused(cloche.ConflictError, () => box.files.write("bin", "", { exclusive: true }))).code, "files.exists");
    await box.files.mkdir("d/e", { parents: true });
    assert.deepEqual((await box.files.list()).map((one) => one.name).sort(), ["a", "bin", "d", "pieces", "readable"]);
    await box.files.delete("d", { recursive: true });
    for (const outside of ["../x", "a/../../x", "/etc/../workspace/bin"])
      assert.equal((await refused(cloche.DeniedError, () => box.files.read(outside))).code, "files.path-escapes");
    await refused(cloche.NoSuchFileError, () => box.files.read("none"));
    assert.deepEqual([await box.files.exists("bin"), await box.files.exists("none"), await box.files.size("bin")], [true, false, 256]);
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "sdk-"));
    try {
      const large = Buffer.alloc(24 << 20, randomBytes(1 << 20));
      fs.writeFileSync(path.join(folder, "large"), large);
      assert.equal(await box.files.upload(path.join(folder, "large"), "large"), large.length);
      assert.equal(await box.files.download("large", path.join(folder, "back")), large.length);
      assert.ok(fs.readFileSync(path.join(folder, "back")).equals(large));
      assert.ok(Buffer.from(await box.files.read("large")).equals(large));
      await refused(cloche.AnswerTooLong, () => box.files.read("large", { limit: 1000 }));
      await refused(cloche.AnswerTooLong, () => box.files.download("large", path.join(folder, "other"), { limit: 1 << 20 }));
      assert.deepEqual(fs.readdirSync(folder).sort(), ["back", "large"]);
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
    await using watch = await box.files.watch(undefined, { recursive: true });
    assert.equal((await watch.next()).value?.type, "watching");
    await box.files.write("w", "1");
    assert.deepEqual((await watch.next()).value, { type: "created", path: "w", directory: false });
  },

  async execute() {
    const done = await cloche.execute("python", "import sys; print(sys.stdin.read()); open('o', 'wb').write(b'\\xff')", { stdin: "ü", collect: ["*"] });
    assert.equal(done.stdout, "ü\n");
    assert.deepEqual(done.files?.map((file) => [file.path, [...cloche.contentsOf(file)]]), [["o", [255]]]);
    const stream = await client().executeStream("shell", "echo a; echo b > c", { collect: ["c"] });
    const kinds: string[] = [];
    for await (const one of stream) kinds.push(one.type);
    assert.deepEqual([kinds, stream.result?.ok], [["output", "file"], true]);
    assert.equal((await refused(cloche.InvalidError, () => cloche.execute("cobol", ""))).code, "execute.request");
  },

  async many() {
    await using one = await cloche.Sandbox.create();
    await using two = await cloche.Sandbox.create();
    const said = await Promise.all([...Array(100).keys()].map((i) => (i % 2 ? one : two).run(["echo", String(i)])));
    assert.deepEqual(said.map((done) => done.stdout), [...Array(100).keys()].map((i) => `${i}\n`));
    const pages: string[] = [];
    for await (const box of client().sandboxes.list({ limit: 1 })) pages.push(box.id);
    assert.deepEqual(pages.sort(), [one.id, two.id].sort());
  },

  async errors() {
    const none = await refused(cloche.SandboxNotFoundError, () => client().sandboxes.get("none"));
    assert.deepEqual([none.status, none.code, none.name], [404, "sandbox.not-found", "SandboxNotFoundError"]);
    assert.ok(none.message.includes('"none"') && none.detail && none.requestId);
    assert.match((await refused(cloche.InvalidError, () => client().sandboxes.create({ policy: { limits: { memory: "a lot" } } }))).code, /^policy\./);
    for (const name of ["", ".", ".."]) await refused(TypeError, () => client().sandboxes.get(name));
    await refused(cloche.ConnectionFailed, () => new cloche.Client({ socket: "/nonexistent/nobody.sock" }).health());
    await refused(cloche.ConnectionFailed, () => new cloche.Client({ url: "http://127.0.0.1:1" }).health());
    const token = `cloche_operator_${"5".repeat(64)}`;
    for (const url of ["http://192.0.2.1:7700", "http://example.org"]) await refused(TypeError, () => new cloche.Client({ url, token }));
    assert.ok(new cloche.Client({ url: "https://example.org", token }) && new cloche.Client({ url: "http://192.0.2.1", token, insecure: true }));
    for (const bad of ["a\r\nX-Sandbox-Key: b", "ü", "a b"]) await refused(TypeError, () => new cloche.Client({ token: bad }));
    for (const url of ["ftp://x", "http://user:secret@x", "http://x/path", "nothing"]) await refused(TypeError, () => new cloche.Client({ url }));
  },

  async tcp() {
    const token = `cloche_operator_${"5".repeat(64)}`;
    const unknown = await refused(cloche.AuthError, () => new cloche.Client({ url: word(0), token }).version());
    assert.ok(unknown.code === "auth.unknown" && !inspect(unknown).includes(token));
    assert.equal((await refused(cloche.AuthError, () => new cloche.Client({ url: word(0) }).version())).code, "auth.required");
    const owner = client();
    const made = await owner.tokens.create("agent", { name: "one", expires: 3600 });
    const agent = new cloche.Client({ url: word(0), token: made.token ?? "" });
    const box = await agent.sandboxes.create();
    assert.equal((await box.run("echo mine")).stdout, "mine\n");
    assert.equal((await refused(cloche.DeniedError, () => agent.tokens.list())).code, "auth.role");
    const stream = await box.stream("echo begun; sleep 1000");
    assert.equal((await stream.next()).done, false);
    await owner.tokens.delete(made.id);
    await refused(cloche.ClocheError, () => stream.wait());
    await refused(cloche.AuthError, () => box.refresh());
    assert.equal(await owner.killAll(), 1);
    assert.ok((await owner.audit.size()) > 0 && (await owner.events.list()).length > 0 && (await owner.metrics()).includes("cloche_"));
    assert.deepEqual([await owner.ready(), (await owner.version())["api"]], [{ status: "ready" }, ["v1"]]);
  },

  async approvals() {
    const owner = client();
    const agent = new cloche.Client({ token: (await owner.tokens.create("agent")).token ?? "" });
    await using box = await agent.sandboxes.create();
    await using asked = await owner.approvals.stream();
    const pending = async (): Promise<cloche.Approval> => {
      for (;;) {
        const { value, done } = await asked.next();
        assert.ok(!done);
        if (value.state === "pending") return value;
      }
    };
    const yes = box.run("rm -rf /workspace/x; echo done");
    await owner.approvals.approve((await pending()).id);
    assert.equal((await yes).stdout, "done\n");
    const no = refused(cloche.ApprovalDeniedError, () => box.run("rm -rf /workspace/x; echo done"));
    await owner.approvals.deny((await pending()).id, { reason: "because" });
    assert.match(`${(await no).message} ${(await no).detail}`, /because/);
    const hasty = await cloche.Sandbox.connect(box.id, new cloche.Client({ token: word(0) || undefined, respondAsync: true }));
    assert.equal((await hasty.run("echo owner")).stdout, "owner\n");
    assert.deepEqual(await owner.grants.list(), []);
  },

  async hostile() {
    const [url = "", kind = "", token = "", events = ""] = [word(0), word(1), word(2), word(3)];
    const far = new cloche.Client({ url, token, retries: 0, timeout: 2, maxAnswer: 1 << 20 });
    const expected = Object.entries(cloche).find(([name]) => name === kind)?.[1] as new () => Error;
    const error = await refused(expected, async () => (events ? texts(await far.executeStream("shell", "true")) : far.version()));
    assert.ok(!inspect(error).includes(token));
  },
};

const run = tests[process.argv[2] ?? ""];
assert.ok(run, "no such test");
await run();
console.log("passed");
