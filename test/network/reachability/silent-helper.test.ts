import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { type TestContext, test } from 'node:test';
import { type Address, formatAddress, parseContact } from '../../../src/foundation/address.ts';
import { abortError } from '../../../src/foundation/deadline.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { UDP_WAIT_MS, UdpFallback } from '../../../src/network/reachability/udp-fallback.ts';
import { networkTag } from '../../../src/network/records/node-address.ts';
import type { DhtPeer } from '../../../src/network/records/types.ts';
import type { HelperTarget } from '../../../src/network/transport/borrowing.ts';
import { UdpOverTls } from '../../../src/network/transport/tls/client.ts';
import type { DatagramWebSocket } from '../../../src/network/transport/tls/pacing.ts';
import { Proxies } from '../../../src/network/transport/tls/proxy.ts';
import { TlsSession } from '../../../src/network/transport/tls/session.ts';
import { decodeBatch, encodeEntry, type HelperHello, TLS_STATUS } from '../../../src/network/transport/tls/wire.ts';
import type { BorrowedPort, UdpSocket } from '../../../src/network/transport/udp-socket.ts';
import { TestClock } from '../../support/test-clock.ts';

/** Longest gap of the traffic between two nodes when the helper of both falls silent, milliseconds. */
const MAX_GAP_MS = 6_000;
/** The same if the nodes have just tried the helper, so that the next trial waits for the pause. */
const MAX_GAP_AFTER_TRIAL_MS = 9_000;
/** One way between any two machines, milliseconds. */
const WAY_MS = 20;
/** Pause between two packets of the open tunnel, milliseconds. */
const TICK_MS = 100;
const [MAIN, SPARE] = ['203.0.113.1', '198.51.100.1'] as const;
/** Keeps the published address of each node. */
const DIRECTORY: Address = { host: '192.0.2.1', port: 4121 };
const OTHER: Address = { host: '192.88.98.1', port: 4121 };
const NEVER = Number.NEGATIVE_INFINITY;

type Receiver = (text: string, from: Address) => void;

/** Public UDP addresses. */
class Internet {
  readonly clock = new TestClock();
  readonly #receivers = new Map<string, Receiver>();

  listen(at: Address, receiver: Receiver): void {
    this.#receivers.set(formatAddress(at), receiver);
  }

  send(text: string, from: Address, to: Address): void {
    this.clock.after(WAY_MS, () => this.#receivers.get(formatAddress(to))?.(text, from));
  }
}

/** A helper in memory. While it is silent, it keeps its connections open and reads nothing. */
class Helper {
  isSilent = false;
  readonly address: Address;
  readonly #internet: Internet;
  readonly #hello: HelperHello;
  #lastPort = 50_000;

  constructor(internet: Internet, host: string, number: number) {
    this.#internet = internet;
    this.address = { host, port: 4121 };
    const nodeKey = new Uint8Array(32).fill(number);
    const zeros = { exporter: new Uint8Array(32), resume: new Uint8Array(16) };
    this.#hello = { status: TLS_STATUS.ok, nodeKey, ...zeros, isResumed: false, ports: 32, host };
    internet.listen(this.address, (text, from) => {
      if (!this.isSilent && text === 'who?') internet.send('me', this.address, from);
    });
  }

  async open(target: HelperTarget, signal: AbortSignal): Promise<TlsSession> {
    const { clock } = this.#internet;
    await new Promise<void>((resolve, reject) => {
      signal.addEventListener('abort', () => reject(abortError(signal)), { once: true });
      clock.after(8 * WAY_MS, () => (this.isSilent ? undefined : resolve()));
    });
    const opened = { ws: this.#socket(), host: target.host, proxy: null, exporter: this.#hello.exporter };
    return new TlsSession({ target }, opened, this.#hello, clock);
  }

  /** The client's side of a new connection. */
  #socket(): DatagramWebSocket {
    const { clock } = this.#internet;
    const events = new EventEmitter();
    const lent = new Map<number, Address>();
    const afterWay = (task: () => void): void => void clock.after(WAY_MS, () => (this.isSilent ? undefined : task()));
    const portOf = (number: number): Address => {
      const known = lent.get(number);
      if (known !== undefined) return known;
      const port = { host: this.address.host, port: ++this.#lastPort };
      lent.set(number, port);
      this.#internet.listen(port, (text, remote) =>
        afterWay(() => events.emit('message', encodeEntry({ number, remote, datagram: Buffer.from(text) }), true)),
      );
      return port;
    };
    const socket = {
      bufferedAmount: 0,
      send: (message: Uint8Array) =>
        afterWay(() => {
          for (const { number, remote, datagram } of decodeBatch(message) ?? [])
            if (remote === null) lent.delete(number);
            else this.#internet.send(Buffer.from(datagram).toString(), portOf(number), remote);
        }),
      ping: (payload: Uint8Array) => afterWay(() => afterWay(() => events.emit('pong', payload))),
      close: () => {},
      terminate: () => {},
    };
    return Object.assign(events, socket);
  }
}

/** Asks nodes for their keys through the ports of a helper. */
function trialPort(socket: UdpSocket) {
  return {
    identify: async (address: Address) =>
      await new Promise((resolve) => {
        socket.on('message', (_datagram: Buffer, from: Address) => {
          if (formatAddress(from) === formatAddress(address)) resolve({ nodeKey: new Uint8Array(32).fill(9), address });
        });
        void socket.send(Buffer.from('who?'), address.port, address.host);
      }),
    close: () => socket.close(),
  };
}

/** A node without UDP. It publishes its address after each change, and sends packets to the other node. */
class Node {
  readonly name: string;
  readonly fallback: UdpFallback;
  readonly tls: UdpOverTls;
  /** When the other node answered, milliseconds of the monotonic clock. */
  readonly answersAt: number[] = [];
  readonly #peer: string;
  readonly #clock: TestClock;
  #port: BorrowedPort | null = null;
  #peerAt: Address | null = null;

  constructor(name: string, peer: string, helpers: readonly Helper[], clock: TestClock) {
    this.name = name;
    this.#peer = peer;
    this.#clock = clock;
    this.tls = new UdpOverTls({
      clock,
      log: silentLog,
      identity: { key: KeyPair.generate(), tag: networkTag('') },
      proxies: new Proxies(() => ({ proxy: 'none', proxy_command: '', tls_ca: '' }), {}),
      ca: () => '',
    });
    this.tls.open = async (target, signal) => {
      const helper = helpers.find(({ address }) => address.host === target.host);
      if (helper === undefined) throw new SvcError('connect_failed');
      return await helper.open(target, signal);
    };
    const places = helpers.map(({ address }) => address);
    this.fallback = new UdpFallback({
      clock,
      log: silentLog,
      borrowing: this.tls,
      records: {
        lastAnswerAt: NEVER,
        lastPublicAnswerAt: NEVER,
        contacts: () =>
          places.map((contact) => ({ contact, state: 'untried', hasAnswered: false, addresses: [contact] })),
        places: () => places,
        peers: () => [OTHER, DIRECTORY] as DhtPeer[],
        reachability: () => ({ ready: true, peers: 2 }) as never,
        onReachability: () => () => {},
        identify: async () => null,
        carriesQuic: async () => false,
        addNode: () => {},
        openPort: () => ({ neighbors: async () => [], close: async () => {} }) as never,
        openPortAt: (socket) => trialPort(socket) as never,
        openSystemPort: () => ({ identify: async () => null, close: async () => {} }) as never,
      },
      endpoint: { dial: async () => await Promise.reject(new SvcError('timeout')) },
      pool: { connections: () => [], onPathsWithdrawn: async () => {}, usesWithdrawable: false },
      storedHelpers: () => [],
      isOwnHost: () => false,
      isAllowed: () => true,
      isIpv6Only: () => false,
      lacksListenAddress: () => false,
      onSwitch: () => this.#send(`publish ${name}`, DIRECTORY),
    });
  }

  get helper(): string | undefined {
    return this.tls.session?.target.host;
  }

  /** One packet of the tunnel, to the address that the directory named last. */
  tick(): void {
    this.#send(`where ${this.#peer}`, DIRECTORY);
    if (this.#peerAt !== null) this.#send('packet', this.#peerAt);
  }

  #send(text: string, to: Address): void {
    if (this.#port === null) {
      this.#port = this.tls.borrow();
      this.#port?.receive((datagram, from) => this.#receive(Buffer.from(datagram).toString(), from));
    }
    this.#port?.send(Buffer.from(text), to);
  }

  #receive(text: string, from: Address): void {
    if (text === 'packet') this.#send('answer', from);
    else if (text === 'answer') this.answersAt.push(this.#clock.monotonic());
    else this.#peerAt = parseContact(text);
  }
}

/** Two nodes with an open tunnel, both on the same helper and with the same spare. */
async function world(t: TestContext) {
  const internet = new Internet();
  const { clock } = internet;
  const [main, spare] = [new Helper(internet, MAIN, 1), new Helper(internet, SPARE, 2)];
  const published = new Map<string, Address>();
  for (const address of [DIRECTORY, OTHER])
    internet.listen(address, (text, from) => {
      const [word = '', name = ''] = text.split(' ');
      const known = published.get(name);
      if (word === 'who?') internet.send('me', address, from);
      else if (word === 'publish') published.set(name, from);
      else if (known !== undefined) internet.send(formatAddress(known), address, from);
    });
  const nodes = [new Node('x', 'y', [main, spare], clock), new Node('y', 'x', [main, spare], clock)] as const;
  const tick = (): void => {
    for (const node of nodes) node.tick();
    clock.after(TICK_MS, tick);
  };
  for (const { fallback } of nodes) {
    t.after(() => fallback.stop());
    await fallback.start();
  }
  clock.after(TICK_MS, tick);
  await clock.run(2 * UDP_WAIT_MS);
  return { clock, main, nodes };
}

/** The longest gap of the traffic in both directions, if the common helper falls silent after a time, milliseconds. */
async function gapMs(t: TestContext, afterMs: number): Promise<number> {
  const { clock, main, nodes } = await world(t);
  await clock.run(afterMs);
  for (const { helper, fallback } of nodes) assert.deepEqual([helper, fallback.status().hasSpare], [MAIN, true]);
  const silentAt = clock.monotonic();
  main.isSilent = true;
  await clock.run(30_000);
  return Math.max(
    ...nodes.map(({ helper, answersAt }) => {
      assert.equal(helper, SPARE);
      const times = [...answersAt.filter((at) => at > silentAt - 2 * TICK_MS), clock.monotonic()];
      return Math.max(...times.slice(1).map((at, i) => at - (times[i] ?? NEVER)));
    }),
  );
}

test('two nodes whose common helper falls silent continue through their spare', async (t) => {
  for (const afterMs of [10_000, 30_000, 200_000]) {
    const gap = await gapMs(t, afterMs);
    assert.ok(gap <= MAX_GAP_MS, `${gap} ms without traffic, silence after ${afterMs} ms`);
  }
});

test('a helper that falls silent right after a trial is tried again after the pause', async (t) => {
  // Both nodes try their helpers at their first attempt to go back to UDP, less than 4 seconds after `world`.
  for (const afterMs of [0, 3_000, 5_000, 7_000]) {
    const gap = await gapMs(t, afterMs);
    assert.ok(gap <= MAX_GAP_AFTER_TRIAL_MS, `${gap} ms without traffic, silence after ${afterMs} ms`);
  }
});
