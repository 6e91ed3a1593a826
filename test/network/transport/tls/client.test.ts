import assert from 'node:assert/strict';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type TestContext, test } from 'node:test';
import type { Address } from '../../../../src/foundation/address.ts';
import { systemClock } from '../../../../src/foundation/clock.ts';
import { KeyPair } from '../../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../../src/foundation/log.ts';
import { networkTag } from '../../../../src/network/records/node-address.ts';
import { HelperFailure, type HelperTarget } from '../../../../src/network/transport/borrowing.ts';
import { UdpOverTls } from '../../../../src/network/transport/tls/client.ts';
import { Proxies } from '../../../../src/network/transport/tls/proxy.ts';
import { TLS_STATUS } from '../../../../src/network/transport/tls/wire.ts';
import type { BorrowedPort } from '../../../../src/network/transport/udp-socket.ts';
import { eventually } from '../../../support/eventually.ts';
import { TlsHelper } from '../../../support/tls-helper.ts';

const HOST = '127.0.0.1';
const NEVER = new AbortController().signal;

function client(t: TestContext): UdpOverTls {
  const settings = { proxy: 'none', proxy_command: '', tls_ca: '' };
  const made = new UdpOverTls({
    clock: systemClock,
    log: silentLog,
    identity: { key: KeyPair.generate(), tag: networkTag('') },
    proxies: new Proxies(() => settings, {}),
    ca: () => '',
  });
  t.after(() => made.disconnect());
  return made;
}

async function helper(t: TestContext, options: Parameters<typeof TlsHelper.start>[1] = {}): Promise<TlsHelper> {
  const made = await TlsHelper.start(KeyPair.generate(), options);
  t.after(() => made[Symbol.asyncDispose]());
  return made;
}

function at({ port }: TlsHelper): HelperTarget {
  return { host: HOST, port };
}

/** Answers each datagram with the port that sent it. */
async function echo(t: TestContext): Promise<Address> {
  const socket = createSocket('udp4').bind(0, HOST);
  socket.on('message', (_datagram, from) => socket.send(String(from.port), from.port, from.address));
  await once(socket, 'listening');
  t.after(() => socket.close());
  return { host: HOST, port: socket.address().port };
}

/** The outer port of a borrowed port: repeats the question, as UDP may be lost. */
async function outerPort(port: BorrowedPort, to: Address): Promise<number> {
  let answer = 0;
  port.receive((datagram) => {
    answer = Number(Buffer.from(datagram).toString());
  });
  return await eventually('an answer', () => {
    port.send(Buffer.from('?'), to);
    return answer > 0 && answer;
  });
}

function borrowed(tls: UdpOverTls): BorrowedPort {
  const port = tls.borrow();
  assert.ok(port !== null);
  return port;
}

test('datagrams of a borrowed port leave from a port of the helper', async (t) => {
  const [tls, lender, to] = [client(t), await helper(t), await echo(t)];
  assert.equal(tls.borrow(), null, 'nothing is lent before the connection');
  assert.equal(tls.carries(HOST), false);
  tls.use(await tls.open(at(lender), NEVER));
  assert.deepEqual([tls.carries(HOST), tls.carries('203.0.113.1'), tls.isActive], [true, true, true]);
  assert.equal(tls.session?.isInspected, false);
  const port = borrowed(tls);
  const outer = await outerPort(port, to);
  assert.deepEqual(lender.lentPorts, [outer]);
  port.close();
  await eventually('the helper closes it', () => lender.lentPorts.length === 0);
  assert.equal(port.send(Buffer.from('?'), to), false);
});

test('a lost connection is opened again, and the ports stay', async (t) => {
  const [tls, lender, to] = [client(t), await helper(t), await echo(t)];
  let moves = 0;
  tls.moved.add(() => moves++);
  tls.use(await tls.open(at(lender), NEVER));
  const port = borrowed(tls);
  const before = await outerPort(port, to);
  lender.cut();
  await eventually('it is lost', () => tls.session === null || lender.hellos === 2);
  assert.equal(port.isOpen, true);
  await eventually('it is there again', () => tls.session !== null);
  assert.equal(await outerPort(port, to), before);
  assert.deepEqual([moves, lender.hellos], [0, 2]);
});

test('if a helper is lost, the spare takes over with other ports', async (t) => {
  const tls = client(t);
  const [main, spare, to] = [await helper(t), await helper(t), await echo(t)];
  let moves = 0;
  tls.moved.add(() => moves++);
  tls.use(await tls.open(at(main), NEVER));
  tls.keepSpare(await tls.open(at(spare), NEVER));
  const port = borrowed(tls);
  const before = await outerPort(port, to);
  await main[Symbol.asyncDispose]();
  await eventually('it moves', () => moves === 1);
  assert.deepEqual([tls.session?.target.port, tls.spare], [spare.port, null]);
  assert.notEqual(await outerPort(port, to), before);
  assert.equal(spare.lentPorts.length, 1);
});

test('a trial shows what a helper carries, before it is used and meanwhile', async (t) => {
  const [tls, lender, to] = [client(t), await helper(t), await echo(t)];
  const session = await tls.open(at(lender), NEVER);
  const tryIt = async (): Promise<void> => {
    const socket = tls.trialSocket(session);
    const answer = once(socket, 'message');
    await socket.send(Buffer.from('?'), to.port, to.host);
    const [datagram, from] = (await answer) as [Buffer, Address];
    assert.deepEqual([Number(datagram.toString()), from], [lender.lentPorts.at(-1), to]);
    await socket.close();
  };
  await tryIt();
  await eventually('the helper closes the port', () => lender.lentPorts.length === 0);
  tls.use(session);
  const port = borrowed(tls);
  const outer = await outerPort(port, to);
  await tryIt();
  assert.equal(await outerPort(port, to), outer);
});

test('a helper through which no other node answers is reported, answers of the helper itself do not count', async (t) => {
  const [tls, lender] = [client(t), await helper(t, { host: HOST })];
  const silent = new Promise<void>((resolve) => tls.silent.add(resolve));
  const session = await tls.open(at(lender), NEVER);
  tls.use(session);
  assert.equal(session.host, HOST);
  const ownNode = await echo(t);
  const other = createSocket('udp4').bind(0, '127.0.0.2');
  t.after(() => other.close());
  await once(other, 'listening');
  const port = borrowed(tls);
  await outerPort(port, ownNode);
  port.send(Buffer.from('?'), { host: '127.0.0.2', port: other.address().port });
  await outerPort(port, ownNode);
  await silent;
});

test('a helper that is lost without a spare is reported', async (t) => {
  const [tls, lender] = [client(t), await helper(t)];
  const lost = new Promise<HelperFailure>((resolve) => tls.lost.add(resolve));
  tls.use(await tls.open(at(lender), NEVER));
  await lender[Symbol.asyncDispose]();
  assert.equal((await lost).failure, 'tcp_refused');
  assert.deepEqual([tls.session, tls.isActive], [null, true]);
});

test('a helper that does not resume gives other ports', async (t) => {
  const [tls, lender] = [client(t), await helper(t, { resumes: false })];
  const moved = new Promise<void>((resolve) => tls.moved.add(resolve));
  tls.use(await tls.open(at(lender), NEVER));
  lender.cut();
  await moved;
  assert.equal(tls.session?.hello.isResumed, false);
});

test('a client keeps to the number of ports that the helper lends', async (t) => {
  const [tls, lender] = [client(t), await helper(t, { ports: 2 })];
  tls.use(await tls.open(at(lender), NEVER));
  const [first] = [borrowed(tls), borrowed(tls)];
  assert.equal(tls.borrow(), null);
  first?.close();
  assert.notEqual(tls.borrow(), null);
});

test('after a return to UDP, borrowed ports work until the end', async (t) => {
  const [tls, lender, to] = [client(t), await helper(t), await echo(t)];
  tls.use(await tls.open(at(lender), NEVER));
  const port = borrowed(tls);
  tls.leave();
  assert.equal(tls.carries(to.host), false);
  await outerPort(port, to);
  tls.disconnect();
  assert.deepEqual([port.isOpen, tls.session, tls.borrow()], [false, null, null]);
});

test('each refusal of a helper has its code', async (t) => {
  const codes = [
    [TLS_STATUS.notHelping, 'not_a_helper'],
    [TLS_STATUS.full, 'helper_full'],
    [TLS_STATUS.rateLimited, 'rate_limited'],
    [TLS_STATUS.otherNetwork, 'other_network'],
  ] as const;
  for (const [status, failure] of codes) {
    const [tls, lender] = [client(t), await helper(t, { status })];
    await assert.rejects(
      tls.open(at(lender), NEVER),
      (error) => error instanceof HelperFailure && error.failure === failure,
    );
  }
  const [tls, lender] = [client(t), await helper(t)];
  const other = { ...at(lender), nodeKey: KeyPair.generate().publicKey };
  await assert.rejects(
    tls.open(other, NEVER),
    (error) => error instanceof HelperFailure && error.failure === 'other_node',
  );
});

test('a hello names the helper that answers, also if its key was unknown', async (t) => {
  const [tls, lender] = [client(t), await helper(t)];
  tls.use(await tls.open(at(lender), NEVER));
  assert.deepEqual(lender.named, [lender.key.publicKey]);
});

test('no hello is sent to a node that states the key of a helper in use, or not the expected one', async (t) => {
  const [tls, lender] = [client(t), await helper(t)];
  tls.use(await tls.open(at(lender), NEVER));
  const other = await helper(t, { statedKey: lender.key.publicKey });
  await assert.rejects(tls.open(at(other), NEVER), { failure: 'other_node' });
  const expected = { ...at(lender), nodeKey: KeyPair.generate().publicKey };
  await assert.rejects(tls.open(expected, NEVER), { failure: 'other_node' });
  assert.deepEqual([other.hellos, lender.hellos], [0, 1]);
  assert.ok(tls.session !== null);
});

test('a node that states a foreign key cannot answer the hello', async (t) => {
  const other = await helper(t, { statedKey: KeyPair.generate().publicKey });
  await assert.rejects(client(t).open(at(other), NEVER), { failure: 'other_node' });
});
