import assert from 'node:assert/strict';
import { test } from 'node:test';
import { INTRODUCTIONS_PER_NODE } from '../../../src/network/reachability/helper.ts';
import { OPENING_HOPS, OPENING_PACKETS } from '../../../src/network/reachability/opening.ts';
import { PUNCHES_PER_PEER } from '../../../src/network/reachability/punch-guard.ts';
import { eventually } from '../../support/eventually.ts';
import { countArrivals, Internet } from '../../support/lab/internet.ts';
import type { Machine } from '../../support/lab/namespaces.ts';
import { Peer } from './peers.ts';

const MIB = 1024 * 1024;
const HELPER = '203.0.113.10';
const VICTIM = '203.0.113.50';
const VICTIM_V6 = '2001:db8:0:1::50';
const LIAR = '203.0.113.60';
const SPOILER = '203.0.113.61';
/** Datagrams that an attacker sends to each port per burst, and the interval of the bursts in milliseconds. */
const BURST = 20;
const BURST_MS = 10;

/** Floods ports of a host with datagrams similar to first handshake packets, until its machine stops. */
const FLOOD = `const [host, ...ports] = process.argv.slice(1);
const socket = require('node:dgram').createSocket('udp4');
const datagram = Buffer.alloc(1200, 0xc3);
setInterval(() => {
  for (let i = 0; i < ${BURST}; i++) for (const port of ports) socket.send(datagram, Number(port), host);
}, ${BURST_MS});`;

/** The bound UDP ports of a machine. */
async function udpPorts(machine: Machine): Promise<string[]> {
  const table = await machine.run('cat', ['/proc/net/udp']);
  return [...table.matchAll(/^\s*\d+: [0-9A-F]+:([0-9A-F]+) /gm)].map(([, port = '']) =>
    String(Number.parseInt(port, 16)),
  );
}

test('attacks: packets to a victim, and floods of a relay', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const helperMachine = await internet.publicMachine('helper', [10]);
  const victim = await internet.publicMachine('victim', [50]);
  const stranger = await internet.publicMachine('stranger', [70]);
  const helper = await Peer.start(helperMachine, { host: HELPER });
  const liar = await Peer.start(await internet.publicMachine('liar', [60]), { host: LIAR });
  const [near, far, demanding] = await Promise.all([
    Peer.start(await internet.behind('near', ['cone'], true)),
    Peer.start(await internet.behind('far', ['symmetric'])),
    Peer.start(await internet.behind('demanding', ['cone'])),
  ]);
  const spoiler = await Peer.start(await internet.publicMachine('spoiler', [61]), { host: SPOILER, relays: 'hostile' });
  const pair = await Promise.all(
    ['spoiled', 'spoiled2'].map(async (name) => Peer.start(await internet.behind(name, ['symmetric']))),
  );
  for (const peer of pair) await peer.join([spoiler.at(SPOILER)]);
  await near.join([helper.at(HELPER), liar.at(LIAR)]);
  for (const peer of [far, demanding]) await peer.join([helper.at(HELPER)]);
  const arrivals = await countArrivals(victim);

  await t.test('a caller that claims to listen at a victim causes no packets to it', async () => {
    for (const called of [near, far]) {
      const outcomes = await demanding.demand(called, VICTIM, INTRODUCTIONS_PER_NODE / 3);
      assert.ok(outcomes.includes('refused'), outcomes.join());
    }
    assert.deepEqual(await arrivals(), { packets: 0, bytes: 0 });
  });

  await t.test('a helper that introduces one caller repeatedly causes few packets', async () => {
    const outcomes = await liar.lie(near, VICTIM, 5 * PUNCHES_PER_PEER, 'one');
    assert.ok(outcomes.includes('ready') && outcomes.includes('refused'), outcomes.join());
    const { packets } = await arrivals();
    assert.ok(packets > 0 && packets <= PUNCHES_PER_PEER * OPENING_PACKETS, `the victim received ${packets} packets`);
  });

  await t.test(
    'a caller that claims the IPv6 address of a victim causes few packets with a low hop limit',
    async () => {
      const before = await arrivals();
      const distant = await countArrivals(victim, `ip6 hoplimit > ${OPENING_HOPS}`);
      const outcomes = await demanding.demand(near, VICTIM_V6, INTRODUCTIONS_PER_NODE / 3);
      assert.ok(outcomes.includes('ready') && outcomes.includes('refused'), outcomes.join());
      const packets = (await arrivals()).packets - before.packets;
      assert.ok(packets > 0 && packets <= PUNCHES_PER_PEER * OPENING_PACKETS, `the victim received ${packets} packets`);
      assert.equal((await distant()).packets, 0);
    },
  );

  await t.test('a relay that drops, replays and damages packets does not change the data', async () => {
    const [one, other] = pair;
    assert.ok(one && other);
    const { error, echoed, kind } = await one.call(other, 'relay', { bytes: MIB });
    assert.deepEqual({ error, echoed, kind }, { error: undefined, echoed: MIB, kind: 'relay' });
    assert.ok((await spoiler.relayed()) >= 2 * MIB);
  });

  await t.test('an attacker at the ports of a relay session changes nothing and receives nothing', async () => {
    const before = new Set(await udpPorts(helperMachine));
    const strangers = await countArrivals(stranger);
    const calling = far.call(near, 'relay', { bytes: 8 * MIB });
    const ports = await eventually('the relay opened its ports', async () => {
      const opened = (await udpPorts(helperMachine)).filter((port) => !before.has(port));
      return opened.length === 2 && opened;
    });
    stranger.spawn(process.execPath, ['-e', FLOOD, HELPER, ...ports]);
    const { error, echoed } = await calling;
    assert.deepEqual({ error, echoed }, { error: undefined, echoed: 8 * MIB });
    await eventually('the flood arrived', async () => (await helper.dropped()) > 10 * BURST);
    assert.deepEqual(await strangers(), { packets: 0, bytes: 0 });
  });
});
