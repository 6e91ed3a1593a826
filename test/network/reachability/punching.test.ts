import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OPENING_PACKETS } from '../../../src/network/reachability/opening.ts';
import { PUNCHES_PER_HOST } from '../../../src/network/reachability/punch-guard.ts';
import { BIRTHDAY_ROUNDS } from '../../../src/network/transport/engine-connection.ts';
import { countArrivals, Internet } from '../../support/lab/internet.ts';
import type { NatKind } from '../../support/lab/nat.ts';
import type { PeerAddress, PeerReply } from './peer-process.ts';
import { Peer } from './peers.ts';

const MIB = 1024 * 1024;
/** Last bytes of public addresses. */
const HELPERS = [10, 11];
const OPEN = 40;
const VICTIM = 50;
const LIAR = 60;

const publicHost = (number: number): string => `203.0.113.${number}`;

/** Two helpers on one machine with two addresses, as if they were independent. */
async function startHelpers(internet: Internet) {
  const machine = await internet.publicMachine('helpers', HELPERS);
  const peers = await Promise.all(HELPERS.map((number) => Peer.start(machine, { host: publicHost(number) })));
  const known = peers.map((peer, i) => peer.at(publicHost(HELPERS[i] ?? 0)));
  return { peers, known };
}

interface Joined {
  readonly peer: Peer;
  readonly reply: PeerReply;
}

async function behind(
  internet: Internet,
  name: string,
  kinds: readonly NatKind[],
  helpers: readonly PeerAddress[],
  opens = true,
): Promise<Joined> {
  const peer = await Peer.start(await internet.behind(name, kinds), { opens });
  return { peer, reply: await peer.join(helpers) };
}

/**
 * Calls a node: the path must have the expected kind and carry bytes in both directions. In 1.7 of 100 rounds no random
 * ports match, so the call may use all rounds that are allowed.
 */
async function reaches(a: Joined, b: Joined, by: 'punch' | 'relay' | 'ipv6', outbound: boolean): Promise<void> {
  const {
    error,
    echoed,
    kind,
    outbound: dialled,
  } = await a.peer.call(b.peer, by, {
    tries: BIRTHDAY_ROUNDS,
    bytes: MIB,
  });
  assert.equal(error, undefined);
  assert.deepEqual(
    { echoed, kind, dialled },
    { echoed: MIB, kind: by === 'relay' ? 'relay' : 'punched', dialled: outbound },
  );
}

test('nodes behind routers connect directly, or over a relay if both have symmetric NATs', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const helpers = await startHelpers(internet);
  const place = (name: string, kinds: readonly NatKind[]): Promise<Joined> =>
    behind(internet, name, kinds, helpers.known);
  const [cone, otherCone, full, double, symmetric, otherSymmetric] = await Promise.all([
    place('cone', ['cone']),
    place('cone2', ['cone']),
    place('full', ['fullCone']),
    place('double', ['cone', 'cone']),
    place('sym', ['symmetric']),
    place('sym2', ['symmetric']),
  ]);

  await t.test('each node detects its NAT', async () => {
    const peer = await Peer.start(await internet.publicMachine('open', [OPEN]));
    const reply = await peer.join(helpers.known);
    assert.equal(reply.mapping, 'open');
    const found = [cone, otherCone, full, double, symmetric, otherSymmetric].map(({ reply }) => reply.mapping);
    assert.deepEqual(found, ['cone', 'cone', 'cone', 'cone', 'symmetric', 'symmetric']);
    // Without a NAT here, the symmetric node dials once, from any port.
    await reaches({ peer, reply }, symmetric, 'punch', false);
  });
  await t.test('cone and cone', () => reaches(cone, otherCone, 'punch', true));
  await t.test('full cone and cone', () => reaches(full, cone, 'punch', true));
  await t.test('cone and full cone', () => reaches(otherCone, full, 'punch', true));
  await t.test('double NAT and single NAT', () => reaches(double, otherCone, 'punch', true));
  await t.test('single NAT and double NAT', () => reaches(cone, double, 'punch', true));
  await t.test('a caller behind a symmetric NAT', () => reaches(symmetric, cone, 'punch', true));
  await t.test('a called node behind a symmetric NAT, which therefore dials', () =>
    reaches(double, otherSymmetric, 'punch', false),
  );
  await t.test('two symmetric NATs: no punching', async () => {
    const { error = '' } = await symmetric.peer.call(otherSymmetric.peer, 'punch');
    assert.match(error, /cannot be reached/);
  });
  await t.test('two symmetric NATs: a relay forwards the packets', async () => {
    const before = await helpers.peers[0]?.relayed();
    await reaches(symmetric, otherSymmetric, 'relay', true);
    const after = (await helpers.peers[0]?.relayed()) ?? 0;
    assert.ok(after - (before ?? 0) >= 2 * MIB, `${after} bytes were relayed`);
  });
});

test('without packets that open the filter nothing gets through', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const helpers = await startHelpers(internet);
  const [a, b] = await Promise.all([
    behind(internet, 'a', ['cone'], helpers.known),
    behind(internet, 'b', ['cone'], helpers.known, false),
  ]);
  const { error, kind } = await a.peer.call(b.peer, 'punch');
  assert.equal(kind, undefined);
  assert.match(error ?? '', /SvcError/);
});

test('nodes behind firewalls connect over IPv6', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const { known } = await startHelpers(internet);
  const place = async (name: string, hasIpv6 = true, opens = true): Promise<Joined> => {
    const peer = await Peer.start(await internet.behind(name, ['symmetric'], hasIpv6), { opens });
    return { peer, reply: await peer.join(known) };
  };
  const [a, b, shut, without] = await Promise.all([
    place('a'),
    place('b'),
    place('shut', true, false),
    place('without', false),
  ]);
  await t.test('even with symmetric NATs for IPv4', () => reaches(a, b, 'ipv6', true));
  await t.test('not if the called node opens no filter', async () => {
    assert.match((await a.peer.call(shut.peer, 'ipv6')).error ?? '', /timed out/);
  });
  await t.test('not if one of them has no IPv6', async () => {
    assert.match((await without.peer.call(a.peer, 'ipv6')).error ?? '', /no IPv6 route/);
  });
});

test('a malicious helper cannot make a node send more than a few packets to a victim', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const { known } = await startHelpers(internet);
  const victim = await internet.publicMachine('victim', [VICTIM]);
  const liar = await Peer.start(await internet.publicMachine('liar', [LIAR]), { host: publicHost(LIAR) });
  const node = await behind(internet, 'node', ['cone'], [...known, liar.at(publicHost(LIAR))]);
  const arrivals = await countArrivals(victim);
  const outcomes = await liar.lie(node.peer, publicHost(VICTIM), 3 * PUNCHES_PER_HOST);
  assert.deepEqual(outcomes, ['ready', 'refused', 'relay']);
  const { packets, bytes } = await arrivals();
  assert.ok(packets > 0, 'the attack reaches the victim');
  assert.ok(packets <= PUNCHES_PER_HOST * OPENING_PACKETS, `the victim received ${packets} packets`);
  assert.ok(bytes <= packets * 64, `the victim received ${bytes} bytes`);
});
