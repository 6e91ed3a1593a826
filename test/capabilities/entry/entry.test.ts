import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import {
  MAX_STALLED_PER_AGENT,
  MAX_UNREAD_PER_SOURCE,
  PUBLIC_HELLO_TIMEOUT_MS,
} from '../../../src/capabilities/entry/entry.ts';
import { MAX_NAMES_PER_AGENT } from '../../../src/capabilities/entry/entry-names.ts';
import { clientHelloOf, helloWith, inRecords, serverNames } from '../../support/client-hello.ts';
import { CLIENT, closed, DOMAIN, entryWorld, holderOn, NAME, textOf } from '../../support/entry-world.ts';
import { eventually } from '../../support/eventually.ts';
import { withCode } from '../../support/link-world.ts';
import { TestClock } from '../../support/test-clock.ts';

const DAY_MS = 86_400_000;

function* endlessZeros(): Generator<Buffer> {
  for (;;) yield Buffer.alloc(64 * 1024);
}

test('a TLS connection reaches the agent that holds its name, with the address of the client', async (t) => {
  const { names, aid, holder, node, connections, dialTls, entry } = await entryWorld(t);
  names.allow(aid);
  await holder.claim(aid, 'demo', node.aid);
  const socket = await dialTls();
  assert.equal(socket.getPeerCertificate().subject.CN, 'localhost');
  socket.end('hello');
  assert.equal(await textOf(socket), 'hello');
  const [connection] = connections;
  assert.deepEqual(
    { ...connection, clientPort: 0 },
    { name: NAME, aid, clientAddress: CLIENT, clientPort: 0, entry: node.aid },
  );
  await eventually('the end', () => entry.usage.connections === 0);
  const { bytes, ...usage } = entry.usage;
  assert.deepEqual(usage, { connections: 0, unread: 0, accepted: 1, refused: 0, failed: 0 });
  assert.ok(bytes > 1000);
});

test('a hello in small records and chunks is passed on unchanged', async (t) => {
  const { names, aid, holder, node, dial, agentStreams } = await entryWorld(t);
  names.allow(aid);
  await holder.claim(aid, 'demo', node.aid);
  holder.onConnection((_, stream) => void agentStreams.push(stream));
  const hello = inRecords(await clientHelloOf({ servername: NAME }), 50);
  const client = await dial();
  for (let at = 0; at < hello.length; at += 100) {
    client.write(hello.subarray(at, at + 100));
    await new Promise(setImmediate);
  }
  client.end();
  const stream = await eventually('the connection', () => agentStreams[0]);
  assert.equal(await textOf(stream).then((text) => text.length > 0), true);
});

test('connections without a name below a domain are for this node, with all their bytes', async (t) => {
  const { kept, dial } = await entryWorld(t);
  for (const servername of ['', DOMAIN, 'www.example.org', 'evil-vps.example.org']) {
    const client = await dial();
    const hello = await clientHelloOf({ servername });
    client.end(hello);
    const { socket, source } = await eventually('the connection', () => kept.pop());
    assert.equal(source, null);
    const chunks: Buffer[] = [];
    for await (const chunk of socket) chunks.push(chunk);
    assert.deepEqual(Buffer.concat(chunks), hello);
  }
});

test('free names, other protocols and bad hellos are closed', async (t) => {
  const { entry, dial, kept } = await entryWorld(t);
  const inputs = [
    helloWith([serverNames(NAME)]),
    helloWith([serverNames(`deep.${NAME}`)]),
    helloWith([serverNames(NAME, NAME)]),
    Buffer.from('GET / HTTP/1.1\r\nHost: demo.vps.example.org\r\n\r\n'),
    Buffer.from('PROXY TCP4 203.0.113.9 192.0.2.1 4711 443\r\n'),
  ];
  for (const input of inputs) {
    const client = await dial();
    client.write(input);
    await closed(client);
  }
  assert.deepEqual([entry.usage.refused, entry.usage.unread, kept.length], [inputs.length, 0, 0]);
});

test('only permitted agents get names, and each refusal has its own code', async (t) => {
  const { names, aid, holder, node } = await entryWorld(t);
  const claim = (name: string, token?: string) => holder.claim(aid, name, node.aid, token);
  await assert.rejects(claim('demo'), withCode('entry_denied'));
  await assert.rejects(claim('demo', 'a'.repeat(22)), withCode('entry_denied'));
  assert.deepEqual([names.names(), names.allowed()], [[], []]);
  const token = names.invite();
  assert.equal((await claim('demo', token)).name, NAME);
  assert.deepEqual(
    names.allowed().map((one) => one.aid),
    [aid],
  );
  await assert.rejects(claim('demo.other.example.org'), withCode('name_not_allowed'));
  await assert.rejects(claim(`deep.${NAME}`), withCode('bad_public_name'));
  await assert.rejects(claim('mail'), withCode('bad_public_name'));
  for (let i = 1; i < MAX_NAMES_PER_AGENT; i++) await claim(`n${i}`);
  await assert.rejects(claim('one-more'), withCode('quota_exceeded'));
  names.deny(aid);
  assert.deepEqual(names.names(), []);
  await assert.rejects(claim('demo', token), withCode('entry_denied'));
});

test('a node without public_names is no entry', async (t) => {
  const { names, aid, holder, node, entry } = await entryWorld(t, { domains: [] });
  assert.equal(entry.isOn, false);
  assert.throws(() => names.allow(aid), withCode('wrong_state'));
  assert.throws(() => names.invite(), withCode('wrong_state'));
  await assert.rejects(holder.claim(aid, 'demo', node.aid), withCode('entry_denied'));
});

test('a name, and names that look like it, belong to their holder until 30 days after its last claim', async (t) => {
  const clock = new TestClock();
  const { names, aid, holder, node, world, dialTls } = await entryWorld(t, { clock });
  const other = holderOn(await world.node(), clock);
  t.after(() => other.holder.stop());
  names.allow(aid);
  names.allow(other.aid);
  await holder.claim(aid, 'demo1', node.aid);
  const take = (name: string) => other.holder.claim(other.aid, name, node.aid);
  for (const name of ['demo1', 'derno1', 'demol', 'dem01']) await assert.rejects(take(name), withCode('name_taken'));
  await take('demo2');
  clock.advance(29 * DAY_MS);
  await assert.rejects(take('demo1'), withCode('name_taken'));
  clock.advance(2 * DAY_MS);
  await assert.rejects(dialTls(`demo1.${DOMAIN}`));
  await take('demo1');
  assert.deepEqual(names.destinationOf(`demo1.${DOMAIN}`), { aid: other.aid });
  await assert.rejects(holder.claim(aid, 'demo1', node.aid), withCode('name_taken'));
});

test('expired names do not count against the limit of their last holder', async (t) => {
  const clock = new TestClock();
  const { names, aid } = await entryWorld(t, { clock });
  names.allow(aid);
  const claim = (name: string) => names.handle({ action: 'claim', name, token: null }, aid).verdict;
  for (let i = 0; i < MAX_NAMES_PER_AGENT; i++) assert.equal(claim(`n${i}`), 'ok');
  assert.equal(claim('one-more'), 'full');
  clock.advance(29 * DAY_MS);
  assert.equal(claim('n0'), 'ok');
  clock.advance(2 * DAY_MS);
  assert.equal(claim('one-more'), 'ok');
  assert.deepEqual(
    names.names().map(({ name }) => name),
    [`n0.${DOMAIN}`, `one-more.${DOMAIN}`],
  );
});

test('an invitation is for one agent, and expires after a week', async (t) => {
  const clock = new TestClock();
  const { names, aid, holder, node, world } = await entryWorld(t, { clock });
  const other = holderOn(await world.node(), clock);
  t.after(() => other.holder.stop());
  const [token, late] = [names.invite(), names.invite()];
  await holder.claim(aid, 'demo', node.aid, token);
  await assert.rejects(other.holder.claim(other.aid, 'b', node.aid, token), withCode('entry_denied'));
  clock.advance(8 * DAY_MS);
  await assert.rejects(other.holder.claim(other.aid, 'b', node.aid, late), withCode('entry_denied'));
});

test('a denied agent and a removed name lose their connections', async (t) => {
  const { names, aid, holder, node, dialTls } = await entryWorld(t);
  const ends: readonly (() => void | Promise<void>)[] = [
    () => names.remove(NAME),
    () => names.deny(aid),
    () => holder.release(aid, NAME),
  ];
  for (const end of ends) {
    names.allow(aid);
    await holder.claim(aid, 'demo', node.aid);
    const socket = await dialTls();
    const ended = end();
    await closed(socket);
    await ended;
    await assert.rejects(dialTls());
  }
  assert.throws(() => names.remove(NAME), withCode('not_found'));
});

test('slow clients use only the share of their address, until a time limit', async (t) => {
  const clock = new TestClock();
  const { entry, dial, dialTls, names, aid, holder, node } = await entryWorld(t, { clock });
  names.allow(aid);
  await holder.claim(aid, 'demo', node.aid);
  const hello = await clientHelloOf({ servername: NAME });
  const slow = await Promise.all(Array.from({ length: MAX_UNREAD_PER_SOURCE + 20 }, () => dial()));
  for (const [i, client] of slow.entries()) client.write(hello.subarray(0, i % 100));
  await eventually('the refusals', () => entry.usage.refused === 20);
  await assert.rejects(dialTls());
  const honest = await dialTls(NAME, '198.51.100.1');
  honest.end('x');
  assert.equal(await textOf(honest), 'x');
  // A byte now and then does not help.
  for (let ms = 0; ms < PUBLIC_HELLO_TIMEOUT_MS; ms += 1000) {
    for (const client of slow) if (!client.destroyed) client.write(hello.subarray(100, 101));
    await clock.run(1000);
  }
  await eventually('the end', () => entry.usage.unread === 0);
});

test('one address cannot use up the rate of new connections', async (t) => {
  const { dial, dialTls, names, aid, holder, node, entry } = await entryWorld(t, { clock: new TestClock() });
  names.allow(aid);
  await holder.claim(aid, 'demo', node.aid);
  const hello = helloWith([serverNames(`free.${DOMAIN}`)]);
  for (let i = 0; i < 500; i++) {
    const client = await dial().catch(() => null);
    if (client === null) continue;
    client.write(hello);
    await closed(client);
  }
  assert.equal(entry.usage.refused, 500);
  await assert.rejects(dialTls());
  assert.ok(!(await dialTls(NAME, '198.51.100.1')).destroyed);
});

test('one address cannot take more than its share of open connections', async (t) => {
  const { dialTls, names, aid, holder, node, entry } = await entryWorld(t, { connections: 32 });
  names.allow(aid);
  await holder.claim(aid, 'demo', node.aid);
  const [a, b] = [await dialTls(), await dialTls()];
  await assert.rejects(dialTls());
  assert.equal(entry.usage.connections, 2);
  const other = await dialTls(NAME, '198.51.100.1');
  assert.ok(!a.destroyed && !b.destroyed && !other.destroyed);
});

test('a second hello inside the first connection leads nowhere else', async (t) => {
  const { names, aid, holder, node, dialTls, connections } = await entryWorld(t);
  names.allow(aid);
  for (const name of ['demo', 'other']) await holder.claim(aid, name, node.aid);
  const outer = await dialTls();
  const inner = await clientHelloOf({ servername: `other.${DOMAIN}` });
  const chunks: Buffer[] = [];
  outer.end(inner);
  for await (const chunk of outer) chunks.push(chunk);
  assert.deepEqual(Buffer.concat(chunks), inner);
  assert.deepEqual(
    connections.map(({ name }) => name),
    [NAME],
  );
});

test('listed web servers name their clients, whose limits count; others may not', async (t) => {
  const { dialTls, dial, kept, names, aid, holder, node, connections } = await entryWorld(t, {
    proxies: ['10.0.0.0/8', '::1'],
  });
  names.allow(aid);
  await holder.claim(aid, 'demo', node.aid);
  const header = (client: string) => Buffer.from(`PROXY TCP4 ${client} 192.0.2.1 4711 443\r\n`);
  await dialTls(NAME, '10.1.2.3', header('198.51.100.7'));
  assert.deepEqual([connections[0]?.clientAddress, connections[0]?.clientPort], ['198.51.100.7', 4711]);
  await assert.rejects(dialTls(NAME, '192.0.2.3', header('198.51.100.7')));
  await assert.rejects(dialTls(NAME, '10.1.2.3'));
  const v2 = Buffer.from(
    '0d0a0d0a000d0a515549540a2121002420010db800000000000000000000000900000000000000000000000000000001126701bb',
    'hex',
  );
  await dialTls(NAME, '::1', v2);
  assert.equal(connections[1]?.clientAddress, '2001:db8::9');

  const own = await dial('10.1.2.3');
  own.write(Buffer.concat([header('198.51.100.8'), await clientHelloOf({ servername: '' })]));
  assert.equal((await eventually('the connection', () => kept[0])).source, '198.51.100.8');
});

test('budgets slow connections down, and a spent budget ends them', async (t) => {
  const slow = await entryWorld(t, { bytesPerSecond: 400_000 });
  slow.names.allow(slow.aid);
  await slow.holder.claim(slow.aid, 'demo', slow.node.aid);
  const socket = await slow.dialTls();
  const begun = performance.now();
  socket.end(Buffer.alloc(60_000));
  assert.equal((await textOf(socket)).length, 60_000);
  // Half of the rate for one source, in both directions, after a burst of a quarter of a second.
  assert.ok(performance.now() - begun > 300);

  const used = await entryWorld(t, { bytesPerDay: 20_000 });
  used.names.allow(used.aid);
  await used.holder.claim(used.aid, 'demo', used.node.aid);
  await assert.rejects(used.dialTls().then((one) => textOf(one.end(Buffer.alloc(60_000)))));
  await eventually('the end', () => used.entry.usage.connections === 0);
});

test('clients that do not read stop only themselves', async (t) => {
  const { names, aid, holder, node, dial, dialTls, entry } = await entryWorld(t);
  names.allow(aid);
  await holder.claim(aid, 'demo', node.aid);
  holder.onConnection(({ clientAddress }, stream) => {
    stream.on('error', () => {});
    if (clientAddress === CLIENT) Readable.from(endlessZeros()).pipe(stream);
    else stream.end('short');
  });
  const hello = await clientHelloOf({ servername: NAME });
  const stuck = await Promise.all(Array.from({ length: MAX_STALLED_PER_AGENT + 8 }, () => dial()));
  for (const client of stuck) client.pause().write(hello);
  await eventually('the end of the oldest', () => entry.usage.connections === MAX_STALLED_PER_AGENT);
  const client = await dial('198.51.100.1');
  client.write(hello);
  assert.equal(await textOf(client), 'short');
  await assert.rejects(dialTls(`x.${DOMAIN}`));
});

test('an unreachable agent closes the connection of its client', async (t) => {
  const { names, aid, holder, node, home, dialTls, entry } = await entryWorld(t);
  names.allow(aid);
  await holder.claim(aid, 'demo', node.aid);
  await home.stop();
  await assert.rejects(dialTls());
  assert.deepEqual([entry.usage.failed, entry.usage.connections], [1, 0]);
});

test('after the stop no timer or socket remains', async (t) => {
  const clock = new TestClock();
  const { entry, dial, dialTls, names, aid, holder, node } = await entryWorld(t, { clock });
  names.allow(aid);
  await holder.claim(aid, 'demo', node.aid);
  const [open, waiting] = [await dialTls(), await dial()];
  await eventually('both', () => entry.usage.unread === 1);
  await entry.stop();
  await Promise.all([closed(open), closed(waiting)]);
  assert.deepEqual([entry.usage.connections, entry.usage.unread], [0, 0]);
  await holder.stop();
  assert.equal(clock.timers, 0);
});

test('the token of the invitation with which a node joined permits its first claim', async (t) => {
  const { names, aid, holder, node, world } = await entryWorld(t);
  const stranger = holderOn(await world.node());
  t.after(() => stranger.holder.stop());
  assert.deepEqual(holder.entries(), []);
  holder.invited(node.aid, names.invite());
  assert.deepEqual(holder.entries(), [node.aid]);
  await holder.claim(aid, 'demo', node.aid);
  await assert.rejects(stranger.holder.claim(stranger.aid, 'other', node.aid), withCode('entry_denied'));
});
