import assert from 'node:assert/strict';
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { PartFile } from '../../../src/capabilities/objects/file-sink.ts';
import { MAX_DOWNLOADS, MIN_FREE_BYTES, ObjectGetter } from '../../../src/capabilities/objects/object-getter.ts';
import { objectResource } from '../../../src/capabilities/objects/remote-objects.ts';
import { Transfer } from '../../../src/capabilities/objects/transfer.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { TRANSFER_SILENT_MS } from '../../../src/foundation/domain/objects.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { eventually } from '../../support/eventually.ts';
import { withCode } from '../../support/link-world.ts';
import { type ObjectNode, ObjectWorld, sha256, someBytes } from '../../support/object-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const BYTES = someBytes(3_000_000);
const ID = sha256(BYTES);
const signal = new AbortController().signal;

function get(node: ObjectNode, more: object = {}) {
  return node.getter.get({ aid: node.aid, objectId: ID, register: false, force: false, signal, ...more });
}

/** A holder with a given request handler. */
async function holder(world: ObjectWorld, t: TestContext, listener: RequestListener): Promise<Aid> {
  const node = await world.links.node();
  const server = createServer(listener);
  node.links.accept('object', (link) => {
    t.after(() => link.destroy());
    server.emit('connection', link);
  });
  return node.host().aid;
}

const HEADERS = { etag: `"${ID}"`, 'accept-ranges': 'bytes' };

/** Resolves when the file of a download has this many bytes. */
async function arrived(part: string, bytes: number): Promise<void> {
  while (!existsSync(part) || statSync(part).size < bytes) await new Promise((resolve) => setImmediate(resolve));
}

/** Sends `bytes` as the object, and disconnects after the first `upTo`. */
function serving(bytes: Buffer, upTo = bytes.length): RequestListener {
  return (request, response) => {
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const part = start > 0 ? { 'content-range': `bytes ${start}-${bytes.length - 1}/${bytes.length}` } : {};
    response.writeHead(start > 0 ? 206 : 200, { ...HEADERS, 'content-length': bytes.length - start, ...part });
    const sent = bytes.subarray(start, upTo);
    if (upTo === bytes.length) response.end(sent);
    else response.write(sent, () => setImmediate(() => response.destroy()));
  };
}

test('a download interrupted between linking and unlinking never changes the finished file', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  await far.objects.put(far.aid, { bytes: BYTES });
  const { path } = await get(near, { hint: far.aid, register: true });
  linkSync(path, join(near.filesRoot, '.svcd', 'parts', ID));
  writeFileSync(path, 'changed by its owner');
  const again = await get(near, { hint: far.aid, dest: 'again' });
  assert.ok(readFileSync(again.path).equals(BYTES));
  assert.equal(readFileSync(path, 'utf8'), 'changed by its owner');
});

test('an object is downloaded completely, under its name', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  await far.objects.put(far.aid, { bytes: BYTES }, 'big.bin');
  const got = await get(near, { hint: far.aid, register: true });
  const path = join(near.filesRoot, 'downloads', ID);
  assert.deepEqual(got, { objectId: ID, size: BYTES.length, path, from: far.aid, registered: true });
  assert.ok(readFileSync(path).equals(BYTES));
  assert.equal(near.objects.stat(near.aid, ID)?.name, 'big.bin');
  assert.deepEqual(readdirSync(join(near.filesRoot, '.svcd', 'parts')), []);
  assert.deepEqual(near.repository.holders(ID), [far.aid]);
  const again = await get(near);
  assert.equal(again.from, null, 'it is already there');
});

test('without a known holder, and with a used name, no file is changed', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  await assert.rejects(get(near), withCode('not_found'));
  await assert.rejects(get(near, { hint: far.aid }), withCode('not_found'));
  await far.objects.put(far.aid, { bytes: BYTES });
  writeFileSync(join(near.filesRoot, 'mine'), 'mine');
  await assert.rejects(get(near, { hint: far.aid, dest: 'mine' }), withCode('wrong_state'));
  assert.equal(readFileSync(join(near.filesRoot, 'mine'), 'utf8'), 'mine');
  await assert.rejects(get(near, { hint: far.aid, dest: '../mine' }), withCode('invalid_request'));
  await get(near, { hint: far.aid, dest: 'mine', force: true });
  assert.ok(readFileSync(join(near.filesRoot, 'mine')).equals(BYTES));
});

test("the agent's own object is copied without requests", async (t) => {
  const world = new ObjectWorld(t);
  const near = await world.node();
  await near.objects.put(near.aid, { bytes: BYTES });
  const got = await get(near, { dest: 'copy' });
  assert.equal(got.from, near.aid);
  assert.ok(readFileSync(join(near.filesRoot, 'copy')).equals(BYTES));
});

test('an interrupted transfer resumes at its position', async (t) => {
  const world = new ObjectWorld(t);
  const near = await world.node();
  const part = join(near.filesRoot, '.svcd', 'parts', ID);
  const asked: number[] = [];
  // Disconnects twice, each time after another MiB was delivered. Bytes in flight are lost.
  const flaky = await holder(world, t, (request, response) => {
    const offset = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    asked.push(offset);
    const arrives = asked.length * 1_048_576;
    if (asked.length > 2) return serving(BYTES)(request, response);
    response.writeHead(offset > 0 ? 206 : 200, {
      ...HEADERS,
      'content-length': BYTES.length - offset,
      ...(offset > 0 ? { 'content-range': `bytes ${offset}-${BYTES.length - 1}/${BYTES.length}` } : {}),
    });
    response.write(BYTES.subarray(offset, arrives + 300_000));
    void arrived(part, arrives).then(() => response.destroy());
  });
  const got = await get(near, { hint: flaky });
  assert.ok(readFileSync(got.path).equals(BYTES));
  const [first, second, third, ...more] = asked;
  assert.deepEqual([first, more], [0, []]);
  assert.ok(second !== undefined && second >= 1_048_576 && second <= 1_348_576, `resumed at ${second}`);
  assert.ok(third !== undefined && third >= 2_097_152 && third <= 2_397_152, `resumed at ${third}`);
});

test('an agent gets its own object, also with force if no other agent has it', async (t) => {
  const world = new ObjectWorld(t);
  const [near, gone] = [await world.node(), await world.node()];
  await near.objects.put(near.aid, { bytes: BYTES });
  for (const more of [{}, { dest: 'again', force: true }, { dest: 'hinted', force: true, hint: gone.aid }]) {
    const { path, from } = await get(near, more);
    assert.equal(from, near.aid);
    assert.equal(sha256(readFileSync(path)), ID);
  }
});

test('a failed download without any bytes leaves no file', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  await assert.rejects(get(near), withCode('not_found'));
  await assert.rejects(get(near, { hint: far.aid, dest: 'folder/file' }), withCode('not_found'));
  const files = readdirSync(near.filesRoot, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  assert.deepEqual(
    files.map(({ name }) => name),
    [],
  );
});

test('a canceled download is continued later from another holder', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  await far.objects.put(far.aid, { bytes: BYTES });
  const stop = new AbortController();
  let begun = (): void => {};
  const half = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const slow = await holder(world, t, (_request, response) => {
    response.writeHead(200, { ...HEADERS, 'content-length': BYTES.length });
    response.write(BYTES.subarray(0, 2_500_000));
    begun();
  });
  const first = get(near, { hint: slow, signal: stop.signal });
  await half;
  const part = join(near.filesRoot, '.svcd', 'parts', ID);
  await arrived(part, 1_048_576);
  stop.abort();
  await assert.rejects(first, withCode('cancelled'));
  assert.ok(!existsSync(join(near.filesRoot, 'downloads', ID)), 'no file has its name');
  const got = await get(near, { hint: far.aid });
  assert.ok(readFileSync(got.path).equals(BYTES));
});

test('a folder that becomes a link during the download leads nowhere else', async (t) => {
  const world = new ObjectWorld(t);
  const near = await world.node();
  const outside = join(near.directory, 'outside');
  mkdirSync(outside);
  for (const force of [false, true]) {
    const folder = join(near.filesRoot, `folder-${force}`);
    const swaps = await holder(world, t, (request, response) => {
      renameSync(folder, `${folder}.old`);
      symlinkSync(outside, folder);
      serving(BYTES)(request, response);
    });
    const dest = `folder-${force}/file`;
    await assert.rejects(get(near, { hint: swaps, dest, force }), withCode('invalid_request'));
    assert.deepEqual(readdirSync(outside), []);
    rmSync(join(near.filesRoot, '.svcd', 'parts', ID));
  }
});

test('a holder that sends wrong bytes is detected and skipped', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  await far.objects.put(far.aid, { bytes: BYTES });
  near.objects.noteHolder(ID, far.aid);
  const forged = Buffer.from(BYTES);
  forged[1_500_000] = (forged[1_500_000] ?? 0) ^ 1;
  const liar = await holder(world, t, serving(forged));
  const got = await get(near, { hint: liar });
  assert.equal(got.from, far.aid);
  assert.ok(readFileSync(got.path).equals(BYTES));
});

test('a malicious holder that disconnects does not discredit an honest one', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  await far.objects.put(far.aid, { bytes: BYTES });
  near.objects.noteHolder(ID, far.aid);
  const forged = Buffer.from(BYTES);
  forged[0] = (forged[0] ?? 0) ^ 1;
  const liar = await holder(world, t, serving(forged, 1_000_000));
  const got = await get(near, { hint: liar });
  assert.equal(got.from, far.aid);
  assert.ok(readFileSync(got.path).equals(BYTES));
});

test('the remains of a forged download do not spoil the next one', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  await far.objects.put(far.aid, { bytes: BYTES });
  for (const left of [Buffer.alloc(1_000, 1), Buffer.alloc(BYTES.length, 1), Buffer.alloc(BYTES.length + 5, 1)]) {
    writeFileSync(join(near.filesRoot, '.svcd', 'parts', ID), left);
    const got = await get(near, { hint: far.aid, dest: `after-${left.length}` });
    assert.ok(readFileSync(got.path).equals(BYTES));
  }
  writeFileSync(join(near.filesRoot, '.svcd', 'parts', ID), BYTES);
  const got = await get(near, { hint: far.aid, dest: 'whole' });
  assert.ok(readFileSync(got.path).equals(BYTES), 'a complete part needs no holder');
});

test('if all holders are malicious, the error describes their responses, and no file remains', async (t) => {
  const world = new ObjectWorld(t);
  const near = await world.node();
  const wrong = Buffer.alloc(1_000, 7);
  const answers: Record<string, RequestListener> = {
    'other bytes': serving(wrong),
    'another object': (_request, response) => response.writeHead(200, { etag: '"x"', 'content-length': 3 }).end('abc'),
    'no length': (_request, response) => response.writeHead(200, HEADERS).end('abc'),
    'beyond all limits': (_request, response) =>
      void response.writeHead(200, { ...HEADERS, 'content-length': 2 ** 49 }).write('abc'),
    'another part': (_request, response) =>
      response.writeHead(206, { ...HEADERS, 'content-length': 3, 'content-range': 'bytes 5-7/20' }).end('abc'),
    'a redirect': (_request, response) => response.writeHead(302, { location: '/' }).end(),
    'not modified': (_request, response) => response.writeHead(304, HEADERS).end(),
  };
  for (const [what, listener] of Object.entries(answers)) {
    const liar = await holder(world, t, listener);
    await assert.rejects(get(near, { hint: liar }), withCode('protocol_error'), what);
    assert.ok(!existsSync(join(near.filesRoot, 'downloads', ID)), what);
    near.repository.removeHolder(ID, liar);
  }
});

test('an object that does not fit on the disk is rejected before its first byte', async (t) => {
  const world = new ObjectWorld(t);
  const near = await world.node();
  const huge = await holder(world, t, (_request, response) => {
    response.writeHead(200, { ...HEADERS, 'content-length': 2 ** 40 }).write('abc');
  });
  let free = 2 ** 32;
  const getter = new ObjectGetter(near.objects, near.holders, near.remote, systemClock, async () => free);
  await assert.rejects(get({ ...near, getter }, { hint: huge }), withCode('not_writable'));
  // Space for the object alone is not enough, because some must remain free.
  const whole = await holder(world, t, serving(BYTES));
  free = MIN_FREE_BYTES + BYTES.length - 1;
  await assert.rejects(get({ ...near, getter }, { hint: whole }), withCode('not_writable'));
  free++;
  assert.equal((await get({ ...near, getter }, { hint: whole })).size, BYTES.length);
});

test('the holder decides on access, and a refusal is reported', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  await far.objects.put(far.aid, { bytes: BYTES });
  world.access = ({ accessToken, purpose }) => {
    assert.equal(purpose, 'object');
    if (accessToken !== 'open sesame') throw new SvcError('access_denied');
  };
  await assert.rejects(get(near, { hint: far.aid }), (error: unknown) => {
    assert.ok(error instanceof SvcError && error.code === 'access_denied');
    assert.deepEqual(error.details?.['holders'], [{ aid: far.aid, error: 'access_denied' }]);
    return true;
  });
  const denied = await near.holders.locate(near.aid, ID, far.aid, signal);
  assert.deepEqual(denied.holders, [{ aid: far.aid, status: 'denied' }]);
  const got = await get(near, { hint: far.aid, accessToken: 'open sesame' });
  assert.equal(got.from, far.aid);
});

test('locating queries all candidates and downloads nothing', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far, other] = [await world.node(), await world.node(), await world.node()];
  await far.objects.put(far.aid, { bytes: BYTES }, 'big.bin');
  near.objects.noteHolder(ID, other.aid);
  const away = (await world.links.node()).host().aid;
  world.links.directory.delete(away);
  near.objects.noteHolder(ID, away);
  const { local, holders } = await near.holders.locate(near.aid, ID, far.aid, signal);
  assert.equal(local, null);
  assert.deepEqual(holders[0], { aid: far.aid, status: 'available', size: BYTES.length, name: 'big.bin' });
  const status = new Map(holders.map((one) => [one.aid, one.status]));
  assert.equal(status.get(other.aid), 'not_found');
  assert.equal(status.get(away), 'unreachable');
  assert.deepEqual(
    near.repository.holders(ID).sort(),
    [far.aid, away].sort(),
    'a holder without the object is forgotten',
  );
  assert.deepEqual(readdirSync(join(near.filesRoot, '.svcd', 'parts')), []);
});

test('two concurrent downloads of the same object both succeed', async (t) => {
  const world = new ObjectWorld(t);
  const [near, far] = [await world.node(), await world.node()];
  await far.objects.put(far.aid, { bytes: BYTES });
  const both = await Promise.all([get(near, { hint: far.aid, dest: 'a' }), get(near, { hint: far.aid, dest: 'b' })]);
  for (const { path } of both) assert.ok(readFileSync(path).equals(BYTES));
});

test('concurrent downloads are limited, and a download of the same object waits for the running one', async (t) => {
  const world = new ObjectWorld(t);
  const near = await world.node();
  let asked = 0;
  const silent = await holder(world, t, () => void asked++);
  const gone = new AbortController();
  const all = Array.from({ length: MAX_DOWNLOADS }, (_, i) =>
    get(near, { hint: silent, objectId: sha256(`${i}`), signal: gone.signal }),
  );
  const again = get(near, { hint: silent, objectId: sha256('0'), signal: gone.signal });
  const ended = Promise.allSettled([...all, again]);
  await assert.rejects(get(near, { hint: silent }), withCode('rate_limited'));
  await eventually('all of them are requested', () => asked === MAX_DOWNLOADS);
  gone.abort();
  for (const one of await ended) assert.ok(one.status === 'rejected' && withCode('cancelled')(one.reason));
  await assert.rejects(get(near, { signal: gone.signal }), withCode('cancelled'));
});

test('a transfer reserves room for the missing bytes only, and ends if there is none', async (t) => {
  const world = new ObjectWorld(t);
  const near = await world.node();
  const file = join(near.filesRoot, '.svcd', 'parts', ID);
  const from = await holder(world, t, serving(BYTES));
  const asked: number[] = [];
  const download = async (admit: (bytes: number) => Promise<void>) => {
    const part = await PartFile.open(file);
    try {
      const check = { isWhole: (file: PartFile) => file.is(ID) };
      const request = { local: near.aid, resource: objectResource(ID), check, holders: [from], signal };
      return await new Transfer(near.remote, systemClock, admit, request, part).run(new Map());
    } finally {
      await part.close();
    }
  };
  writeFileSync(file, BYTES.subarray(0, 1000));
  const full = new SvcError('not_writable');
  await assert.rejects(
    download(async (bytes) => {
      asked.push(bytes);
      throw full;
    }),
    full,
  );
  const done = await download(async (bytes) => void asked.push(bytes));
  assert.equal(done?.from, from);
  assert.deepEqual(asked, [BYTES.length - 1000, BYTES.length - 1000]);
});

test('a holder that no longer has the object is forgotten, an unreachable one is not', async (t) => {
  const world = new ObjectWorld(t);
  const near = await world.node();
  const gone = await holder(world, t, (_request, response) => response.writeHead(410, { 'content-length': 0 }).end());
  const empty = await world.node();
  const broken = await holder(world, t, (_request, response) => response.destroy());
  for (const at of [gone, empty.aid, broken]) near.repository.addHolder(ID, at, Date.now());
  await assert.rejects(get(near));
  assert.deepEqual(near.repository.holders(ID), [broken]);
});

test('the rest of a range is requested again from a holder that falls silent', async (t) => {
  const clock = new TestClock();
  const world = new ObjectWorld(t, clock);
  const near = await world.node();
  const asked: string[] = [];
  const silent = await holder(world, t, (request, response) => {
    asked.push(request.headers.range ?? 'whole');
    if (asked.length > 2) return serving(BYTES)(request, response);
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const range = { 'content-range': `bytes ${start}-${BYTES.length - 1}/${BYTES.length}` };
    response.writeHead(start > 0 ? 206 : 200, { ...HEADERS, 'content-length': BYTES.length - start, ...range });
    response.write(BYTES.subarray(start, start + 100_000));
  });
  const getting = get(near, { hint: silent });
  for (const bytes of [100_000, 200_000]) {
    await eventually('the bytes before the silence', () => near.getter.progress(ID) === bytes);
    assert.equal(asked.length, bytes / 100_000);
    clock.advance(TRANSFER_SILENT_MS);
  }
  const { path } = await getting;
  assert.ok(readFileSync(path).equals(BYTES));
  assert.deepEqual(asked, ['whole', 'bytes=100000-', 'bytes=200000-']);
});
