/** What hostile clients make a helper send, counted where packets leave its machine. */
import assert from 'node:assert/strict';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { type Address, formatAddress } from '../../../../src/foundation/address.ts';
import { networkTag } from '../../../../src/network/records/node-address.ts';
import { ANSWER_VALID_MS, MAX_UNANSWERED_PACKETS } from '../../../../src/network/transport/tls/destinations.ts';
import { DESTINATIONS_PER_CLIENT, DESTINATIONS_PER_SOURCE } from '../../../../src/network/transport/tls/server.ts';
import { TLS_STATUS } from '../../../../src/network/transport/tls/wire.ts';
import { REQUEST_BYTE } from '../../../../src/network/transport/udp-socket.ts';
import { eventually } from '../../../support/eventually.ts';
import { LabDaemon } from '../../../support/lab/daemons.ts';
import { Internet, recordDepartures } from '../../../support/lab/internet.ts';
import type { Machine } from '../../../support/lab/namespaces.ts';
import type { HostileCommand, HostileReply, Shot } from './hostile-process.ts';

const PROCESS = fileURLToPath(new URL('hostile-process.ts', import.meta.url));
const HELPER = '203.0.113.10';
const URL_OF_HELPER = `wss://${HELPER}/svcd/1`;
/** Answers with the same bytes. */
const WITNESS: Address = { host: '203.0.113.40', port: 7000 };
/** Answers with bytes that no node sends. */
const BABBLER: Address = { host: '203.0.113.40', port: 7001 };
const VICTIM = '203.0.113.50';
const VICTIM_V6 = '2001:db8:0:1::50';
const NUMBERS = [1, 2, 3, 4];
const MINUTE_MS = 60_000;

const TAGGED: Buffer = Buffer.concat([networkTag(''), Buffer.of(REQUEST_BYTE), Buffer.from('from a stranger')]);
const INITIAL: Buffer = Buffer.alloc(1200, 7);
INITIAL[0] = 0xc3;
INITIAL.writeUInt32BE(1, 1);
const SHORT: Buffer = Buffer.alloc(1200, 0x4a);
/** Each form that may open a destination, and one that may not. */
const FORMS: readonly Buffer[] = [TAGGED, INITIAL, Buffer.of(0), Buffer.alloc(16, 9), SHORT];

/** Never allowed for a client with a public address. */
const HOSTS: readonly string[] = [
  ...[
    '10.0.0.1',
    '10.66.0.1',
    '10.66.0.9',
    '172.16.0.1',
    '192.168.1.1',
    '100.64.0.1',
    '169.254.169.254',
    '127.0.0.1',
    '0.0.0.0',
  ],
  ...['224.0.0.77', '239.255.255.77', '255.255.255.255', '240.0.0.1'],
  ...['::1', '::', 'fe80::1', 'fd00::1', 'fec0::1', 'ff02::77', 'ff0e::77', '64:ff9b::a00:1', '2002:a00:1::1'],
];
const PORTS = [53, 123, 1023, 1900, 4121, 4122, 5353, 11_211, 65_535];
const LOW_PORTS = [1, 7, 19, 53, 123, 161, 389, 500, 1023];

/** Hostile clients of one machine, or the nodes that answer. */
class Hostile {
  readonly #child: ChildProcess;
  #settled = 0;

  constructor(machine: Machine) {
    this.#child = machine.fork(PROCESS);
  }

  async do(command: HostileCommand): Promise<HostileReply> {
    const answer = once(this.#child, 'message') as Promise<[HostileReply]>;
    this.#child.send(command);
    return (await answer)[0];
  }

  async connect(): Promise<void> {
    await eventually('the helper accepts a client', async () => {
      const { status } = await this.do({ do: 'connect', url: URL_OF_HELPER });
      return status === TLS_STATUS.ok;
    });
    await this.#settle();
  }

  /** Sends datagrams, and waits until the helper has handled all of them. */
  async attack(shots: readonly Shot[]): Promise<void> {
    await this.do({ do: 'shoot', shots });
    await this.#settle();
  }

  /**
   * A lent port forwards in order, so an answer of the witness proves that everything before has left. The question is
   * repeated: for a new client the witness is a new destination, which the helper permits only at a certain rate.
   */
  async #settle(): Promise<void> {
    for (const number of NUMBERS) {
      const asked = shot(number, WITNESS, Buffer.concat([TAGGED, Buffer.from(` ${++this.#settled}`)]));
      await eventually('the witness answers', async () => {
        await this.do({ do: 'shoot', shots: [asked] });
        return (await this.do({ do: 'has', datagram: asked.datagram })).has;
      });
    }
  }
}

function shot(number: number, to: Address, datagram: Buffer): Shot {
  return { number, to, datagram: datagram.toString('base64') };
}

/** Each form to each destination, over several ports. */
function shotsAt(destinations: readonly Address[], rounds: number): Shot[] {
  return Array.from({ length: rounds }, (_, round) =>
    destinations.flatMap((to, i) =>
      FORMS.map((datagram, form) => shot(NUMBERS[(i + form + round) % NUMBERS.length] ?? 1, to, datagram)),
    ),
  ).flat();
}

function ports(first: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => first + i);
}

test('what hostile clients make a helper send, at its interface', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const machine = await internet.publicMachine('helper', [10]);
  // A machine with a network behind it: only its owner may reach that.
  await machine.ip(['link add inner type bridge', 'addr add 10.66.0.1/16 dev inner', 'link set inner up']);
  await internet.publicMachine('victim', [50]);
  const answering = new Hostile(await internet.publicMachine('answering', [40]));
  await answering.do({ do: 'answer', port: WITNESS.port, bytes: null });
  await answering.do({ do: 'answer', port: BABBLER.port, bytes: SHORT.toString('base64') });
  const departures = await recordDepartures(machine);
  await using helper = await LabDaemon.start(machine, [], '', { listen: ':4121' });
  const client = new Hostile(await internet.publicMachine('client', [60]));
  /** Packets to destinations. */
  const packets = async (destinations: readonly Address[]): Promise<readonly number[]> => {
    const seen = await departures();
    return destinations.map((to) => seen.get(formatAddress(to)) ?? 0);
  };

  await t.test('nothing leaves for private, loopback, multicast or reserved addresses, or for low ports', async () => {
    const forbidden = [
      ...HOSTS.flatMap((host) => PORTS.map((port) => ({ host, port }))),
      ...[VICTIM, VICTIM_V6, HELPER].flatMap((host) => LOW_PORTS.map((port) => ({ host, port }))),
    ];
    await client.connect();
    await client.attack(shotsAt(forbidden, 3));
    const counts = await packets(forbidden);
    const reached = forbidden.filter((_, i) => counts[i] !== 0).map(formatAddress);
    assert.deepEqual(reached, []);
    assert.ok(((await packets([WITNESS]))[0] ?? 0) > 0, 'permitted packets are counted');
  });

  await t.test('destinations that do not answer, or answer something else, get three packets', async () => {
    const unanswered = [...ports(20_000, 40).map((port) => ({ host: VICTIM, port })), BABBLER];
    const since = performance.now();
    await client.connect();
    await client.attack(shotsAt(unanswered, 10));
    const counts = await packets(unanswered);
    const windows = Math.ceil((performance.now() - since) / ANSWER_VALID_MS);
    assert.equal(Math.min(...counts), MAX_UNANSWERED_PACKETS);
    assert.ok(Math.max(...counts) <= MAX_UNANSWERED_PACKETS * windows, `${Math.max(...counts)} in ${windows} windows`);
  });

  await t.test('a client, and all clients of one address, reach a limited number of new destinations', async () => {
    const victims = ports(30_000, 1000).map((port) => ({ host: VICTIM, port }));
    const since = performance.now();
    const reached = async (): Promise<number> => (await packets(victims)).filter((count) => count > 0).length;
    const permitted = (limit: number): number => limit * (1 + (performance.now() - since) / MINUTE_MS);
    const each = 100;
    for (let from = 0; from < victims.length; from += each) {
      const before = await reached();
      await client.connect();
      await client.attack(victims.slice(from, from + each).map((to, i) => shot(NUMBERS[i % 4] ?? 1, to, TAGGED)));
      assert.ok((await reached()) - before <= permitted(DESTINATIONS_PER_CLIENT));
    }
    const all = await reached();
    assert.ok(all > DESTINATIONS_PER_CLIENT, `only ${all} reached`);
    assert.ok(all <= permitted(DESTINATIONS_PER_SOURCE), `${all} reached`);
  });

  assert.ok((await helper.call<{ lent_ports: { dropped: number } }>('GET', '/status')).lent_ports.dropped > 0);
});
