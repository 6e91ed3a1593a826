import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KnownNodes } from '../../../src/network/known-nodes.ts';
import {
  MAX_PUNCHES,
  MAX_SPRAYS,
  MIN_WITNESSES,
  PUNCHES_PER_HOST,
  PUNCHES_PER_NETWORK,
  PUNCHES_PER_PEER,
  PunchGuard,
  SPRAYS_PER_HOST,
  SPRAYS_PER_PEER,
  WITNESS_TTL_MS,
} from '../../../src/network/reachability/punch-guard.ts';
import { FIRST_MAPPED_PORT } from '../../../src/network/transport/udp-socket.ts';
import { TestClock } from '../../support/test-clock.ts';

const HELPER = { host: '203.0.113.10', port: 4000 };
const OTHER_HELPER = { host: '198.51.100.10', port: 4000 };
/** Each target is in a different network. */
const target = (n: number, port = 5000) => ({ host: `45.${n}.0.1`, port });
const peer = (n: number): Uint8Array => new Uint8Array(32).fill(n);

function guarded() {
  const clock = new TestClock();
  const known = new KnownNodes();
  return { clock, known, guard: new PunchGuard(clock, known) };
}

/** How many of these attempts are allowed. */
function allowed(times: number, ask: (i: number) => boolean): number {
  return Array.from({ length: times }, (_, i) => ask(i)).filter((is) => is).length;
}

test('a peer gets few packets, even with many hosts, and more a minute later', () => {
  const { guard, clock } = guarded();
  assert.equal(
    allowed(50, (i) => guard.mayPunch(peer(1), target(i), HELPER)),
    PUNCHES_PER_PEER,
  );
  assert.equal(guard.mayPunch(peer(2), target(1), HELPER), true);
  clock.advance(60_000);
  assert.equal(
    allowed(50, (i) => guard.mayPunch(peer(1), target(i), HELPER)),
    PUNCHES_PER_PEER,
  );
});

test('a host gets few packets, even if many peers name it', () => {
  const { guard } = guarded();
  assert.equal(
    allowed(100, (i) => guard.mayPunch(peer(i), target(7, 5000 + i), HELPER)),
    PUNCHES_PER_HOST,
  );
});

test('a source that names other hosts uses up the limit of its host, even with many keys', () => {
  const { guard } = guarded();
  const { host } = target(0);
  assert.equal(
    allowed(100, (i) => guard.mayPunch(peer(i), target(1 + i), HELPER, host)),
    PUNCHES_PER_HOST,
  );
  assert.equal(guard.mayPunch(peer(200), target(200), HELPER), true, 'other hosts are not affected');
});

test('all IPv6 /64s of a /48 leave some for other hosts', () => {
  const { guard } = guarded();
  const inOne = (i: number) => ({ host: `2001:db8:1:${i.toString(16)}::1`, port: 5000 });
  assert.equal(
    allowed(500, (i) => guard.mayPunch(peer(i), inOne(i), HELPER)),
    PUNCHES_PER_NETWORK,
  );
  assert.equal(guard.mayPunch(peer(200), target(200), HELPER), true);
});

test('there is a limit for all peers and hosts', () => {
  const { guard } = guarded();
  assert.equal(
    allowed(250, (i) => guard.mayPunch(peer(i), target(i), HELPER)),
    MAX_PUNCHES,
  );
});

test('no packets are sent to well-known ports, or to private hosts named by a public helper', () => {
  const { guard } = guarded();
  assert.equal(guard.mayPunch(peer(1), target(1, FIRST_MAPPED_PORT - 1), HELPER), false);
  for (const host of ['192.168.1.1', '10.0.0.1', '127.0.0.1', 'fe80::1', '224.0.0.1'])
    assert.equal(guard.mayPunch(peer(1), { host, port: 5000 }, HELPER), false, host);
  assert.equal(guard.mayPunch(peer(1), { host: '192.168.1.1', port: 5000 }, { host: '192.168.1.2', port: 1 }), true);
});

test('random ports are used only after helpers in different networks saw the peer, for a limited time', () => {
  const { guard, clock } = guarded();
  const { host } = target(1);
  guard.addWitness(peer(1), host, HELPER);
  guard.addWitness(peer(1), host, HELPER);
  assert.equal(guard.countWitnesses(peer(1), host), 1);
  assert.equal(guard.maySpray(peer(1), host), false, 'the same helper twice');
  guard.addWitness(peer(1), target(2).host, OTHER_HELPER);
  assert.equal(guard.maySpray(peer(1), host), false, 'another helper saw it elsewhere');
  guard.addWitness(peer(1), host, OTHER_HELPER);
  assert.equal(guard.countWitnesses(peer(1), host), MIN_WITNESSES);
  assert.equal(guard.maySpray(peer(1), host), true);
  assert.equal(guard.maySpray(peer(2), host), false, 'another peer');
  clock.advance(WITNESS_TTL_MS);
  assert.equal(guard.maySpray(peer(1), host), false, 'too long ago');
});

test('random ports are limited per peer, per host and in total', () => {
  const witnessed = (guard: PunchGuard, n: number, host: string): boolean => {
    guard.addWitness(peer(n), host, HELPER);
    guard.addWitness(peer(n), host, OTHER_HELPER);
    return guard.maySpray(peer(n), host);
  };
  const first = guarded().guard;
  assert.equal(
    allowed(20, (i) => witnessed(first, 1, target(i).host)),
    SPRAYS_PER_PEER,
  );
  const second = guarded().guard;
  assert.equal(
    allowed(20, (i) => witnessed(second, i, target(1).host)),
    SPRAYS_PER_HOST,
  );
  const third = guarded().guard;
  assert.equal(
    allowed(20, (i) => witnessed(third, i, target(i).host)),
    MAX_SPRAYS,
  );
});

test('strangers of a network, and all strangers together, leave room for called peers and nodes in use', () => {
  const { guard, known } = guarded();
  const sameNetwork = (i: number) => ({ host: `192.0.2.${i}`, port: 5000 });
  assert.equal(
    allowed(100, (i) => guard.mayPunch(peer(i), sameNetwork(i), HELPER)),
    PUNCHES_PER_NETWORK,
  );
  assert.equal(
    allowed(250, (i) => guard.mayPunch(peer(i), target(i), HELPER)),
    MAX_PUNCHES - PUNCHES_PER_NETWORK,
  );
  assert.equal(guard.mayPunch(peer(251), sameNetwork(251), HELPER), false);
  guard.markCalled(peer(251));
  assert.equal(guard.mayPunch(peer(251), sameNetwork(251), HELPER), true);
  known.note(peer(252));
  assert.equal(
    allowed(50, () => guard.mayPunch(peer(252), sameNetwork(252), HELPER)),
    PUNCHES_PER_PEER,
  );
});

test('random ports for strangers leave room for called peers, which have a separate limit', () => {
  const { guard } = guarded();
  const spray = (n: number): boolean => {
    const { host } = target(n);
    guard.addWitness(peer(n), host, HELPER);
    guard.addWitness(peer(n), host, OTHER_HELPER);
    return guard.maySpray(peer(n), host);
  };
  assert.equal(allowed(20, spray), MAX_SPRAYS);
  const called = (i: number): boolean => {
    guard.markCalled(peer(100 + i));
    return spray(100 + i);
  };
  assert.equal(allowed(20, called), MAX_SPRAYS);
});
