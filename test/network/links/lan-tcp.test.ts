/** Links proxy LAN peers use a LAN TCP connection, or QUIC if that is not possible. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { decodeAnswer, encodeAnswer } from '../../../src/network/transport/lan-tcp/greeting.ts';
import { LanTcp } from '../../../src/network/transport/lan-tcp/lan-tcp.ts';
import { LanTcpStream } from '../../../src/network/transport/lan-tcp/lan-tcp-connection.ts';
import { eventually } from '../../support/eventually.ts';
import { LinkWorld, readAll, settle } from '../../support/link-world.ts';
import { TcpServer } from '../../support/tcp.ts';

/** File descriptors of a process without a tight limit. */
const MANY = 65_536;
const KIB = 1024;

/** A LAN TCP endpoint behind a proxy that can cut connections. */
class ProxiedLanTcp extends LanTcp {
  readonly proxy: { readonly port: number };
  target = 0;

  constructor(clock: LinkWorld['clock'], proxy: { readonly port: number }) {
    super({ clock, descriptors: () => MANY });
    this.proxy = proxy;
  }

  override async answer(...asked: Parameters<LanTcp['answer']>): ReturnType<LanTcp['answer']> {
    const body = await super.answer(...asked);
    if (body === null) return null;
    const answer = decodeAnswer(body);
    this.target = answer.port;
    return encodeAnswer({ ...answer, port: this.proxy.port });
  }
}

function lanTcpOf({ clock }: LinkWorld): LanTcp {
  return new LanTcp({ clock, descriptors: () => MANY });
}

/** Two nodes, each with an agent. The second one echoes. */
async function nodePair(world: LinkWorld, options: { readonly upgrade?: LanTcp } = { upgrade: lanTcpOf(world) }) {
  const [a, b] = [await world.node({ upgrade: lanTcpOf(world) }), await world.node(options)];
  const [caller, called] = [a.host(), b.host()];
  b.echo();
  const open = () => a.links.open(caller.aid, called.aid, 'tcp');
  const session = () => a.pool.current(b.key.publicKey) ?? assert.fail();
  return { a, b, called, open, session };
}

test('after a LAN peer has answered, links to it use the LAN TCP connection', async () => {
  await using world = new LinkWorld();
  const { a, b, called, open, session } = await nodePair(world);
  const reported: Uint8Array[] = [];
  let changes = 0;
  a.pool.upgraded.add((nodeKey) => reported.push(nodeKey));
  a.links.onPathChange(() => changes++);
  const first = await open();
  assert.ok(!(first instanceof LanTcpStream));
  assert.equal(first.path().isUpgraded, false);
  await eventually('the better path is reported', () => reported.length === 1);
  assert.deepEqual(reported, [b.key.publicKey]);
  assert.ok(changes > 0);
  assert.equal(first.isOutdated?.(), true);
  assert.equal(a.links.path(called.aid, false)?.isUpgraded, true);
  const third = await open();
  assert.ok(third instanceof LanTcpStream);
  assert.equal(third.path().isUpgraded, true);
  assert.equal(third.path().kind, 'lan');
  assert.equal(third.isOutdated?.(), false);
  const [before, quic] = [session().stats(), session().connection.stats()];
  third.end(Buffer.alloc(100 * KIB, 5));
  assert.equal((await readAll(third)).length, 100 * KIB);
  const after = session().stats();
  assert.ok(after.bytesSent - before.bytesSent > 100 * KIB && after.bytesReceived - before.bytesReceived > 100 * KIB);
  assert.ok(session().connection.stats().bytesSent - quic.bytesSent < KIB);
  assert.ok(a.pool.stats().bytesSent > 100 * KIB && b.pool.stats().bytesReceived > 100 * KIB);
  first.end('still open');
  assert.equal(String(await readAll(first)), 'still open');
  assert.equal(reported.length, 1);
});

test('a link over the LAN TCP connection counts as a stream of the session until it closes', async () => {
  await using world = new LinkWorld();
  const { open, session } = await nodePair(world);
  const links = [await open(), await open()];
  await eventually('the LAN TCP connection is ready', () => session().upgrade.isReady);
  const third = await open();
  assert.ok(third instanceof LanTcpStream);
  assert.equal(session().streams, 3);
  for (const link of [...links, third]) {
    link.end();
    await readAll(link);
  }
  await eventually('no stream is open', () => session().streams === 0);
});

test('a peer without LAN TCP gets links over QUIC, and no further request', async () => {
  await using world = new LinkWorld();
  const { a, open, session } = await nodePair(world, {});
  let reported = 0;
  a.pool.upgraded.add(() => reported++);
  for (let i = 0; i < 6; i++) {
    const link = await open();
    assert.ok(!(link instanceof LanTcpStream));
    link.end(`link ${i}`);
    assert.equal(String(await readAll(link)), `link ${i}`);
    assert.equal(link.isOutdated?.(), false);
    await settle();
  }
  assert.equal(reported, 0);
  assert.ok(!session().closed);
  assert.equal(a.pool.stats().connections, 1);
});

test('a LAN TCP connection that breaks while a link opens does not fail the link', async () => {
  await using world = new LinkWorld();
  let isCut = false;
  await using proxy = await TcpServer.start((socket) => {
    const on = connect({ host: '127.0.0.1', port: proxied.target, allowHalfOpen: true });
    on.on('error', () => {});
    on.on('close', () => socket.destroy());
    socket.on('close', () => on.destroy());
    on.pipe(socket);
    socket.on('data', (chunk: Buffer) => {
      if (isCut) socket.resetAndDestroy();
      else on.write(chunk);
    });
  });
  const proxied = new ProxiedLanTcp(world.clock, proxy);
  const { open, session } = await nodePair(world, { upgrade: proxied });
  const openLink = [await open(), await open()];
  await eventually('the LAN TCP connection is ready', () => session().upgrade.isReady);
  isCut = true;
  const link = await open();
  link.end('came through');
  assert.equal(String(await readAll(link)), 'came through');
  const [first = assert.fail()] = openLink;
  first.end('still open');
  assert.equal(String(await readAll(first)), 'still open');
});

test('links over LAN TCP end with their QUIC connection, and the next ones use a new one', async () => {
  await using world = new LinkWorld();
  const { a, open, session } = await nodePair(world);
  await open();
  await open();
  await eventually('the LAN TCP connection is ready', () => session().upgrade.isReady);
  const link = await open();
  assert.ok(link instanceof LanTcpStream);
  const lost = new Promise((resolve) => link.once('error', resolve));
  session().close();
  const error = await lost;
  assert.ok(error instanceof Error && 'code' in error && error.code === 'connection_lost');
  const next = await open();
  assert.ok(!(next instanceof LanTcpStream));
  next.end('anew');
  assert.equal(String(await readAll(next)), 'anew');
  assert.equal(a.pool.stats().connections, 1);
});
