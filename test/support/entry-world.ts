/** An entry with real TCP clients, and an agent on another node that ends TLS. Links use the in-memory network. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { Entry } from '../../src/capabilities/entry/entry.ts';
import { EntryNames } from '../../src/capabilities/entry/entry-names.ts';
import { NameHolder, type PublicConnection } from '../../src/capabilities/public-names/name-holder.ts';
import { type Clock, systemClock } from '../../src/foundation/clock.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { AgentStore } from '../../src/foundation/store/agents.ts';
import { EntryStore } from '../../src/foundation/store/entry.ts';
import { MetaStore } from '../../src/foundation/store/meta.ts';
import { PublicNameStore } from '../../src/foundation/store/public-names.ts';
import { MIGRATIONS } from '../../src/foundation/store/schema.ts';
import { Store } from '../../src/foundation/store/store.ts';
import { relayByteLimits } from '../../src/network/reachability/relay.ts';
import { RelayBudgets } from '../../src/network/reachability/relay-budgets.ts';
import { type LinkNode, LinkWorld } from './link-world.ts';
import { SELF_SIGNED } from './self-signed.ts';

export const DOMAIN = 'vps.example.org';
export const NAME = `demo.${DOMAIN}`;
/** The address of clients unless a test names another one. */
export const CLIENT = '203.0.113.9';

interface EntryWorldOptions {
  readonly domains?: readonly string[];
  readonly clock?: Clock;
  readonly connections?: number;
  readonly proxies?: readonly string[];
  readonly bytesPerSecond?: number;
  readonly bytesPerDay?: number;
}

/** A node with one agent that may hold names. */
export function holderOn(node: LinkNode, clock: Clock = systemClock) {
  const agent = node.host();
  const store = Store.open(':memory:', MIGRATIONS);
  new AgentStore(store).put({ keyName: 'key', delegation: agent.delegation, serviceTcp: '', registeredAt: 0 });
  const holder = new NameHolder({
    clock,
    log: silentLog,
    random: () => 0,
    store: new PublicNameStore(store),
    links: node.links,
    network: { reachability: () => ({ ready: true }), onReachability: () => () => {} },
    keep: () => () => {},
    memory: new MetaStore(store),
    isLocal: (aid) => node.agents.has(aid),
  });
  return { aid: agent.aid, holder };
}

export async function entryWorld(t: TestContext, options: EntryWorldOptions = {}) {
  const { clock = systemClock, bytesPerSecond = 1e9, bytesPerDay = 1e12 } = options;
  const world = new LinkWorld();
  const [home, vps] = [await world.node(), await world.node()];
  const node = vps.hostNode();
  const names = new EntryNames(options.domains ?? [DOMAIN], new EntryStore(Store.open(':memory:', MIGRATIONS)), clock);
  const entry = new Entry(
    { nodeAid: node.aid, connections: options.connections ?? 1000, proxies: options.proxies ?? [] },
    {
      clock,
      log: silentLog,
      names,
      links: vps.links,
      budgets: new RelayBudgets(relayByteLimits(bytesPerSecond, bytesPerDay), { clock }),
      descriptors: () => 10_000,
    },
  );
  await entry.start();
  const { aid, holder } = holderOn(home, clock);

  /** The address of the next client. */
  const from = { next: CLIENT };
  /** Connections for this node itself, with the address that a web server named. */
  const kept: { readonly socket: Socket; readonly source: string | null }[] = [];
  const port = createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => {});
    entry.route(socket, from.next, (source) => kept.push({ socket, source }));
  });
  port.listen(0, '127.0.0.1');
  await once(port, 'listening');
  const at = { host: '127.0.0.1', port: (port.address() as AddressInfo).port };

  // The agent.
  const connections: PublicConnection[] = [];
  const agentStreams: Duplex[] = [];
  const sockets: TLSSocket[] = [];
  const web = createTlsServer({ ...SELF_SIGNED, ALPNProtocols: ['http/1.1'] }, (socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.pipe(socket);
  });
  web.on('tlsClientError', () => {});
  holder.onConnection((connection, stream) => {
    connections.push(connection);
    agentStreams.push(stream);
    web.emit('connection', stream);
  });

  const clients: Socket[] = [];
  /** A TCP connection of a client. */
  const dial = async (source = CLIENT): Promise<Socket> => {
    from.next = source;
    const socket = connect(at).on('error', () => {});
    clients.push(socket);
    await once(socket, 'connect');
    return socket;
  };
  /** A TLS connection of a client. Rejects if it fails. */
  const dialTls = async (servername = NAME, source = CLIENT, before?: Uint8Array): Promise<TLSSocket> => {
    const raw = await dial(source);
    if (before !== undefined) raw.write(before);
    const socket = connectTls({ socket: raw, servername, rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    socket.on('error', () => {});
    return socket;
  };
  t.after(async () => {
    for (const socket of [...clients, ...sockets]) socket.destroy();
    port.close();
    await entry.stop();
    await holder.stop();
    await world[Symbol.asyncDispose]();
  });
  return {
    world,
    home,
    vps,
    node,
    names,
    entry,
    aid,
    holder,
    kept,
    at,
    connections,
    agentStreams,
    sockets,
    dial,
    dialTls,
  };
}

/** Everything that a socket reads until it ends; rejects if it is reset. */
export async function textOf(socket: Duplex): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Resolves when a socket is closed, with a reset or without. */
export async function closed(socket: Duplex): Promise<void> {
  if (socket.destroyed) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  socket
    .once('close', resolve)
    .on('error', () => {})
    .resume();
  await promise;
}
