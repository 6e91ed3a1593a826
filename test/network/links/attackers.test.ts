import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { nativeAid } from '../../../src/foundation/identity/aid.ts';
import { decodeHeader, type LinkHeader, MAX_LINK_HEADER_BYTES } from '../../../src/network/links/header.ts';
import { PROOF_RATE } from '../../../src/network/links/link-responder.ts';
import { MAX_NODE_MESSAGE_BYTES } from '../../../src/network/links/node-requests.ts';
import { encodeProof, makeProof, type Proof, type ProofRole } from '../../../src/network/links/proofs.ts';
import { UNHELPED } from '../../../src/network/peers/dial.ts';
import { HELLO_TIMEOUT_MS, LINK_VERSION, networkId } from '../../../src/network/peers/greeter.ts';
import {
  HEADER_TIMEOUT_MS,
  MAX_LINGERING_PER_NODE,
  MAX_WAITING_PER_NODE,
  MAX_WAITING_PER_SOURCE,
  OFFENCES_BURST,
  STREAM_RATE_BURST,
} from '../../../src/network/peers/stream-dispatcher.ts';
import { KIND, LINGER_MS, readExactly, readFrame, STATUS, u16, u32 } from '../../../src/network/peers/wire.ts';
import type { Stream } from '../../../src/network/transport/types.ts';
import { newIdentity, type TestIdentity } from '../../support/identities.ts';
import { LinkWorld, readAll, settle, withCode } from '../../support/link-world.ts';
import { linkBytes, RawPeer, type RawSession, statusOn } from '../../support/raw-peer.ts';
import { TestClock } from '../../support/test-clock.ts';

function proofOf(role: ProofRole, { aid, delegation, operational }: TestIdentity, session: RawSession): Proof {
  const identity = { aid, delegation, sign: (message: Uint8Array) => operational.sign(message) };
  return makeProof(role, identity, session.here, session.there);
}

function header(caller: TestIdentity, called: TestIdentity, proof: Proof | null, wantsProof = false): LinkHeader {
  return { caller: caller.aid, called: called.aid, purpose: 'tcp', accessToken: undefined, proof, wantsProof };
}

/** Reads the header of a link that another node opens. */
async function takeHeader(stream: Stream): Promise<LinkHeader> {
  const { signal } = new AbortController();
  assert.deepEqual(await readExactly(stream, 1, signal), Buffer.of(KIND.link));
  return decodeHeader(await readFrame(stream, MAX_LINK_HEADER_BYTES, signal)) ?? assert.fail('a malformed header');
}

test('a connection that does not begin with a hello is closed', async () => {
  await using world = new LinkWorld();
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  for (const garbage of ['GET / HTTP/1.1\r\n\r\n', '\u0002\0\0', '\0'.repeat(200)]) {
    const connection = await raw.dial(a);
    (await connection.openStream()).write(garbage);
    await connection.closed;
  }
  const hasty = await raw.dial(a);
  for (const first of [1, KIND.link]) (await hasty.openStream()).write(Uint8Array.of(first));
  await hasty.closed;
  assert.equal(a.pool.stats().connections, 0);
});

test('an incomplete hello times out', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  const connection = await raw.dial(a);
  (await connection.openStream()).write(Uint8Array.of(1, LINK_VERSION, 3, 4));
  await settle();
  clock.advance(HELLO_TIMEOUT_MS);
  await connection.closed;
});

test('a peer with another version or network receives the reason, and the connection closes', async () => {
  await using world = new LinkWorld();
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  const rest = new Uint8Array(48);
  for (const [hello, status] of [
    [Buffer.concat([Uint8Array.of(1, LINK_VERSION + 1), networkId(''), rest]), STATUS.otherVersion],
    [Buffer.concat([Uint8Array.of(1, LINK_VERSION), networkId('elsewhere'), rest]), STATUS.otherNetwork],
  ] as const) {
    const connection = await raw.dial(a);
    const stream = await connection.openStream();
    stream.end(hello);
    assert.equal(await statusOn(stream), status);
    await connection.closed;
  }
});

test('streams of unknown kinds and malformed headers are rejected, and a node that repeats them is disconnected', async () => {
  await using world = new LinkWorld();
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  const session = await raw.connect(a);
  assert.equal(await statusOn(await session.send(Uint8Array.of(99, 1, 2, 3))), STATUS.unknownPurpose);
  const broken = [
    Buffer.concat([Uint8Array.of(KIND.link), u16(MAX_LINK_HEADER_BYTES + 1)]),
    Buffer.concat([Uint8Array.of(KIND.link), u16(3), Uint8Array.of(255, 255, 255)]),
    Buffer.concat([Uint8Array.of(KIND.link), u16(0)]),
    Buffer.concat([Uint8Array.of(KIND.nodeRequest), u32(MAX_NODE_MESSAGE_BYTES.record + 1)]),
  ];
  a.requests.onRequest('record', async (body) => body);
  for (const bytes of broken) assert.equal(await statusOn(await session.send(bytes)), STATUS.malformed);
  for (let i = broken.length; i <= OFFENCES_BURST; i++) (await session.send(Uint8Array.of(KIND.link, 0, 0))).resume();
  await session.connection.closed;
});

test('a stream that begins with random bytes is rejected, and the other streams work', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  const called = a.host();
  const inbox = a.inbox();
  a.requests.onRequest('record', async (body) => body);
  const agent = newIdentity();
  const kinds = fc.constantFrom(0, 1, KIND.link, KIND.nodeRequest, KIND.signal, 200);
  const noise = fc.uint8Array({ maxLength: 80 });
  // A valid length, so that the header itself is parsed.
  const framed = noise.map((bytes) => Buffer.concat([u16(bytes.length), bytes]));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(kinds, fc.oneof(noise, framed)), { maxLength: 8 }), async (beginnings) => {
      const session = await raw.connect(a);
      for (const [kind, bytes] of beginnings) {
        const stream = await session.send(Uint8Array.of(kind), bytes);
        stream.end();
        const first = (await readAll(stream))[0];
        assert.ok(first !== undefined && (first !== STATUS.ok || kind === KIND.nodeRequest));
      }
      const good = await session.link(header(agent, called, proofOf('caller', agent, session)));
      assert.equal(await statusOn(good), STATUS.ok);
      session.connection.close();
      // Offenses are forgiven over time.
      clock.advance(100_000);
    }),
    { seed: 20261121, numRuns: 60 },
  );
  assert.equal(inbox.length, 60);
});

test('an incomplete header times out and releases its slot', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  a.requests.onRequest('record', async (body) => body);
  const session = await raw.connect(a);
  const halves = [
    await session.send(Uint8Array.of(KIND.link)),
    await session.send(Uint8Array.of(KIND.link), u16(100), new Uint8Array(99)),
    await session.send(Uint8Array.of(KIND.nodeRequest), u32(100), new Uint8Array(99)),
  ];
  const resets = halves.map((stream) => assert.rejects(readAll(stream), { code: 'stream_reset' }));
  await settle();
  assert.equal(a.pool.gate.waiting, halves.length);
  clock.advance(HEADER_TIMEOUT_MS);
  await Promise.all(resets);
  assert.equal(a.pool.gate.waiting, 0);
  await settle();
  assert.equal(a.pool.stats().streams, 0);
  // An incomplete header that ends cleanly is answered with an error.
  const cut = await session.send(Uint8Array.of(KIND.link), u16(100), new Uint8Array(99));
  cut.end();
  assert.equal(await statusOn(cut), STATUS.malformed);
});

test('streams that never end are limited in number, do not affect other nodes, and cost the connection', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, b] = [await world.node({ streamsPerConnection: 1_000_000 }), await world.node()];
  const raw = await RawPeer.in(world);
  const [x, y] = [b.host(), a.host()];
  a.echo();
  const session = await raw.connect(a);
  let most = 0;
  for (let i = 0; i < MAX_WAITING_PER_NODE + 100; i++) {
    (await session.send(Uint8Array.of(KIND.link))).resume();
    most = Math.max(most, a.pool.gate.waiting);
  }
  await settle();
  assert.ok(Math.max(most, a.pool.gate.waiting) <= MAX_WAITING_PER_NODE);
  (await b.links.open(x.aid, y.aid, 'tcp')).destroy();
  const flood = (async () => {
    for (let i = 0; i < 2 * STREAM_RATE_BURST; i++) {
      (await session.send(Uint8Array.of(KIND.link))).resume();
      if (i % 100 === 0) await settle(2);
    }
  })();
  await assert.rejects(flood, withCode('connect_failed'));
  await session.connection.closed;
  await settle();
  assert.equal(a.pool.gate.waiting, 0);
});

test('rejected streams that their node does not end linger briefly, and in limited number', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  const session = await raw.connect(a);
  for (let i = 0; i < MAX_LINGERING_PER_NODE + 20; i++) {
    (await session.send(Uint8Array.of(0x7f))).on('error', () => {});
    if (i % 100 === 0) await settle(2);
  }
  await settle();
  assert.equal(a.pool.gate.lingering, MAX_LINGERING_PER_NODE);
  clock.advance(LINGER_MS);
  await settle();
  assert.equal(a.pool.gate.lingering, 0);
  assert.equal(a.pool.stats().streams, 0);
});

test('many nodes at one address leave slots for nodes at other addresses', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const a = await world.node();
  a.requests.onRequest('record', async (body) => body);
  const held = async (host: string): Promise<void> => {
    const session = await (await RawPeer.in(world, host)).connect(a);
    for (let i = 0; i < MAX_WAITING_PER_NODE; i++) (await session.send(Uint8Array.of(KIND.link))).on('error', () => {});
  };
  const nodes = MAX_WAITING_PER_SOURCE / MAX_WAITING_PER_NODE;
  for (let i = 0; i < nodes; i++) await held('192.0.2.1');
  await settle();
  assert.equal(a.pool.gate.waiting, MAX_WAITING_PER_SOURCE);
  const ask = async (host: string): Promise<number | undefined> => {
    const session = await (await RawPeer.in(world, host)).connect(a);
    return await statusOn(await session.send(Uint8Array.of(KIND.nodeRequest), u32(0)));
  };
  assert.equal(await ask('192.0.2.1'), STATUS.ok, 'a node with more streams is limited first');
  assert.ok(a.pool.gate.waiting <= MAX_WAITING_PER_SOURCE);
  assert.equal(await ask('192.0.2.2'), STATUS.ok);
  assert.equal(await ask('127.0.0.1'), STATUS.ok);
  clock.advance(HEADER_TIMEOUT_MS);
  await settle();
  assert.equal(await ask('192.0.2.1'), STATUS.ok);
});

test('a node cannot impersonate an agent without its operational key', async () => {
  await using world = new LinkWorld();
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  const [victim, attacker, called] = [newIdentity(), newIdentity(), a.host()];
  const inbox = a.inbox();
  const session = await raw.connect(a);
  const named = await session.link(header(victim, called, null));
  assert.equal(await statusOn(named), STATUS.proofNeeded);
  const own = proofOf('caller', attacker, session);
  const stolen = proofOf('caller', { ...victim, operational: attacker.operational }, session);
  const wrongRole = proofOf('called', victim, session);
  for (const proof of [own, stolen, wrongRole])
    assert.equal(await statusOn(await session.link(header(victim, called, proof))), STATUS.badProof);
  // A proof of the attacker does not help to impersonate another.
  assert.equal(await statusOn(await session.link(header(attacker, called, own))), STATUS.ok);
  assert.equal(await statusOn(await session.link(header(victim, called, null))), STATUS.proofNeeded);
  assert.deepEqual(
    inbox.map(({ caller }) => caller),
    [attacker.aid],
  );
  for (let i = 0; i < OFFENCES_BURST; i++) (await session.link(header(victim, called, stolen))).resume();
  await session.connection.closed;
  assert.equal(inbox.length, 1);
});

test('a proof is invalid on another connection, and cannot be reflected on its own', async () => {
  await using world = new LinkWorld();
  const [a, b] = [await world.node(), await world.node()];
  const raw = await RawPeer.in(world);
  const [victim, target, sibling] = [a.host(), b.host(), a.host()];
  const bait = newIdentity();
  world.directory.set(bait.aid, {
    aid: bait.aid,
    nodeKey: raw.key.publicKey,
    addresses: [raw.endpoint.address],
    ...UNHELPED,
    delegationIssuedAt: 0,
  });
  const inboxes = [a.inbox(), b.inbox()];
  const caught = new Promise<[RawSession, LinkHeader]>((resolve) => {
    raw.onSession((session) =>
      session.onStream((stream) => void takeHeader(stream).then((h) => resolve([session, h]))),
    );
  });
  const stop = new AbortController();
  const opening = a.links.open(victim.aid, bait.aid, 'tcp', { signal: stop.signal });
  const outcome = assert.rejects(opening, withCode('cancelled'));
  const [toRaw, { proof }] = await caught;
  // The second connection makes this one suspect, so that the node probes it on a stream that is not a link.
  toRaw.onStream((stream) => void stream.resume());
  assert.ok(proof);
  const elsewhere = await raw.connect(b);
  const replayed = await elsewhere.link(header(victim, target, proof));
  assert.equal(await statusOn(replayed), STATUS.badProof);
  const again = await raw.connect(a);
  assert.equal(await statusOn(await again.link(header(victim, sibling, proof))), STATUS.badProof);
  const reflected = await toRaw.link(header(victim, sibling, proof));
  assert.equal(await statusOn(reflected), STATUS.badProof);
  assert.deepEqual(inboxes, [[], []]);
  stop.abort();
  await outcome;
});

test('proofs are expensive to verify, so each node has a rate for them', async () => {
  const clock = new TestClock();
  await using world = new LinkWorld(clock);
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  const called = a.host();
  a.inbox();
  const session = await raw.connect(a);
  const agent = newIdentity();
  const bytes = linkBytes(header(agent, called, proofOf('caller', agent, session)));
  for (let i = 0; i < PROOF_RATE.burst; i++) {
    const stream = await session.send(bytes);
    assert.equal(await statusOn(stream), STATUS.ok);
    stream.destroy();
  }
  assert.equal(await statusOn(await session.send(bytes)), STATUS.rateLimited);
  // After the proof, further links of the agent are free.
  assert.equal(await statusOn(await session.link(header(agent, called, null))), STATUS.ok);
});

test('a peer that never reads blocks only its own stream', async () => {
  await using world = new LinkWorld();
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  const called = a.host();
  const inbox = a.inbox();
  const session = await raw.connect(a);
  const agent = newIdentity();
  await statusOn(await session.link(header(agent, called, proofOf('caller', agent, session))));
  const [link] = inbox;
  assert.ok(link);
  const chunk = Buffer.alloc(64 * 1024);
  let held = 0;
  for (let i = 0; i < 200 && link.write(chunk); i++) {
    held += chunk.length;
    await settle(3);
  }
  assert.ok(link.writableNeedDrain, 'the writer is paused');
  assert.ok(held < 5 * 1024 * 1024, `${held} bytes are buffered`);
  const other = await session.link(header(agent, called, null));
  assert.equal(await statusOn(other), STATUS.ok);
});

test('a node that answers for an agent it does not have is detected', async () => {
  await using world = new LinkWorld();
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  const caller = a.host();
  const [victim, impostor] = [newIdentity(), newIdentity()];
  world.directory.set(victim.aid, {
    aid: victim.aid,
    nodeKey: raw.key.publicKey,
    addresses: [raw.endpoint.address],
    ...UNHELPED,
    delegationIssuedAt: 0,
  });
  const ok = Uint8Array.of(STATUS.ok);
  const answers: ((session: RawSession, asked: LinkHeader) => Uint8Array | null)[] = [
    (_, asked) => proofAnswer(asked.proof),
    () => Buffer.concat([ok, u16(5), Buffer.from('bogus')]),
    () => Buffer.concat([ok, u16(0xffff)]),
    (session) => proofAnswer(proofOf('called', impostor, session)),
    (session) => proofAnswer(proofOf('called', { ...victim, operational: impostor.operational }, session)),
    (session) => proofAnswer(proofOf('caller', victim, session)),
    () => Uint8Array.of(255),
    () => Uint8Array.of(STATUS.proofNeeded),
    () => new Uint8Array(0),
    () => null,
  ];
  function proofAnswer(proof: Proof | null): Uint8Array {
    assert.ok(proof);
    const encoded = encodeProof(proof);
    return Buffer.concat([ok, u16(encoded.length), encoded]);
  }
  let streams = 0;
  const reasons: string[] = [];
  for (const answer of answers) {
    const reply = async (session: RawSession, stream: Stream): Promise<void> => {
      streams++;
      const bytes = answer(session, await takeHeader(stream));
      if (bytes === null) stream.destroy();
      else stream.end(bytes);
    };
    const serve = (session: RawSession): void => session.onStream((stream) => void reply(session, stream));
    raw.onSession(serve);
    for (const session of raw.accepted) serve(session);
    await assert.rejects(a.links.open(caller.aid, victim.aid, 'tcp'), (error) => {
      reasons.push(String(error));
      return withCode('protocol_error')(error);
    });
  }
  assert.match(reasons[1] ?? '', /malformed/);
  assert.equal(streams, answers.length + 1, 'a proof is sent again once at most');
  await settle();
  assert.equal(a.pool.stats().streams, 0);
});

test('an agent that lost the proof receives it again', async () => {
  await using world = new LinkWorld();
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  const caller = a.host();
  const called = newIdentity();
  const location = { aid: called.aid, nodeKey: raw.key.publicKey, addresses: [raw.endpoint.address], ...UNHELPED };
  world.directory.set(called.aid, { ...location, delegationIssuedAt: 0 });
  const shown: boolean[] = [];
  const reply = async (session: RawSession, stream: Stream): Promise<void> => {
    const asked = await takeHeader(stream);
    shown.push(asked.proof !== null);
    if (asked.proof === null) return void stream.end(Uint8Array.of(STATUS.proofNeeded));
    const proof = encodeProof(proofOf('called', called, session));
    stream.write(Buffer.concat([Uint8Array.of(STATUS.ok), ...(asked.wantsProof ? [u16(proof.length), proof] : [])]));
  };
  raw.onSession((session) => session.onStream((stream) => void reply(session, stream)));
  for (let i = 0; i < 2; i++) (await a.links.open(caller.aid, called.aid, 'tcp')).destroy();
  assert.deepEqual(shown, [true, false, true]);
});

test('the AID of an agent that does not exist is still well-formed', async () => {
  await using world = new LinkWorld();
  const [a, raw] = [await world.node(), await RawPeer.in(world)];
  a.inbox();
  const session = await raw.connect(a);
  const agent = newIdentity();
  const unknown = { ...newIdentity(), aid: nativeAid(new Uint8Array(32).fill(1)) };
  const stream = await session.link(header(agent, unknown, proofOf('caller', agent, session)));
  assert.equal(await statusOn(stream), STATUS.notHere);
});
