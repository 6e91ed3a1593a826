/** `svc send` and `svc receive` against a daemon with known responses. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { RANGE_BYTES } from '../../../src/foundation/domain/objects.ts';
import { PrefixHash } from '../../../src/foundation/prefix-hashes.ts';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';
import { sha256, someBytes } from '../../support/object-world.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const { aid } = newIdentity();
const peer = newIdentity().aid;
const ID = '0123456789abcdef';
const PART = `.svc-${ID}.part`;
const BYTES = someBytes(300_000);

interface Sender {
  readonly name?: string;
  readonly bytes?: Buffer;
  /** Responds to the nth content request, counted from 0, from a byte offset. */
  readonly content?: (response: ServerResponse, from: number, turn: number) => void;
}

/** Sends the bytes from an offset, and breaks off after `count` bytes. */
function serve(response: ServerResponse, bytes: Buffer, from: number, count = Number.POSITIVE_INFINITY): void {
  const rest = bytes.subarray(from);
  response.writeHead(from === 0 ? 200 : 206, { 'content-length': rest.length });
  if (count >= rest.length) return void response.end(rest);
  response.write(rest.subarray(0, count), () => setImmediate(() => response.destroy()));
}

function prefixes(bytes: Buffer): Buffer {
  const hash = new PrefixHash();
  hash.update(bytes);
  return hash.list();
}

/** A daemon with one offered file. */
async function offering(t: TestContext, { name = 'plan.pdf', bytes = BYTES, content }: Sender) {
  const offer = {
    ...{ id: ID, direction: 'in', peer, object_id: sha256(bytes), name, size: bytes.length, state: 'open' },
    ...{ message: 'as promised', at: new Date().toISOString(), expires_at: '2999-01-01T00:00:00.000Z' },
  };
  const asked: string[] = [];
  let turn = 0;
  const server = createServer((request, response) => {
    const line = `${request.method} ${request.url?.replace(`/agents/${aid}`, '')}`;
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    asked.push(from === 0 ? line : `${line} from ${from}`);
    if (line.endsWith('/content')) return (content ?? serveAll)(response, from, turn++);
    const first = /hashes\?from=(\d+)$/.exec(line)?.[1];
    if (first !== undefined) return void response.end(prefixes(bytes).subarray(32 * Number(first)));
    const body =
      line === `GET /file-offers/${ID}`
        ? offer
        : line.startsWith('GET /file-offers')
          ? { offers: [offer] }
          : line.startsWith('POST')
            ? offer
            : { aliases: {}, agents: [] };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const serveAll = (response: ServerResponse, from: number): void => serve(response, bytes, from);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => (server.closeAllConnections(), server.close()));
  const folder = temporaryDirectory(t);
  const receive = (options: { input?: string; terminal?: boolean } = {}, ...args: readonly string[]) =>
    runSvc(['receive', '--aid', aid, '--into', folder, ...args], {
      env: { SVC_API: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
      ...options,
    });
  return { folder, receive, asked: (what: string) => asked.filter((line) => line.includes(what)) };
}

test('resumes an interrupted download and tells the sender when it is complete', async (t) => {
  const world = await offering(t, {
    content: (response, from, turn) => serve(response, BYTES, from, turn < 2 ? 100_000 : undefined),
  });
  const { code, stderr } = await world.receive({}, '-y');
  assert.equal(code, 0, stderr);
  assert.ok(readFileSync(join(world.folder, 'plan.pdf')).equals(BYTES));
  assert.deepEqual(readdirSync(world.folder), ['plan.pdf']);
  const froms = world.asked('/content').map((line) => Number(/ from (\d+)$/.exec(line)?.[1] ?? 0));
  assert.equal(froms.length, 3);
  const [first, second = 0, third = 0] = froms;
  assert.ok(first === 0 && second > 0 && third > second && third <= 200_000, froms.join(', '));
  assert.equal(world.asked('/taken').length, 1);
});

test('asks again if no more bytes arrive, and shows why it waits', async (t) => {
  const world = await offering(t, {
    content: (response, from, turn) => {
      if (turn > 0) return serve(response, BYTES, from);
      response.writeHead(200, { 'content-length': BYTES.length }).write(BYTES.subarray(0, 100_000));
    },
  });
  const { code, stderr } = await world.receive({ terminal: true }, '-y');
  assert.equal(code, 0, stderr);
  assert.ok(readFileSync(join(world.folder, 'plan.pdf')).equals(BYTES));
  assert.equal(world.asked('/content').length, 2);
  assert.match(stderr, /waiting: no bytes for 2 s/);
});

test('resumes an old partial file, and restarts if it is another file', async (t) => {
  for (const [part, first] of [
    [BYTES.subarray(0, 1000), ' from 1000'],
    [Buffer.alloc(BYTES.length, 1), ''],
    [Buffer.alloc(BYTES.length + 5, 1), ''],
  ] as const) {
    const world = await offering(t, {});
    writeFileSync(join(world.folder, PART), part);
    assert.equal((await world.receive({}, '-y')).code, 0);
    assert.deepEqual(world.asked('/content'), [`GET /file-offers/${ID}/content${first}`]);
    assert.ok(readFileSync(join(world.folder, 'plan.pdf')).equals(BYTES));
  }
});

test('requests only a wrong range again, and gives up before the rest of the file', async (t) => {
  const bytes = someBytes(RANGE_BYTES + 100_000);
  const wrong = Buffer.from(bytes);
  wrong[RANGE_BYTES + 3] = (wrong[RANGE_BYTES + 3] ?? 0) ^ 1;
  const once = await offering(t, {
    bytes,
    content: (response, from, turn) => serve(response, turn === 0 ? wrong : bytes, from),
  });
  const { code, stderr } = await once.receive({}, '-y');
  assert.equal(code, 0, stderr);
  assert.ok(readFileSync(join(once.folder, 'plan.pdf')).equals(bytes));
  assert.equal(once.asked('/content').length, 2);
  assert.match(once.asked('/content')[1] ?? '', new RegExp(` from ${RANGE_BYTES}$`));
  const always = await offering(t, { bytes, content: (response, from) => serve(response, wrong, from) });
  const failed = await always.receive({}, '-y');
  assert.match(failed.stderr, /do not match the offered file/);
  assert.equal(always.asked('/content').length, 3);
  assert.equal(statSync(join(always.folder, PART)).size, RANGE_BYTES);
});

test('discards bytes that do not match the offer', async (t) => {
  const wrong = Buffer.from(BYTES);
  wrong[17] = (wrong[17] ?? 0) ^ 1;
  for (const [bytes, says] of [
    [wrong, /do not match the offered file/],
    [Buffer.concat([BYTES, BYTES]), /more bytes than it offered/],
  ] as const) {
    const world = await offering(t, { content: (response, from) => serve(response, bytes, from) });
    const { code, stderr } = await world.receive({}, '-y');
    assert.equal(code, 1);
    assert.match(stderr, says);
    assert.deepEqual(
      readdirSync(world.folder).filter((name) => name !== PART),
      [],
    );
    assert.deepEqual(world.asked('/taken'), []);
  }
});

test('never overwrites or escapes the folder, whatever the name', async (t) => {
  const world = await offering(t, { name: '../../.plan.pdf' });
  writeFileSync(join(world.folder, 'plan.pdf'), 'mine');
  mkdirSync(join(world.folder, 'plan (1).pdf'));
  symlinkSync(join(world.folder, 'nowhere'), join(world.folder, 'plan (2).pdf'));
  const { stdout } = await world.receive({}, '-y', '--quiet');
  assert.equal(stdout, `${join(world.folder, 'plan (3).pdf')}\n`);
  assert.equal(readFileSync(join(world.folder, 'plan.pdf'), 'utf8'), 'mine');
  assert.deepEqual(readdirSync(world.folder).sort(), ['plan (1).pdf', 'plan (2).pdf', 'plan (3).pdf', 'plan.pdf']);
  assert.equal(statSync(join(world.folder, 'plan (3).pdf')).mode & 0o111, 0);
});

test('does not follow a link in place of the partial file', async (t) => {
  const world = await offering(t, {});
  const elsewhere = join(temporaryDirectory(t), 'elsewhere');
  writeFileSync(elsewhere, 'mine');
  symlinkSync(elsewhere, join(world.folder, PART));
  assert.equal((await world.receive({}, '-y')).code, 1);
  assert.equal(readFileSync(elsewhere, 'utf8'), 'mine');
});

test('receives an empty file', async (t) => {
  const world = await offering(t, { bytes: Buffer.alloc(0) });
  assert.equal((await world.receive({}, '-y')).code, 0);
  assert.equal(statSync(join(world.folder, 'plan.pdf')).size, 0);
  assert.deepEqual(world.asked('/content'), []);
});

test('asks on a terminal, and requires -y in a script', async (t) => {
  for (const [input, reported] of [
    ['y\n', '/taken'],
    ['d\n', '/decline'],
    ['n\n', null],
    ['\n', null],
  ] as const) {
    const world = await offering(t, {});
    const { code, stderr } = await world.receive({ input, terminal: true });
    assert.equal(code, 0, stderr);
    assert.match(stderr, /plan\.pdf \(293 KiB\) from aid1\S+, \d+ s ago: "as promised"/);
    assert.deepEqual(
      world.asked('POST').map((line) => line.replace(/^.*\//, '/')),
      reported === null ? [] : [reported],
    );
    assert.equal(readdirSync(world.folder).length, reported === '/taken' ? 1 : 0);
  }
  const world = await offering(t, {});
  const { code, stderr } = await world.receive();
  assert.equal(code, 2);
  assert.match(stderr, /there is no terminal to ask about 1 offered file\./);
  assert.deepEqual(world.asked('POST'), []);
});

test('reports a missing folder and an unsendable file before asking', async (t) => {
  const world = await offering(t, {});
  assert.equal((await world.receive({}, '-y', '--into', join(world.folder, 'none'))).code, 5);
  const send = (file: string) => runSvc(['send', file, peer, '--aid', aid], { env: { SVC_API: 'http://127.0.0.1:1' } });
  const folder = await send(world.folder);
  assert.equal(folder.code, 2);
  assert.match(folder.stderr, /is a folder\. Send it as one file: tar czf /);
  const made = await send('/proc/version');
  assert.match(made.stderr, /\/proc\/version is made by the system as it is read, and has no size\. Send a copy: cat /);
  assert.equal((await send(join(world.folder, 'none'))).code, 5);
});

test('stores a file again if its object disappears with another offer', async (t) => {
  const file = join(temporaryDirectory(t), 'plan.pdf');
  writeFileSync(file, '{}');
  const object_id = sha256(Buffer.from('{}'));
  let offers = 0;
  const daemon = await AnsweringDaemon.start(t, (line) => {
    if (line.startsWith(`GET /agents/${aid}/cas`)) return [200, { objects: [{ object_id, size: 2 }] }];
    if (line.endsWith('/content')) return [200, {}];
    if (line.startsWith('POST') && offers++ === 0) return [404, { error: 'not_found', message: 'Gone.' }];
    if (line.startsWith('POST')) return [200, { id: ID, delivered: true }];
    if (line.includes('/file-offers/')) return [200, { id: ID, peer, name: 'plan.pdf', size: 2, state: 'open' }];
    return [200, { files_root: '', aliases: {}, agents: [] }];
  });
  const args = ['send', file, peer, '--aid', aid, '--no-wait', '--quiet'];
  const { code, stdout, stderr } = await runSvc(args, { env: { SVC_API: daemon.api } });
  assert.deepEqual([code, stdout], [0, `${ID}\n`], stderr);
  assert.equal(daemon.asked.filter((line) => line.startsWith('POST')).length, 3);
});

test('a file is offered with its size before its bytes are sent, or by its hash if the agent has it', async (t) => {
  const file = join(temporaryDirectory(t), 'film.mp4');
  writeFileSync(file, '{}');
  const object_id = sha256(Buffer.from('{}'));
  for (const [size, stores] of [
    [3, true],
    [2, false],
  ] as const) {
    const daemon = await AnsweringDaemon.start(t, (line) => {
      if (line.startsWith(`GET /agents/${aid}/cas`)) return [200, { objects: [{ object_id, size }] }];
      if (line.endsWith('/content')) return [200, {}];
      if (line.startsWith('POST')) return [200, { id: ID, delivered: true }];
      if (line.includes('/file-offers/')) return [200, { id: ID, peer, name: 'film.mp4', size: 2, state: 'open' }];
      return [200, { files_root: '', aliases: {}, agents: [] }];
    });
    const args = ['send', file, peer, '--aid', aid, '--no-wait'];
    const { code, stderr } = await runSvc(args, { env: { SVC_API: daemon.api }, terminal: true });
    assert.equal(code, 0, stderr);
    const posts = daemon.asked.filter((line) => line.startsWith('POST'));
    const offer = `POST /agents/${aid}/file-offers`;
    assert.deepEqual(posts, stores ? [offer, `${offer}/${ID}/content`] : [offer]);
    assert.match(stderr, stores ? /storing {2}film\.mp4/ : /hashing {2}film\.mp4/);
    assert.equal(/hashing/.test(stderr), !stores);
  }
});

test('the cause is shown if a file cannot be sent, and the state if its offer ends meanwhile', async (t) => {
  const file = join(temporaryDirectory(t), 'film.mp4');
  writeFileSync(file, '{}');
  const problem = 'The file changed while it was read. Try again.';
  const send = async (upload: number, ended: object) => {
    const daemon = await AnsweringDaemon.start(t, (line) => {
      if (line.startsWith(`GET /agents/${aid}/cas`)) return [200, { objects: [] }];
      if (line.endsWith('/content')) return [upload, { error: 'wrong_state', message: problem }];
      if (line.startsWith('POST')) return [200, { id: ID, delivered: true }];
      if (line.includes('/file-offers/')) return [200, { id: ID, peer, name: 'film.mp4', size: 2, ...ended }];
      return [200, { files_root: '', aliases: {}, agents: [] }];
    });
    return await runSvc(['send', file, peer, '--aid', aid], { env: { SVC_API: daemon.api } });
  };
  const changed = await send(409, { state: 'withdrawn', problem });
  assert.equal(changed.code, 1);
  assert.match(changed.stderr, /The file changed while it was read/);
  const declined = await send(409, { state: 'declined' });
  assert.match(declined.stderr, /film\.mp4 was not received: the offer is declined\./);
  const hashed = await send(200, { state: 'withdrawn', problem });
  assert.match(hashed.stderr, /film\.mp4 was not received: The file changed while it was read/);
});

test('shows how far svcd has hashed a file in files_root', async (t) => {
  const root = temporaryDirectory(t);
  writeFileSync(join(root, 'film.mp4'), '{}');
  const listed = Promise.withResolvers<void>();
  const daemon = await AnsweringDaemon.start(t, async (line) => {
    if (line.startsWith(`GET /agents/${aid}/cas`)) {
      setImmediate(listed.resolve);
      return [200, { objects: [], hashing: [{ path: 'film.mp4', size: 1000, hashed_bytes: 450 }] }];
    }
    if (!line.startsWith('POST')) return [200, { files_root: root, aliases: {}, agents: [] }];
    await listed.promise;
    return [200, { object_id: sha256('{}'), size: 2, name: 'film.mp4', url: '' }];
  });
  const args = ['object', 'add', join(root, 'film.mp4'), '--aid', aid];
  const { code, stderr } = await runSvc(args, { env: { SVC_API: daemon.api }, terminal: true });
  assert.equal(code, 0, stderr);
  assert.match(stderr, /hashing {2}film\.mp4 {2}45 %/);
});
