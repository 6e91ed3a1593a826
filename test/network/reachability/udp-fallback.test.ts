import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Address, formatAddress, type NodeContact, parseContact } from '../../../src/foundation/address.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { Listeners } from '../../../src/foundation/listeners.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import type { ConnectionView } from '../../../src/network/peers/peer-table.ts';
import type { StoredHelper } from '../../../src/network/reachability/helper-store.ts';
import {
  EXPIRY_PAUSE_MS,
  HELPER_TRIAL_MS,
  HELPER_TRIAL_PAUSE_MS,
  MIN_UDP_RETRY_MS,
  SHUNNED_MS,
  UDP_RETRY_MS,
  UDP_WAIT_MS,
  UdpFallback,
} from '../../../src/network/reachability/udp-fallback.ts';
import type { DhtPeer } from '../../../src/network/records/types.ts';
import {
  HelperFailure,
  type HelperFailureCode,
  type HelperSession,
  type HelperTarget,
} from '../../../src/network/transport/borrowing.ts';
import type { Path } from '../../../src/network/transport/path.ts';
import { TrialSocket } from '../../../src/network/transport/tls/trial-socket.ts';
import type { Connection } from '../../../src/network/transport/types.ts';
import type { UdpSocket } from '../../../src/network/transport/udp-socket.ts';
import { stubSession } from '../../support/stub-session.ts';
import { TestClock } from '../../support/test-clock.ts';

const NEVER = Number.NEGATIVE_INFINITY;
/** Two helpers in two networks. */
const [FIRST, SECOND] = ['203.0.113.1:4121', '198.51.100.1:4121'] as const;
const STAGGER_MS = 300;

function keyOf(target: HelperTarget): Uint8Array {
  return new Uint8Array(32).fill(Number(target.host.split('.')[1] ?? 1));
}

/** A node, its network and what it does. */
function world(t: TestContext, contacts: readonly string[] = [FIRST, SECOND]) {
  const clock = new TestClock();
  const state = {
    /** Answers of a TCP address over TLS: a failure, or a pending one. Default: a helper. */
    answers: new Map<string, HelperFailureCode | 'pending'>(),
    hasUdp: false,
    hasQuic: true,
    /** Only short packets pass. */
    isNarrow: false,
    hasProxy: false,
    isIpv6Only: false,
    lacksAddress: false,
    isAllowed: true,
    isLanAnswering: false,
    usesPorts: false,
    isReady: false,
    peerCount: 1,
    isIdentified: true,
    /** Nodes that helpers name. */
    named: [] as Address[],
    /** The routing table. */
    peers: [] as Address[],
    /** Milliseconds until a node answers through the ports of a helper; null for never. Default: 0. */
    roundTrips: new Map<string, number | null>(),
    /** TLS carries nothing, whether or not its end has been noticed. */
    isTlsDead: false,
    /** When the connection with another node began, Unix milliseconds; null without one. */
    connectedAt: null as number | null,
    connectedOver: { kind: 'direct' } as Partial<Path>,
    helpers: [] as StoredHelper[],
    log: [] as string[],
  };
  const readiness = new Listeners<[]>();
  const { log } = state;
  const listed = contacts.map((text) => parseContact(text)).filter((contact) => contact !== null);
  const addresses = (contact: NodeContact): Address[] => (/\d$/.test(contact.host) ? [contact] : []);
  const nodes = (): Address[] => listed.flatMap(addresses);
  const closed = new Set<HelperSession>();
  /** The helper of each trial. */
  const tried = new Map<UdpSocket, HelperSession>();
  const tls = {
    session: null as HelperSession | null,
    spare: null as HelperSession | null,
    isActive: false,
    get hasProxy() {
      return state.hasProxy;
    },
    carriesIpv6: true,
    moved: new Listeners<[]>(),
    lost: new Listeners<[HelperFailure]>(),
    silent: new Listeners<[]>(),
    trialSocket: (session: HelperSession): UdpSocket => {
      const socket = new TrialSocket({ isOpen: true, send: () => false, receive: () => {}, close: () => {} });
      tried.set(socket, session);
      return socket;
    },
    moveToSpare: () => {
      log.push(`move to ${tls.spare === null ? 'none' : formatAddress(tls.spare.target)}`);
      Object.assign(tls, { session: tls.spare, spare: null });
      tls.moved.notify();
    },
    dropSpare: () => {
      log.push('drop spare');
      tls.spare = null;
    },
    open: async (target: HelperTarget, signal: AbortSignal): Promise<HelperSession> => {
      const name = formatAddress(target);
      log.push(`open ${name}`);
      const answer = state.answers.get(name);
      if (answer === 'pending')
        await new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(new SvcError('cancelled'))),
        );
      else if (answer !== undefined) throw new HelperFailure(answer, answer);
      const session: HelperSession = {
        ...{ target, host: /\d$/.test(target.host) ? target.host : '192.0.2.9', proxy: null, isInspected: false },
        hello: { nodeKey: keyOf(target), isResumed: false },
        close: () => void closed.add(session),
      };
      return session;
    },
    reopen: () => void log.push('reopen'),
    use: (session: HelperSession) => {
      log.push(`use ${formatAddress(session.target)}`);
      Object.assign(tls, { session, isActive: true });
    },
    keepSpare: (session: HelperSession) => {
      log.push(`spare ${formatAddress(session.target)}`);
      tls.spare = session;
    },
    leave: () => {
      tls.isActive = false;
    },
    disconnect: () => {
      log.push('disconnect');
      Object.assign(tls, { session: null, spare: null, isActive: false });
    },
  };
  const dial = async (address: Address): Promise<Connection> => {
    log.push(`quic ${formatAddress(address)}`);
    if (!(state.hasUdp || state.isLanAnswering) || !state.hasQuic) throw new SvcError('timeout');
    return stubSession(keyOf({ ...address }), true, clock).session.connection;
  };
  const fallback = new UdpFallback({
    clock,
    log: silentLog,
    borrowing: tls,
    records: {
      get lastAnswerAt() {
        return state.isLanAnswering || state.hasUdp ? clock.now() : NEVER;
      },
      get lastPublicAnswerAt() {
        return state.hasUdp ? clock.now() : NEVER;
      },
      contacts: () =>
        listed.map((contact) => ({ contact, state: 'untried', hasAnswered: false, addresses: addresses(contact) })),
      places: nodes,
      peers: () => state.peers as DhtPeer[],
      reachability: () => ({ ready: state.isReady, peers: state.peerCount }) as never,
      onReachability: (handler) => readiness.add(() => handler({} as never)),
      identify: async (address) =>
        state.isIdentified && !(tls.isActive && state.isTlsDead)
          ? { nodeKey: keyOf(address), address: { ...address, port: 4122 } }
          : null,
      carriesQuic: async () => !state.isNarrow,
      addNode: (address) => void log.push(`add ${formatAddress(address)}`),
      openPort: () => ({ neighbors: async () => state.named, close: async () => {} }) as never,
      openPortAt: (socket) => {
        const host = tried.get(socket)?.target.host;
        assert.ok(host !== undefined);
        return {
          identify: async (address: Address) => {
            const ms = state.roundTrips.has(host) ? state.roundTrips.get(host) : 0;
            assert.notEqual(address.host, host, 'the helper itself proves nothing');
            if (ms === null || ms === undefined) return await new Promise(() => {});
            await new Promise<void>((resolve) => clock.after(ms, resolve));
            return { nodeKey: keyOf(address), address };
          },
          close: async () => {},
        } as never;
      },
      openSystemPort: () =>
        ({
          identify: async (address: Address) =>
            state.hasUdp && state.isIdentified
              ? { nodeKey: keyOf(address), address: { ...address, port: 4122 } }
              : null,
          close: async () => {},
        }) as never,
    },
    endpoint: { dial },
    pool: {
      connections: () =>
        state.connectedAt === null
          ? []
          : [{ path: state.connectedOver, bytesReceived: 1, openedAt: state.connectedAt } as ConnectionView],
      onPathsWithdrawn: async (areDead) => void log.push(`leave ports ${areDead}`),
      get usesWithdrawable() {
        return state.usesPorts;
      },
    },
    storedHelpers: () => state.helpers,
    isOwnHost: () => false,
    isAllowed: () => state.isAllowed,
    isIpv6Only: () => state.isIpv6Only,
    lacksListenAddress: () => state.lacksAddress,
    onSwitch: () => void log.push('switch'),
  });
  t.after(() => fallback.stop());
  const lines = (): string[] => log.splice(0);
  const summary = () => {
    const { state: now, trouble, helper, error } = fallback.status();
    return [now, trouble, helper === null ? null : formatAddress(helper.address), error?.code ?? null];
  };
  return { clock, state, tls, fallback, lines, summary, closed, readiness };
}

/** Starts a node without UDP and waits until it is on TLS. */
async function onTls(t: TestContext) {
  const made = world(t);
  await made.fallback.start();
  await made.clock.run(UDP_WAIT_MS);
  await made.clock.run(0);
  assert.equal(made.summary()[0], 'tls');
  made.lines();
  return made;
}

test('a node that hears others over UDP, and reaches them over QUIC, opens no TLS', async (t) => {
  const { fallback, clock, state, lines, summary } = world(t);
  state.hasUdp = true;
  await fallback.start();
  await clock.run(UDP_WAIT_MS - 1);
  assert.deepEqual(lines(), []);
  await clock.run(UDP_RETRY_MS);
  assert.deepEqual(lines(), ['quic 203.0.113.1:4122', 'quic 198.51.100.1:4122']);
  assert.deepEqual(summary(), ['udp', null, null, null]);
});

test('a node without UDP uses the first helper that answers, and keeps one in another network as a spare', async (t) => {
  const { fallback, clock, lines, summary } = world(t, [FIRST, '203.0.113.2:4121', SECOND]);
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  await clock.run(0);
  assert.deepEqual(lines(), [
    'open 203.0.113.1:443',
    'use 203.0.113.1:443',
    'switch',
    'leave ports true',
    'open 198.51.100.1:443',
    'spare 198.51.100.1:443',
  ]);
  assert.deepEqual(summary(), ['tls', 'udp_silent', '203.0.113.1:443', null]);
  assert.equal(fallback.status().hasSpare, true);
});

test('two networks come first, then the own ports of both, each with a head start', async (t) => {
  const { fallback, clock, state, lines, summary } = world(t, [FIRST, '203.0.113.2:4121', SECOND]);
  for (const host of ['203.0.113.1', '198.51.100.1']) {
    state.answers.set(`${host}:443`, 'pending');
    state.answers.set(`${host}:4121`, 'tcp_refused');
  }
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  assert.deepEqual(lines(), ['open 203.0.113.1:443']);
  await clock.run(STAGGER_MS);
  assert.deepEqual(lines(), ['open 198.51.100.1:443']);
  await clock.run(STAGGER_MS);
  assert.deepEqual(lines().slice(0, 4), [
    ...['open 203.0.113.1:4121', 'open 198.51.100.1:4121', 'open 203.0.113.2:443', 'use 203.0.113.2:443'],
  ]);
  assert.equal(summary()[0], 'tls');
});

test('stored helpers come first, at the ports that they have named', async (t) => {
  const { fallback, clock, state, lines } = world(t);
  const address = { host: '192.0.2.5', port: 4122 };
  state.helpers = [
    { host: '192.0.2.5', port: 4121, at: { nodeKey: new Uint8Array(32).fill(0), address }, tlsPorts: [8443] },
  ];
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  assert.deepEqual(lines().slice(0, 2), ['open 192.0.2.5:8443', 'use 192.0.2.5:8443']);
});

test('behind a proxy TLS starts immediately, and is dropped if UDP answers meanwhile', async (t) => {
  const { fallback, clock, state, lines, summary, closed } = world(t);
  state.hasProxy = true;
  state.answers.set('203.0.113.1:443', 'pending');
  await fallback.start();
  await clock.run(0);
  assert.deepEqual(lines(), ['open 203.0.113.1:443']);
  assert.deepEqual(summary(), ['connecting', 'udp_silent', null, null]);
  state.hasUdp = true;
  await clock.run(STAGGER_MS);
  await clock.run(0);
  assert.deepEqual(
    lines().filter((line) => line.startsWith('use')),
    [],
  );
  assert.deepEqual([summary()[0], closed.size], ['udp', 1]);
});

test('if records pass but two QUIC handshakes do not, TLS is used', async (t) => {
  const { fallback, clock, state, lines, summary } = world(t);
  Object.assign(state, { hasUdp: true, hasQuic: false });
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  await clock.run(0);
  assert.deepEqual(lines().slice(0, 3), ['quic 203.0.113.1:4122', 'quic 198.51.100.1:4122', 'open 203.0.113.1:443']);
  assert.deepEqual(summary().slice(0, 2), ['tls', 'quic_dropped']);
});

test('if the path is too narrow for QUIC, the status says so', async (t) => {
  const { fallback, clock, state, summary } = world(t);
  Object.assign(state, { hasUdp: true, hasQuic: false, isNarrow: true });
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  await clock.run(0);
  assert.deepEqual(summary().slice(0, 2), ['tls', 'path_mtu']);
});

test('a network that drops UDP flows after a while is avoided with TLS, and tried again after ten minutes', async (t) => {
  const { fallback, clock, state, lines, summary } = world(t);
  state.hasUdp = true;
  const silence = async (): Promise<void> => {
    fallback.onSilence();
    await clock.run(UDP_WAIT_MS);
    await clock.run(0);
  };
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  await silence();
  assert.deepEqual(summary().slice(0, 2), ['udp', null], 'one silence may have any cause');
  lines();
  await clock.run(30_000);
  await silence();
  assert.deepEqual(summary().slice(0, 2), ['tls', 'flows_expire']);
  lines();
  await silence();
  assert.equal(summary()[0], 'tls', 'a silence over TLS does not concern UDP');
  await clock.run(EXPIRY_PAUSE_MS - UDP_WAIT_MS - 1);
  assert.equal(summary()[0], 'tls');
  await clock.run(1);
  await clock.run(0);
  assert.deepEqual(summary().slice(0, 2), ['udp', null]);
  await silence();
  assert.deepEqual(summary().slice(0, 2), ['tls', 'flows_expire'], 'flows still expire');
});

test('UDP flows that expire are better than nothing if no helper is reached over TLS, or relaying is disabled', async (t) => {
  for (const isAllowed of [true, false]) {
    const { fallback, clock, state, summary } = world(t, [FIRST]);
    Object.assign(state, { hasUdp: true, isAllowed });
    for (const port of [443, 4121]) state.answers.set(`203.0.113.1:${port}`, 'tcp_refused');
    await fallback.start();
    for (let i = 0; i < 3; i++) {
      fallback.onSilence();
      await clock.run(UDP_WAIT_MS);
      await clock.run(STAGGER_MS);
      assert.deepEqual(summary(), ['udp', null, null, null]);
    }
  }
});

test('a network outage is not confused with flows that expire', async (t) => {
  const { fallback, clock, state, summary } = world(t, [FIRST]);
  state.hasUdp = true;
  for (const port of [443, 4121]) state.answers.set(`203.0.113.1:${port}`, 'tcp_silent');
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  state.hasUdp = false;
  for (let i = 0; i < 3; i++) {
    fallback.onSilence();
    await clock.run(UDP_WAIT_MS + STAGGER_MS);
  }
  assert.equal(summary()[0], 'failed');
  state.answers.clear();
  state.hasUdp = true;
  fallback.check();
  await clock.run(UDP_WAIT_MS);
  await clock.run(0);
  assert.deepEqual(summary().slice(0, 2), ['udp', null]);
});

test('a machine with IPv6 only uses TLS immediately, for IPv4', async (t) => {
  const { fallback, clock, state, tls, lines, summary } = world(t, ['[2600:1::1]:4121', SECOND]);
  state.isIpv6Only = true;
  state.answers.set('198.51.100.1:443', 'tcp_refused');
  await fallback.start();
  await clock.run(0);
  await clock.run(0);
  assert.deepEqual(lines()[0], 'open [2600:1::1]:443');
  assert.deepEqual(summary().slice(0, 2), ['tls', 'no_ipv4']);
  assert.equal(tls.carriesIpv6, false);
});

test('a machine without its listen address uses TLS, and UDP when the address returns', async (t) => {
  const { fallback, clock, state, summary } = world(t, [FIRST]);
  Object.assign(state, { lacksAddress: true, hasUdp: true });
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  await clock.run(0);
  assert.deepEqual(summary().slice(0, 2), ['tls', 'no_listen_address']);
  state.lacksAddress = false;
  fallback.onNetwork();
  await clock.run(UDP_WAIT_MS);
  await clock.run(0);
  assert.deepEqual(summary().slice(0, 2), ['udp', null]);
});

test('UDP is tried again soon, then every minute, and after each change of network', async (t) => {
  const { fallback, clock, state, lines, summary } = await onTls(t);
  await clock.run(MIN_UDP_RETRY_MS - 1);
  assert.deepEqual([lines(), summary()[0]], [[], 'tls'], 'nothing answers');
  Object.assign(state, { hasUdp: true, hasQuic: false });
  await clock.run(1);
  assert.deepEqual([lines().length, summary()[0]], [2, 'tls'], 'QUIC is still dropped');
  for (const seconds of [15, 45, 60, 60]) {
    await clock.run(seconds * 1000 - 1);
    assert.deepEqual(lines(), []);
    await clock.run(1);
    assert.equal(lines().length, 2, `${seconds} seconds`);
  }
  Object.assign(state, { hasQuic: true, isIdentified: false });
  await clock.run(60_000);
  assert.equal(summary()[0], 'tls', 'no node to try QUIC with');
  state.isIdentified = true;
  lines();
  fallback.onNetwork();
  assert.deepEqual(lines(), ['reopen'], 'the TCP connection may be dead');
  await clock.run(UDP_WAIT_MS);
  assert.deepEqual(lines().slice(2, 4), ['switch', 'leave ports false']);
  assert.deepEqual(summary(), ['udp', null, null, null]);
});

test('after the return to UDP, TLS ends when no stream uses it, or after a while', async (t) => {
  const { clock, state, lines } = await onTls(t);
  Object.assign(state, { hasUdp: true, usesPorts: true });
  await clock.run(MIN_UDP_RETRY_MS + 2_000);
  assert.equal(lines().includes('disconnect'), false);
  state.usesPorts = false;
  await clock.run(1_000);
  assert.equal(lines().includes('disconnect'), true);
});

test('if everything fails, the most telling failure is reported, and attempts continue', async (t) => {
  const { fallback, clock, state, lines, summary } = world(t, [FIRST]);
  state.answers.set('203.0.113.1:443', 'proxy_wants_password').set('203.0.113.1:4121', 'tcp_refused');
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  assert.deepEqual(summary(), ['failed', 'udp_silent', null, 'proxy_wants_password']);
  lines();
  state.answers.clear();
  await clock.run(1_000);
  await clock.run(0);
  assert.deepEqual([lines()[0], summary()[0]], ['open 203.0.113.1:443', 'tls']);
});

test('after the login of a portal, the first answer ends the outage', async (t) => {
  const { fallback, clock, state, summary, readiness } = world(t);
  for (const host of ['203.0.113.1', '198.51.100.1'])
    for (const port of [443, 4121]) state.answers.set(`${host}:${port}`, 'portal');
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  await clock.run(10_000);
  assert.deepEqual(summary(), ['failed', 'udp_silent', null, 'portal']);
  state.hasUdp = true;
  readiness.notify();
  await clock.run(0);
  assert.deepEqual(summary(), ['udp', null, null, null]);
});

test('on a LAN without the Internet, TLS that fails is no trouble', async (t) => {
  const { fallback, clock, state, summary } = world(t, [FIRST]);
  state.isLanAnswering = true;
  state.answers.set('203.0.113.1:443', 'tcp_silent').set('203.0.113.1:4121', 'tcp_silent');
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  assert.equal(summary()[0], 'udp');
});

test('in a private network, private answers are enough', async (t) => {
  const { fallback, clock, state, lines } = world(t, ['10.0.0.1:4121', 'node.internal:4121']);
  state.isLanAnswering = true;
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  assert.deepEqual(
    lines().filter((line) => line.startsWith('open')),
    [],
  );
});

test('a contact whose name only the proxy resolves is added with its address', async (t) => {
  const { fallback, clock, lines } = world(t, ['helper.example:4121']);
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  assert.deepEqual(lines().slice(0, 3), ['open helper.example:443', 'use helper.example:443', 'add 192.0.2.9:4121']);
});

test('without any other node there is nothing to decide', async (t) => {
  const { fallback, clock, lines, summary } = world(t, []);
  await fallback.start();
  await clock.run(UDP_RETRY_MS);
  assert.deepEqual([lines(), summary()[0]], [[], 'udp']);
});

test('contacts that are being joined can lend ports', async (t) => {
  const { fallback, clock, lines, summary } = world(t, []);
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  const contact = parseContact(FIRST);
  assert.ok(contact !== null);
  const end = fallback.joinThrough([contact]);
  await clock.run(UDP_WAIT_MS);
  assert.deepEqual([lines()[0], summary()[0]], ['open 203.0.113.1:443', 'tls']);
  end();
});

test('disable_relay excludes TLS, also while it is used', async (t) => {
  const { fallback, clock, state, lines, summary } = await onTls(t);
  state.isAllowed = false;
  fallback.check();
  await clock.run(UDP_WAIT_MS);
  await clock.run(0);
  assert.deepEqual(summary(), ['off', 'udp_silent', null, null]);
  assert.equal(
    lines().some((line) => line.startsWith('open')),
    false,
  );
});

test('when the last helper is lost, another one is found, and UDP is tried too', async (t) => {
  const { clock, state, tls, lines, summary } = await onTls(t);
  for (const name of ['203.0.113.1', '198.51.100.1'])
    for (const port of [443, 4121]) state.answers.set(`${name}:${port}`, 'tcp_refused');
  tls.session = null;
  tls.lost.notify(new HelperFailure('tcp_refused', 'gone'));
  await clock.run(0);
  assert.deepEqual([lines().length, summary()[0]], [4, 'failed']);
  state.answers.delete('198.51.100.1:443');
  await clock.run(2_000);
  await clock.run(0);
  assert.deepEqual([lines().includes('use 198.51.100.1:443'), summary()[0]], [true, 'tls']);
});

test('if TLS is dead and UDP works again, UDP is used: also before the end of TLS is noticed', async (t) => {
  const { fallback, clock, state, lines, summary } = await onTls(t);
  Object.assign(state, { hasUdp: true, isTlsDead: true });
  fallback.onNetwork();
  await clock.run(UDP_WAIT_MS);
  assert.deepEqual(summary(), ['udp', null, null, null]);
  assert.deepEqual(lines().slice(-4), ['switch', 'leave ports false', 'leave ports true', 'disconnect']);
});

test('when the last helper is lost, an answer over UDP ends the search for another one', async (t) => {
  const { clock, state, tls, lines, summary } = await onTls(t);
  for (const name of ['203.0.113.1', '198.51.100.1'])
    for (const port of [443, 4121]) state.answers.set(`${name}:${port}`, 'pending');
  state.hasUdp = true;
  tls.session = null;
  tls.lost.notify(new HelperFailure('lost', 'gone'));
  await clock.run(0);
  await clock.run(0);
  assert.deepEqual(summary(), ['udp', null, null, null]);
  assert.deepEqual(lines().slice(-4), ['switch', 'leave ports true', 'leave ports true', 'disconnect']);
});

test('while neither works, an answer over UDP is noticed at the next attempt', async (t) => {
  const { fallback, clock, state, summary } = world(t, [FIRST]);
  state.answers.set('203.0.113.1:443', 'tcp_refused').set('203.0.113.1:4121', 'tcp_refused');
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  assert.equal(summary()[0], 'failed');
  state.hasUdp = true;
  state.answers.set('203.0.113.1:443', 'pending');
  await clock.run(1_000);
  await clock.run(0);
  assert.deepEqual(summary(), ['udp', null, null, null]);
});

test('a connection from before a change of network does not prove that QUIC works', async (t) => {
  const { fallback, clock, state, summary } = world(t);
  Object.assign(state, { hasUdp: true, connectedAt: clock.now() });
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  assert.equal(summary()[0], 'udp');
  state.hasQuic = false;
  fallback.onNetwork();
  await clock.run(UDP_WAIT_MS);
  await clock.run(0);
  assert.deepEqual(summary().slice(0, 2), ['tls', 'quic_dropped']);
  assert.ok((state.connectedAt ?? 0) < clock.now());
});

test('a connection over a borrowed port does not prove that QUIC works, also through a relay', async (t) => {
  for (const kind of ['tls', 'relay'] as const) {
    const { fallback, clock, state, summary } = world(t);
    const connectedOver = { kind, mayBeWithdrawn: true };
    Object.assign(state, { hasUdp: true, hasQuic: false, connectedAt: clock.now() + 1, connectedOver });
    await fallback.start();
    await clock.run(UDP_WAIT_MS);
    await clock.run(0);
    assert.deepEqual(summary().slice(0, 2), ['tls', 'quic_dropped'], kind);
  }
});

test('a helper whose ports carry nothing is left for the spare, and not used again for ten minutes', async (t) => {
  const { clock, state, tls, lines, summary } = await onTls(t);
  state.roundTrips.set('203.0.113.1', null);
  await clock.run(HELPER_TRIAL_PAUSE_MS);
  tls.silent.notify();
  await clock.run(HELPER_TRIAL_MS - 1);
  assert.equal(summary()[2], '203.0.113.1:443');
  await clock.run(1);
  assert.ok(lines().includes('move to 198.51.100.1:443'));
  assert.deepEqual(summary(), ['tls', 'udp_silent', '198.51.100.1:443', null]);
  await clock.run(SHUNNED_MS - UDP_RETRY_MS);
  const opens = (): string[] => lines().filter((line) => line.startsWith('open 203.0.113.1'));
  assert.deepEqual(opens(), []);
  state.roundTrips.clear();
  await clock.run(16 * 60_000);
  assert.deepEqual(opens(), ['open 203.0.113.1:443'], 'it may be the spare again');
});

test('a helper that forwards nothing is named if there is no better one, until it forwards again', async (t) => {
  const { fallback, clock, state, tls, summary } = world(t, [FIRST, SECOND, '192.3.2.5:4121']);
  for (const name of ['198.51.100.1', '192.3.2.5'])
    for (const port of [443, 4121]) state.answers.set(`${name}:${port}`, 'tcp_refused');
  state.roundTrips.set('203.0.113.1', null);
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  await clock.run(HELPER_TRIAL_PAUSE_MS);
  tls.silent.notify();
  await clock.run(HELPER_TRIAL_MS);
  assert.deepEqual(summary(), ['failed', 'udp_silent', null, 'forwards_nothing']);
  assert.match(fallback.status().error?.message ?? '', /^The helper 203\.0\.113\.1:443 forwards nothing/);
  state.roundTrips.clear();
  await clock.run(MIN_UDP_RETRY_MS);
  await clock.run(0);
  assert.deepEqual(summary(), ['tls', 'udp_silent', '203.0.113.1:443', null]);
});

test('silence of the nodes is not blamed on the helper if the spare hears them neither', async (t) => {
  const { clock, state, tls, lines, summary } = await onTls(t);
  for (const host of ['203.0.113.1', '198.51.100.1']) state.roundTrips.set(host, null);
  await clock.run(HELPER_TRIAL_PAUSE_MS);
  tls.silent.notify();
  await clock.run(HELPER_TRIAL_MS);
  assert.equal(
    lines().some((line) => line.startsWith('move')),
    false,
  );
  assert.deepEqual(summary(), ['tls', 'udp_silent', '203.0.113.1:443', null]);
});

test('a node moves to a spare that is much faster, and not to one that is a little faster', async (t) => {
  for (const [mine, others, helper] of [
    [800, 20, '198.51.100.1:443'],
    [300, 100, '203.0.113.1:443'],
    [90, 20, '203.0.113.1:443'],
  ] as const) {
    const { fallback, clock, state, summary } = world(t);
    state.roundTrips.set('203.0.113.1', mine).set('198.51.100.1', others);
    await fallback.start();
    await clock.run(UDP_WAIT_MS);
    await clock.run(mine + others);
    assert.equal(summary()[2], helper, `${mine} and ${others} ms`);
  }
});

test('a spare that forwards nothing is not kept, and the next node is tried', async (t) => {
  const { fallback, clock, state, lines } = world(t, [FIRST, SECOND, '192.3.2.5:4121']);
  state.roundTrips.set('198.51.100.1', null);
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  await clock.run(HELPER_TRIAL_MS);
  for (let i = 0; i < 4; i++) await clock.run(0);
  assert.deepEqual(
    lines().filter((line) => /^(open|spare)/.test(line)),
    ['open 203.0.113.1:443', 'open 198.51.100.1:443', 'open 192.3.2.5:443', 'spare 192.3.2.5:443'],
  );
});

test('a node that joined through one slow helper searches a spare when it knows other nodes', async (t) => {
  const { fallback, clock, state, readiness, summary } = world(t, [FIRST]);
  state.roundTrips.set('203.0.113.1', 800).set('198.51.100.1', 20);
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  assert.equal(summary()[2], '203.0.113.1:443');
  const found = parseContact(SECOND);
  assert.ok(found !== null);
  state.peers = [found];
  readiness.notify();
  await clock.run(0);
  await clock.run(2_000);
  assert.equal(summary()[2], '198.51.100.1:443');
});

test('a helper so slow that no other node answers in time names the nodes to try', async (t) => {
  const { fallback, clock, state, summary } = world(t, [FIRST]);
  state.roundTrips.set('203.0.113.1', 1_600).set('198.51.100.1', 20);
  state.named = [
    { host: '198.51.100.1', port: 4121 },
    { host: '192.3.2.5', port: 4121 },
  ];
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  await clock.run(0);
  assert.equal(fallback.status().hasSpare, false);
  await clock.run(2_000);
  assert.equal(summary()[2], '198.51.100.1:443');
});

test('after a move to the spare, connections are replaced immediately', async (t) => {
  const { clock, tls, lines } = await onTls(t);
  tls.moved.notify();
  assert.deepEqual(lines(), ['switch', 'leave ports true']);
  await clock.run(0);
});

test('a lookup right after the start waits until the network is ready, over UDP or TLS', async (t) => {
  const { fallback, clock, state, readiness, summary } = world(t);
  await fallback.start();
  const waiting = fallback.becomesReady();
  await clock.run(UDP_WAIT_MS);
  await clock.run(0);
  assert.equal(summary()[0], 'tls');
  state.isReady = true;
  readiness.notify();
  assert.equal(await waiting, true);
  assert.equal(await fallback.becomesReady(), false, 'it is ready');
});

test('a lookup that had no peer is repeated with the first one', async (t) => {
  const { fallback, clock, state, readiness } = world(t);
  state.peerCount = 0;
  await fallback.start();
  const waiting = fallback.becomesReady();
  await clock.run(UDP_WAIT_MS);
  state.peerCount = 1;
  readiness.notify();
  assert.equal(await waiting, true);
});

test('a lookup does not wait for a network that does not come', async (t) => {
  const { fallback, clock, state } = world(t, [FIRST]);
  state.answers.set('203.0.113.1:443', 'tcp_refused').set('203.0.113.1:4121', 'tcp_refused');
  await fallback.start();
  const waiting = fallback.becomesReady();
  await clock.run(UDP_WAIT_MS);
  assert.equal(await waiting, false);
  assert.equal(await fallback.becomesReady(), false);
  const alone = world(t, []);
  assert.equal(await alone.fallback.becomesReady(), false);
});

test('the state is settled when TLS is used, or no node is reached', async (t) => {
  const { fallback, clock, state, summary } = world(t, [FIRST]);
  await fallback.settled();
  state.answers.set('203.0.113.1:443', 'tcp_refused').set('203.0.113.1:4121', 'tcp_refused');
  await fallback.start();
  await clock.run(UDP_WAIT_MS);
  await fallback.settled();
  assert.equal(summary()[0], 'failed');
});

test('a lookup on UDP waits at most for the first check', async (t) => {
  const { fallback, clock, state } = world(t);
  state.hasUdp = true;
  await fallback.start();
  const waiting = fallback.becomesReady();
  await clock.run(UDP_WAIT_MS);
  assert.equal(await waiting, false);
});
