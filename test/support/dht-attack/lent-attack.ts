/**
 * Runs in a network namespace with public addresses: a victim, helpers that lend UDP ports, and an attacker with one
 * address. The attacker claims places in the victim's routing table from its own ports, and from lent ports of every
 * helper. Prints `LentAttackFigures` as JSON.
 */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { Address } from '../../../src/foundation/address.ts';
import { systemClock } from '../../../src/foundation/clock.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { networkTag } from '../../../src/network/records/node-address.ts';
import { decodeDatagram, encodeDatagram } from '../../../src/network/records/rpc/messages.ts';
import { TlsServer } from '../../../src/network/transport/tls/server.ts';
import { decodeBatch, TLS_PATH } from '../../../src/network/transport/tls/wire.ts';
import { borrow } from '../../network/transport/tls/borrower.ts';
import { eventually } from '../eventually.ts';
import { NodeRequestHub } from '../memory-node-requests.ts';
import { dhtNode, reached } from '../testnet-dht.ts';
import type { LentAttackFigures } from './attack-options.ts';
import { encodePing, HostileNodes, readRequest } from './hostile-node.ts';
import { positionAt } from './positions.ts';

const NETWORK = 'attacked';
const TAG = networkTag(NETWORK);
const VICTIM: Address = { host: '45.1.2.3', port: 4121 };
const HELPERS = ['62.1.2.3', '77.1.2.3', '93.1.2.3', '109.1.2.3'] as const;
const ATTACKER = '151.1.2.3';
/** Ports at each address. The victim greets 32 strangers at one time. */
const PORTS = 8;
const NEVER_ENDS = { after: () => {} };

const hub = new NodeRequestHub();
const victim = dhtNode(hub, { listen: VICTIM, network: NETWORK });
await victim.dht.start();
await reached(victim.dht, (r) => r.inRoutingTables);
const honest = HELPERS.map((host) =>
  dhtNode(hub, { listen: { host, port: 4121 }, network: NETWORK, bootstrap: [VICTIM] }),
);
await Promise.all(honest.map(({ dht }) => dht.start()));
await Promise.all(honest.map(({ dht }) => reached(dht, (r) => r.inRoutingTables)));
const hostile = new HostileNodes({
  keys: [],
  nearNetworks: [],
  reportsWrongAddress: false,
  positions: [],
  network: NETWORK,
  own: new Map(),
});

/** Addresses in the victim's table that no honest node has. */
function foreign(): readonly Address[] {
  const isHonest = ({ host, port }: Address): boolean => port === 4121 && HELPERS.some((helper) => helper === host);
  return victim.dht.peers().filter((peer) => !isHonest(peer));
}

function hostsOf(addresses: readonly Address[]): readonly string[] {
  return [...new Set(addresses.map(({ host }) => host))].toSorted();
}

/** A request without a routing id. Its answer shows the address of the sender. */
function question(): Uint8Array {
  const none = { id: null, token: null, target: null, value: null };
  return encodeDatagram({ kind: 'request', requestId: 7, to: VICTIM, internal: true, command: 0, ...none }, TAG);
}

/** The answer of a hostile node to a request of the victim; null if the datagram is no request. */
function answerOf(at: Address, datagram: Buffer): Buffer | null {
  const request = readRequest(datagram);
  return request === null ? null : hostile.answer(positionAt(at.host, at.port), request, VICTIM);
}

/** The attack from the attacker's own address. */
async function attackDirectly(): Promise<void> {
  const pings: (() => void)[] = [];
  for (let i = 0; i < PORTS; i++) {
    const socket = createSocket('udp4').unref();
    socket.bind(0, ATTACKER);
    await once(socket, 'listening');
    const at = { host: ATTACKER, port: socket.address().port };
    socket.on('message', (datagram) => {
      const answer = answerOf(at, datagram);
      if (answer !== null) socket.send(answer, VICTIM.port, VICTIM.host);
    });
    const ping = encodePing(positionAt(at.host, at.port), VICTIM, TAG);
    pings.push(() => socket.send(ping, VICTIM.port, VICTIM.host));
  }
  // The victim may still wait for answers of lent ports.
  await eventually('the victim lists the attacker', () => {
    for (const ping of pings) ping();
    return hostsOf(foreign()).includes(ATTACKER);
  });
}

/** A helper that lends ports of its address to everyone. */
async function lender(host: string): Promise<TlsServer> {
  const server = new TlsServer(
    {
      key: KeyPair.generate(),
      tag: TAG,
      sessions: 10,
      certificate: { cert: '', key: '' },
      hosts: { ipv4: host, ipv6: '::1' },
    },
    {
      clock: systemClock,
      log: silentLog,
      listeners: () => [{ host, port: 0, isTls: true, isNamed: true }],
      helps: () => true,
      isKnown: () => false,
      openAccount: () => ({ spend: () => true, close: () => {} }),
      mayDial: () => true,
      places: { localHost: (other) => (other === host ? host : null), localPort: () => null, seenHost: host },
      usesLoopback: () => true,
      descriptors: () => 1024,
    },
  );
  await server.start();
  return server;
}

/** The attack from lent ports of one helper. */
async function attackThrough(server: TlsServer): Promise<void> {
  const { host = '', port = 0 } = server.addresses[0] ?? {};
  const client = await borrow(NEVER_ENDS, `wss://${host}:${port}${TLS_PATH}`, {
    tag: TAG,
    localAddress: ATTACKER,
  });
  /** The address of each lent port. */
  const places = new Map<number, Address>();
  client.socket.on('message', (batch: Buffer) => {
    for (const { number, datagram } of decodeBatch(batch) ?? []) {
      const at = places.get(number);
      const answer = at === undefined ? null : answerOf(at, Buffer.from(datagram));
      if (answer !== null) client.send(number, VICTIM, answer);
      const seen = decodeDatagram(datagram, TAG);
      if (at !== undefined || seen?.kind !== 'answer') continue;
      places.set(number, seen.to);
      client.send(number, VICTIM, encodePing(positionAt(seen.to.host, seen.to.port), VICTIM, TAG));
    }
  });
  // A new destination gets three packets until it answers.
  client.send(1, VICTIM, question());
  await eventually('the victim answers', () => places.size === 1);
  for (let number = 2; number <= PORTS; number++) client.send(number, VICTIM, question());
  await eventually('each lent port has an address', () => places.size === PORTS);
  // The victim pings the ports: the attacker answers, or the helper drops the pings.
  const isListed = (): boolean => foreign().some((node) => node.host === host);
  await eventually('the victim has pinged the ports', () => isListed() || server.usage.dropped >= PORTS);
}

const servers = await Promise.all(HELPERS.map(lender));
for (const server of servers) await attackThrough(server);
const throughLentPorts = hostsOf(foreign());
await attackDirectly();
const [first] = honest;
const figures: LentAttackFigures = {
  throughLentPorts,
  directly: hostsOf(foreign()),
  sourceOfBorrower: victim.dht.sourceAt(HELPERS[0], KeyPair.generate().publicKey),
  sourceOfHelper: victim.dht.sourceAt(HELPERS[0], first?.nodeKey ?? new Uint8Array()),
};
console.log(JSON.stringify(figures));
process.exit();
