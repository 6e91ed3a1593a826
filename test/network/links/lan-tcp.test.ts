/** Links between neighbours go beside their QUIC connection, and over it wherever that is not possible. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { decodeAnswer, encodeAnswer } from '../../../src/network/transport/lan-tcp/greeting.ts';
import { LanTcp } from '../../../src/network/transport/lan-tcp/lan-tcp.ts';
import { LanTcpStream } from '../../../src/network/transport/lan-tcp/lan-tcp-connection.ts';
import { eventually } from '../../support/eventually.ts';
import { LinkWorld, readAll, settle } from '../../support/link-world.ts';
import { TcpServer } from '../../support/tcp.ts';

/** Descriptors of a process that has as many as it needs. */
const MANY = 65_536;
const KIB = 1024;

/** The answers of this one lead over a place where TCP connections can be cut. */
class NearOver extends LanTcp {
  readonly between: { readonly port: number };
  target = 0;

  constructor(clock: LinkWorld['clock'], between: { readonly port: number }) {
    super({ clock, descriptors: () => MANY });
    this.between = between;
  }

  override async answer(...asked: Parameters<LanTcp['answer']>): ReturnType<LanTcp['answer']> {
    const body = await super.answer(...asked);
    if (body === null) return null;
    const answer = decodeAnswer(body);
    this.target = answer.port;
    return encodeAnswer({ ...answer, port: this.between.port });
  }
}

function nearOf({ clock }: LinkWorld): LanTcp {
  return new LanTcp({ clock, descriptors: () => MANY });
}

/** Two nodes, each with an agent; the second sends back what comes. */
async function two(world: LinkWorld, near: { readonly upgrade?: LanTcp } = { upgrade: nearOf(world) }) {
  const [a, b] = [await world.node({ upgrade: nearOf(world) }), await world.node(near)];
  const [caller, called] = [a.host(), b.host()];
  b.echo();
  const open = () => a.links.open(caller.aid, called.aid, 'tcp');
  const session = () => a.pool.current(b.key.publicKey) ?? assert.fail();
  return { a, b, called, open, session };
}

test('once a neighbour has answered, links to it go beside its QUIC connection', async () => {
  await using world = new LinkWorld();
  const { a, b, called, open, session } = await two(world);
  const told: Uint8Array[] = [];
  let changes = 0;
  a.pool.upgraded.add((nodeKey) => told.push(nodeKey));
  a.links.onPathChange(() => changes++);
  const first = await open();
  assert.ok(!(first instanceof LanTcpStream));
  assert.equal(first.path().isUpgraded, false);
  await eventually('the other way is told', () => told.length === 1);
  assert.deepEqual(told, [b.key.publicKey]);
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
  first.end('goes on');
  assert.equal(String(await readAll(first)), 'goes on');
  assert.equal(told.length, 1);
});

test('a link beside the QUIC connection counts as one of its streams, until it closes', async () => {
  await using world = new LinkWorld();
  const { open, session } = await two(world);
  const links = [await open(), await open()];
  await eventually('there is another way', () => session().upgrade.isReady);
  const third = await open();
  assert.ok(third instanceof LanTcpStream);
  assert.equal(session().streams, 3);
  for (const link of [...links, third]) {
    link.end();
    await readAll(link);
  }
  await eventually('nothing is left', () => session().streams === 0);
});

test('who does not know of other ways is not asked again, and gets links over QUIC', async () => {
  await using world = new LinkWorld();
  const { a, open, session } = await two(world, {});
  let told = 0;
  a.pool.upgraded.add(() => told++);
  for (let i = 0; i < 6; i++) {
    const link = await open();
    assert.ok(!(link instanceof LanTcpStream));
    link.end(`link ${i}`);
    assert.equal(String(await readAll(link)), `link ${i}`);
    assert.equal(link.isOutdated?.(), false);
    await settle();
  }
  assert.equal(told, 0);
  assert.ok(!session().closed);
  assert.equal(a.pool.stats().connections, 1);
});

test('a channel that is cut in the moment of opening a link fails no link', async () => {
  await using world = new LinkWorld();
  let isCut = false;
  await using between = await TcpServer.start((socket) => {
    const on = connect({ host: '127.0.0.1', port: near.target, allowHalfOpen: true });
    on.on('error', () => {});
    on.on('close', () => socket.destroy());
    socket.on('close', () => on.destroy());
    on.pipe(socket);
    socket.on('data', (chunk: Buffer) => {
      if (isCut) socket.resetAndDestroy();
      else on.write(chunk);
    });
  });
  const near = new NearOver(world.clock, between);
  const { open, session } = await two(world, { upgrade: near });
  const standing = [await open(), await open()];
  await eventually('there is another way', () => session().upgrade.isReady);
  isCut = true;
  const link = await open();
  link.end('came through');
  assert.equal(String(await readAll(link)), 'came through');
  const [first = assert.fail()] = standing;
  first.end('goes on');
  assert.equal(String(await readAll(first)), 'goes on');
});

test('links beside a QUIC connection end with it, and the next ones go over a new one', async () => {
  await using world = new LinkWorld();
  const { a, open, session } = await two(world);
  await open();
  await open();
  await eventually('there is another way', () => session().upgrade.isReady);
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
