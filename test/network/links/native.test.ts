/** Links over the real engine between two processes. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { IDLE_TIMEOUT_MS } from '../../../src/network/transport/quic/native-endpoint.ts';
import { forkNode, type LinkProcess, NativeNode, narrowEngine, residentBytes } from '../../support/link-process.ts';
import { readAll } from '../../support/link-world.ts';
import { quietPort } from '../../support/programs.ts';

const MIB = 1024 * 1024;
const theirKey = KeyPair.generate();
const here = new NativeNode(KeyPair.generate(), 0);
let there: LinkProcess;

before(async () => {
  await here.start();
  // It is killed and restarted at its port, which no other process may get meanwhile.
  there = await forkNode(theirKey, await quietPort());
  here.directory.set(there.location.aid, there.location);
});

after(async () => {
  there.child.kill('SIGKILL');
  await here.stop();
});

test('bytes flow both ways, and each half ends on its own', async () => {
  const link = await here.links.open(here.aid, there.location.aid, 'tcp');
  link.end('hello over the wire');
  assert.equal((await readAll(link)).toString(), 'hello over the wire');
  assert.equal(link.path().kind, 'lan');
  assert.ok(link.path().rttMs >= 0);
  assert.deepEqual(link.nodeKey, theirKey.publicKey);
});

test('large transfers arrive complete in both directions', async () => {
  const up = await here.links.open(here.aid, there.location.aid, 'note');
  const chunk = Buffer.alloc(MIB, 1);
  for (let i = 0; i < 16; i++) if (!up.write(chunk)) await once(up, 'drain');
  up.end();
  assert.equal((await readAll(up)).toString(), String(16 * MIB));
  const down = await here.links.open(here.aid, there.location.aid, 'object');
  down.end(Uint8Array.of(16));
  assert.equal((await readAll(down)).length, 16 * MIB);
});

test('many concurrent links share the connection', async () => {
  const opened = await Promise.all(
    Array.from({ length: 100 }, () => here.links.open(here.aid, there.location.aid, 'tcp')),
  );
  await Promise.all(
    opened.map(async (link, i) => {
      link.end(`link ${i}`);
      assert.equal((await readAll(link)).toString(), `link ${i}`);
    }),
  );
  assert.equal(here.pool.stats().connections, 1);
});

test('a refusal and a reset arrive unchanged', async () => {
  await assert.rejects(here.links.open(here.aid, there.location.aid, 'group'), { code: 'protocol_error' });
  const link = await here.links.open(here.aid, there.location.aid, 'tcp');
  link.write('x');
  await once(link, 'data');
  link.destroy();
  assert.equal(here.pool.stats().connections, 1);
});

test('unread links make the other node buffer a limited number of bytes, and other links are served', async () => {
  const stranger = new NativeNode(KeyPair.generate(), 0, false, narrowEngine());
  await stranger.start();
  stranger.directory.set(there.location.aid, there.location);
  const before = await residentBytes(there);
  for (let i = 0; i < 600; i++) {
    const link = await stranger.links.open(stranger.aid, there.location.aid, 'object');
    link.on('error', () => {});
    link.write(Uint8Array.of(1));
  }
  const down = await here.links.open(here.aid, there.location.aid, 'object');
  down.end(Uint8Array.of(4));
  assert.equal((await readAll(down)).length, 4 * MIB);
  const grown = ((await residentBytes(there)) - before) / MIB;
  assert.ok(grown < 64, `${grown} MiB more`);
  await stranger.stop();
});

test('links open after the other node was killed and restarted', async () => {
  const openLink = await here.links.open(here.aid, there.location.aid, 'tcp');
  const broken = once(openLink, 'error');
  const [address] = there.location.addresses;
  assert.ok(address);
  there.child.kill('SIGKILL');
  await once(there.child, 'exit');
  there = await forkNode(theirKey, address.port);
  const link = await here.links.open(here.aid, there.location.aid, 'tcp');
  link.end('back again');
  assert.equal((await readAll(link)).toString(), 'back again');
  const [error]: unknown[] = await broken;
  assert.ok(error instanceof Error && 'code' in error && error.code === 'connection_lost');
});

test('a killed node is given up long before its connection times out', async () => {
  (await here.links.open(here.aid, there.location.aid, 'tcp')).destroy();
  const [address] = there.location.addresses;
  assert.ok(address);
  there.child.kill('SIGKILL');
  await once(there.child, 'exit');
  // Without its own timeouts, only the timeout of the test would end this call.
  const opening = here.links.open(here.aid, there.location.aid, 'tcp', { timeoutMs: IDLE_TIMEOUT_MS });
  await assert.rejects(opening, { code: 'connect_failed' });
  assert.ok(here.pool.stats().connections > 0, 'the dead connection has not timed out yet');
  there = await forkNode(theirKey, address.port);
  const link = await here.links.open(here.aid, there.location.aid, 'tcp');
  link.end('back once more');
  assert.equal((await readAll(link)).toString(), 'back once more');
});

test('the totals count all connections', () => {
  const { bytesSent, bytesReceived } = here.pool.stats();
  assert.ok(bytesSent > 16 * MIB && bytesReceived > 16 * MIB);
});
