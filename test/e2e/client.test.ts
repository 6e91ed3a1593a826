/** `svcd/client`: runs the examples of its page as written, between two daemons. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { run, runOk } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const ROOT = join(import.meta.dirname, '../..');
const EXAMPLE = /```js (\w+)\n([^]*?)```/g;

const examples = new Map(
  [...readFileSync(join(ROOT, 'docs/client.md'), 'utf8').matchAll(EXAMPLE)].map(([, name = '', text = '']) => [
    name,
    text,
  ]),
);

/** Creates a folder with the package installed and the examples in it. */
function project(t: TestContext): string {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, 'node_modules'));
  symlinkSync(ROOT, join(directory, 'node_modules/svcd'));
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }');
  for (const [name, text] of examples) writeFileSync(join(directory, `${name}.ts`), text);
  return directory;
}

test('the examples of docs/client.md work as described', async (t) => {
  const directory = project(t);
  await using near = await TestDaemon.start();
  await using far = await TestDaemon.start({ bootstrap: [near.dhtAddress] });
  for (const daemon of [near, far]) await ready(daemon);
  const used = new Set<string>();
  const example = (name: string, daemon: TestDaemon, ...args: string[]) => {
    used.add(name);
    const env = { ...process.env, SVC_API: daemon.api };
    return { file: join(directory, `${name}.ts`), args, env };
  };
  /** Runs an example until it exits and returns its output. */
  const runExample = async (name: string, daemon: TestDaemon, ...args: string[]): Promise<string> => {
    const { file, env } = example(name, daemon, ...args);
    return await runOk(process.execPath, [file, ...args], { env });
  };
  /** Starts an example that keeps running; returns its output lines. */
  const startExample = (name: string, daemon: TestDaemon, ...args: string[]) => {
    const { file, env } = example(name, daemon, ...args);
    const child = spawn(process.execPath, [file, ...args], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    const lines: string[] = [];
    createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
    const line = (pattern: RegExp) =>
      eventually(`${name} prints ${pattern}`, async () =>
        lines.map((one) => pattern.exec(one)?.[1]).find((one) => one),
      );
    return { child, lines, line };
  };

  const served = startExample('serve', far);
  const demo = await served.line(/^Others call it by (aid1\w+)$/);
  assert.match(await served.line(/^Keep this safe and offline: ([0-9a-f]+)$/), /^[0-9a-f]{64,128}$/);
  const me = (await svcOk(near, 'register', '--quiet')).trim();
  await svcOk(near, 'alias', 'add', 'demo', demo);

  await t.test('a second program replaces the first only if it asks to, and restores it afterwards', async () => {
    const second = join(directory, 'second.ts');
    writeFileSync(
      second,
      `import { serve } from 'svcd/client';
const app = () => new Response('second');
const error = await serve(app, { name: 'demo' }).catch((error) => error);
console.log(error.code);
const serving = await serve(app, { name: 'demo', replace: true });
await serving.close();
process.exit();
`,
    );
    const bound = async () => JSON.parse(await svcOk(far, 'agents', 'get', demo, '--json')).service_tcp;
    const before = await bound();
    assert.equal(
      await runOk(process.execPath, [second], { env: { ...process.env, SVC_API: far.api } }),
      'wrong_state\n',
    );
    assert.equal(await bound(), before);
  });

  await t.test("a served program is called by name and receives the caller's AID", async () => {
    assert.equal(await runExample('call', near), `Hello ${me}\n`);
  });

  await t.test('a request to its port that did not come through svcd is refused', async () => {
    const { service_tcp } = JSON.parse(await svcOk(far, 'agents', 'get', demo, '--json'));
    const status = await new Promise((resolve, reject) => {
      const headers = { 'svc-caller-aid': me, 'svc-local-aid': demo };
      request(service_tcp.replace('+proven', ''), { headers }, (answer) => resolve(answer.resume().statusCode))
        .on('error', reject)
        .end();
    });
    assert.equal(status, 403);
  });

  await t.test('local addresses for other programs', async () => {
    const [url = '', card, mcp] = (await runExample('ways', near)).trim().split(' ');
    assert.equal(await (await fetch(url)).text(), `Hello ${me}`);
    assert.deepEqual([card, mcp], [`${url}/.well-known/agent-card.json`, `${url}/mcp`]);
    const db = (await svcOk(far, 'register', '--quiet', '--service-tcp', new URL(near.api).host)).trim();
    await svcOk(near, 'alias', 'add', 'db', db);
    assert.match(await runExample('tunnel', near), /^127\.0\.0\.1:\d+, (lan|direct)\n$/);
  });

  await t.test('a note is delivered until it is handled, and is answered', async () => {
    await runExample('note', near);
    // An example that fails to handle a note leaves it in the mailbox.
    const failing = join(directory, 'failing.ts');
    writeFileSync(
      failing,
      "import { inbox } from 'svcd/client';\nfor await (const { text } of inbox({ as: 'demo' })) throw new Error(text);\n",
    );
    const { code, stderr } = await run(process.execPath, [failing], { env: { ...process.env, SVC_API: far.api } });
    assert.equal(code, 1);
    assert.match(stderr, /Are you there\?/);
    const inbox = startExample('inbox', far);
    assert.equal(await inbox.line(new RegExp(`^(${me}) asks: Are you there\\?$`)), me);
    const [answer] = await eventually('the answer has arrived', async () => {
      const { messages } = JSON.parse(await svcOk(near, 'note', 'list', me, '--json'));
      return messages.length > 0 && messages;
    });
    assert.equal(Buffer.from(answer.body_base64, 'base64').toString(), 'Yes.');
    // A second note reaches the program that is waiting.
    await runExample('note', near);
    await eventually('the second note has arrived', async () => inbox.lines.length === 2);
  });

  await t.test('a group: created, joined by its link, answered in', async () => {
    const link = (await runExample('group', far)).trim();
    assert.match(link, /^svc:/);
    const entries = startExample('entries', near, link);
    assert.equal(await entries.line(new RegExp(`^(${demo}) says: Who is here\\?$`)), demo);
    const [group] = JSON.parse(await svcOk(far, 'group', 'list', '--aid', demo, '--json')).groups;
    await eventually('the response arrived', async () =>
      (await svcOk(far, 'group', 'read', '--aid', demo, group.group_id)).includes('I am.'),
    );
  });

  await t.test('a call in one request through the API, as a browser makes it', async () => {
    const { connect } = await import(join(ROOT, 'dist/client/browser.js'));
    const answer = await connect({ baseUrl: near.api }).agent('demo').fetch('/', { method: 'POST', body: 'x' });
    assert.deepEqual([answer.status, await answer.text()], [200, `Hello ${me}`]);
  });

  await t.test('all operations are available', async () => {
    await svcOk(far, 'publish', 'lang.translate', '--aid', demo, '--name', 'Translator', '-y');
    await eventually('the agent is found', async () => (await runExample('api', near)) === `${demo} Translator\n`);
  });

  await t.test('refusals have a code', async () => {
    await svcOk(far, 'agents', 'acl', 'default', demo, 'deny');
    assert.equal(await runExample('refused', near), 'access_denied\n');
  });

  await t.test('the examples match their types', async () => {
    const config = {
      compilerOptions: {
        strict: true,
        noEmit: true,
        module: 'nodenext',
        target: 'es2024',
        types: ['node'],
        typeRoots: [join(ROOT, 'node_modules/@types')],
      },
      include: ['*.ts'],
    };
    writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(config));
    const { code, stdout } = await run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', directory]);
    assert.deepEqual([code, stdout], [0, '']);
  });
  assert.deepEqual(
    [...examples.keys()].filter((name) => !used.has(name)),
    [],
    'not run',
  );
});
