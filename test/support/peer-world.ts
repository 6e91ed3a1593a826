/** A peer whose dialers, hellos and records are in the hands of the test. */
import type { PathKind } from '../../src/foundation/domain/tunnels.ts';
import { silentLog } from '../../src/foundation/log.ts';
import { type Dialer, NODE_DIAL_TIMEOUT_MS, type NodePlace, UNHELPED } from '../../src/network/peers/dial.ts';
import { type PathChange, Peer, type PeerContext } from '../../src/network/peers/peer.ts';
import { NodeSession } from '../../src/network/peers/session.ts';
import { plainPath } from '../../src/network/transport/path.ts';
import type { Connection } from '../../src/network/transport/types.ts';
import { type StubSession, stubSession } from './stub-session.ts';
import { TestClock } from './test-clock.ts';

export const KEY: Uint8Array = new Uint8Array(32).fill(5);
const HOST = '198.51.100.1';
export const PLACE: NodePlace = placeAt(4122);

export function placeAt(port: number): NodePlace {
  return { nodeKey: KEY, addresses: [{ host: HOST, port }], ...UNHELPED };
}

/** A connection to the node, of a kind. */
export function arrival(clock: TestClock, kind: PathKind = 'direct', outbound = true): StubSession {
  return stubSession(KEY, outbound, clock, plainPath(kind, { host: HOST, port: 4122 }));
}

/** A way that is scripted by its kind. */
export function dialer(kind: PathKind, delayMs: number, dial: Dialer['dial'], leads = true): Dialer {
  return { kind, delayMs: () => delayMs, timeoutMs: 1000, mayLead: () => leads, dial };
}

/** A dial that waits for the test. */
interface HeldDial {
  readonly port: number;
  readonly signal: AbortSignal;
  readonly arrive: (connection: Connection) => void;
  readonly fail: (error: Error) => void;
}

export class PeerWorld {
  readonly clock = new TestClock();
  /** Direct dials, in their order. */
  readonly dials: HeldDial[] = [];
  readonly pathChanges: PathChange[] = [];
  readonly ended: NodeSession[] = [];
  readonly dialers: Dialer[] = [
    {
      ...dialer('direct', 0, ({ addresses }, signal) => {
        return new Promise((arrive, fail) => {
          this.dials.push({ port: addresses[0]?.port ?? 0, signal, arrive, fail });
          signal.addEventListener('abort', () => fail(signal.reason));
        });
      }),
      timeoutMs: NODE_DIAL_TIMEOUT_MS,
    },
  ];
  /** How often a dead path was reported. */
  deadPaths = 0;
  mayRelay = true;
  locate: PeerContext['locate'] = async () => null;
  readonly context: PeerContext;
  readonly peer: Peer;

  /** @param key the key of this node, compared with that of the peer */
  constructor(key: 'smaller' | 'larger' = 'smaller') {
    this.context = {
      localKey: new Uint8Array(32).fill(key === 'smaller' ? 1 : 9),
      clock: this.clock,
      log: silentLog,
      dialers: this.dialers,
      mayRelay: () => this.mayRelay,
      greet: async (connection) => this.take(connection),
      locate: (nodeKey, signal) => this.locate(nodeKey, signal),
      lookups: 0,
      improved: 0,
      onActivity: () => {},
      onPathChange: (change) => void this.pathChanges.push(change),
      onDeadPath: () => {
        this.deadPaths++;
      },
      onEnded: (session) => void this.ended.push(session),
    };
    this.peer = new Peer(KEY, this.context);
  }

  /** The hellos on a connection. */
  take(connection: Connection): NodeSession {
    const hello = { nonce: new Uint8Array(32), instance: new Uint8Array(16) };
    const { localKey } = this.context;
    const session = new NodeSession({ connection, localKey, ours: hello, theirs: hello }, { clock: this.clock });
    this.peer.take(session);
    return session;
  }

  /** An established connection. */
  add(outbound: boolean, kind: PathKind = 'direct'): StubSession {
    const stub = arrival(this.clock, kind, outbound);
    this.peer.take(stub.session);
    return stub;
  }
}
