/** Dialers, and the race between them. */
import { type Address, formatAddress } from '../../foundation/address.ts';
import { equalBytes, toHex } from '../../foundation/bytes.ts';
import type { Clock, Timer } from '../../foundation/clock.ts';
import { abortable, abortError } from '../../foundation/deadline.ts';
import type { PathKind } from '../../foundation/domain/tunnels.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { TurnRendezvous } from '../../foundation/records/payloads.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { NodeAt } from '../node-requests.ts';
import type { Connection, Endpoint } from '../transport/types.ts';

/** Head start of each address over the next one, milliseconds. */
export const STAGGER_MS = 150;
/** Maximum number of addresses that are tried for one node, as in an endpoint record. */
export const MAX_ADDRESSES = 8;
/** Time to reach a node at its addresses, milliseconds. */
export const NODE_DIAL_TIMEOUT_MS = 4_000;
/** The same for a node that reports that strangers cannot reach it. The first packet is repeated after one second. */
export const UNLIKELY_DIAL_TIMEOUT_MS = 2_000;

/**
 * Time between the first packets to an address that does not answer, milliseconds. The node may be restarting, and QUIC
 * repeats its first packet only after one second, then after two more. So there are new dials in every other second. Only
 * the first address is dialed again, because a stranger's record may name addresses of others.
 */
export const REPEAT_MS = 250;
const REPEATS_PER_S = 4;

/** An address of a node. */
export interface DialAddress extends Address {
  /** True for a port of the node's router that leads to the node. */
  readonly isMapped?: boolean;
}

/** The known location of a node. */
export interface NodePlace {
  readonly nodeKey: Uint8Array;
  readonly addresses: readonly DialAddress[];
  /** Nodes with a connection to this node, which can introduce two nodes. */
  readonly helpers: readonly NodeAt[];
  /** 0 unknown, 1 public or full cone, 2 restricted, 3 port-restricted, 4 symmetric. */
  readonly natType: number;
  /** The meeting point of a node without helpers. */
  readonly meeting?: TurnRendezvous;
  /** True if the node has a TURN server. */
  readonly hasTurn?: true;
}

/** The location of a node if only its addresses are known. */
export const UNHELPED: Pick<NodePlace, 'helpers' | 'natType'> = { helpers: [], natType: 0 };

/** The NAT type of a node that strangers reach at its own port. */
const REACHED = 1;

/** True if the node reports that strangers cannot reach its addresses. Nodes on its own networks can. */
export function isUnreached({ addresses, helpers, natType, meeting }: NodePlace): boolean {
  const saysSo = helpers.length > 0 || meeting !== undefined;
  return saysSo && natType !== REACHED && !addresses.some(({ isMapped }) => isMapped === true);
}

/** All start points of a dial. Two places with the same start points are equal for a dial. */
export function knownOf({ addresses, helpers, meeting }: NodePlace): string[] {
  const met = meeting === undefined ? [] : [`at ${toHex(meeting.publicKey)}`];
  return [...addresses.map(formatAddress), ...helpers.map((helper) => `by ${toHex(helper.nodeKey)}`), ...met];
}

/** Silence of a node that a link is opened to. */
export interface NodeSilence {
  /** Time without a packet of the node, at least: since the start of the dial, or since the first unanswered packet. */
  readonly minMs: number;
  /** The same in round trips. On a connection they are its own, otherwise `usualRttMs`. */
  readonly roundTrips: number;
  readonly usualRttMs: number;
  /** Called once after that time, unless the node can only be reached through its helpers. */
  readonly onSilence: () => void;
}

/** The error of a dialer if all helpers report that the node is absent. No other dialer can reach it then. */
export class NodeAbsent extends SvcError {
  constructor() {
    super('connect_failed', { message: 'The node is not connected to its helpers. It is offline, or has just moved.' });
  }
}

/**
 * The error of an attempt through several helpers. The node counts as absent only if all helpers report it.
 * @param failures at least one
 */
export function attemptError(failures: readonly unknown[]): unknown {
  return failures.findLast((failure) => !(failure instanceof NodeAbsent)) ?? failures.at(-1);
}

/** True if the dialers include a relay. */
export function tryRelays(dialers: readonly Dialer[]): boolean {
  return dialers.some(({ kind }) => kind === 'relay');
}

/** Schedule for repeating a dial while a relay carries the traffic, in milliseconds. */
export interface Rounds {
  /** From the hello over the relay to the first round. */
  readonly firstMs: number;
  /** Number of early rounds. */
  readonly soon: number;
  /** From the end of an early round to the next. */
  readonly periodMs: number;
  /** From the end of a later round to the next. */
  readonly laterMs: number;
}

/** One method to reach nodes. */
export interface Dialer {
  /** The kind of its paths. A dial without a third party is always called direct. */
  readonly kind: PathKind;
  /**
   * Delay after the start of the attempt, milliseconds. A failed earlier dialer ends the delay.
   * @param relays true if a relay is also tried
   */
  delayMs(place: NodePlace, relays: boolean): number;
  /** Timeout from its start, milliseconds. */
  readonly timeoutMs: number;
  /** False if it has no start point. */
  mayLead(place: NodePlace): boolean;
  /**
   * Connects to the node. The race checks the remote key. On request, the other node may dial this node instead: the
   * dialer then returns that connection after it was handed to the endpoint, and the other node sends the hello. After
   * an abort the dialer releases all its resources and closes a late connection.
   * @throws SvcError `connect_failed` if it does not lead to the node, or the signal's reason; `NodeAbsent`
   */
  dial(place: NodePlace, signal: AbortSignal): Promise<Connection>;
  /**
   * Only for a dialer that may succeed later than a relay. If another dialer wins the race, this one continues. While a
   * relay carries the traffic it is repeated, and new streams move to its connection.
   * @param isUnderWay true during a dial of this dialer
   */
  rounds?(place: NodePlace, isUnderWay: boolean): Rounds;
}

/** Refuses a connection to another node. */
function checked(connection: Connection, { nodeKey }: NodePlace): Connection {
  if (equalBytes(connection.remoteKey, nodeKey)) return connection;
  connection.close();
  throw new SvcError('connect_failed', { message: 'Another node than the expected one answers.' });
}

/**
 * Starts each dialer after its delay, or immediately after the previous one failed. The first connection to the node
 * wins. The other dials are aborted.
 * @throws SvcError of the last failure; `NodeAbsent` if any dialer failed with it
 */
export async function raceDialers(
  dialers: readonly Dialer[],
  place: NodePlace,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Connection> {
  // protocol-links.md, step 1
  if (dialers.length === 0) throw new SvcError('connect_failed', { message: 'There is no way to the node.' });
  const absences: NodeAbsent[] = [];
  const relays = tryRelays(dialers);
  const runners = dialers
    .map((dialer) => ({ dialer, afterMs: dialer.delayMs(place, relays) }))
    .toSorted((a, b) => a.afterMs - b.afterMs)
    .map(({ dialer, afterMs }) => ({
      afterMs,
      run: async (given: AbortSignal) => {
        using limit = awakeTimeout(clock, dialer.timeoutMs, given);
        const dialing = dialer.dial(place, limit.signal);
        // Close a late connection.
        dialing.then(
          (connection) => (limit.signal.aborted ? connection.close() : undefined),
          (error: unknown) => {
            if (error instanceof NodeAbsent) absences.push(error);
          },
        );
        return checked(await abortable(dialing, limit.signal), place);
      },
    }));
  try {
    return await race(
      runners,
      { hurry: 'when the latest has failed', drop: (late) => late.close() },
      { clock, signal },
    );
  } catch (cause) {
    throw absences[0] ?? cause;
  }
}

/**
 * Dials the node's own addresses in order. Each dial starts shortly after the previous one, or immediately if one
 * failed (RFC 8305, section 5).
 */
export function directly(endpoint: Pick<Endpoint, 'dial'>, clock: Clock): Dialer {
  return {
    kind: 'direct',
    delayMs: () => 0,
    timeoutMs: NODE_DIAL_TIMEOUT_MS,
    mayLead: () => true,
    dial: async (place, outer) => {
      const { addresses, nodeKey } = place;
      using limit = awakeTimeout(clock, isUnreached(place) ? UNLIKELY_DIAL_TIMEOUT_MS : NODE_DIAL_TIMEOUT_MS, outer);
      const { signal } = limit;
      if (addresses.length === 0) throw new SvcError('connect_failed', { message: 'The node has no address.' });
      const runners = addresses.slice(0, MAX_ADDRESSES).map(({ host, port, isMapped }, i) => ({
        afterMs: i * STAGGER_MS,
        run: (given: AbortSignal) => {
          const way = isMapped === true ? { way: { kind: 'mapped' } as const } : {};
          const dial = (one: AbortSignal): Promise<Connection> =>
            endpoint.dial({ host, port }, nodeKey, { signal: one, ...way });
          return i > 0 || isUnreached(place) ? dial(given) : dialAgain(dial, { clock, signal: given });
        },
      }));
      try {
        return await race(runners, { hurry: 'when one has failed', drop: (late) => late.close() }, { clock, signal });
      } catch (cause) {
        if (signal.aborted) throw cause;
        throw new SvcError('connect_failed', { cause, details: { addresses: addresses.map(formatAddress) } });
      }
    },
  };
}

/** Dials again and again until one dial connects or fails. The others are aborted then. */
async function dialAgain(
  dial: (signal: AbortSignal) => Promise<Connection>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Connection> {
  const others = new AbortController();
  const first = Promise.withResolvers<Connection>();
  const each = AbortSignal.any([signal, others.signal]);
  let dials = 0;
  let timer: Timer | undefined;
  const begin = (): void => {
    const isQuicSilent = Math.floor(dials++ / REPEATS_PER_S) % 2 === 0;
    timer = clock.after(REPEAT_MS, begin);
    if (!isQuicSilent) return;
    dial(each).then((connection) => {
      if (others.signal.aborted) return connection.close();
      others.abort(new SvcError('cancelled'));
      first.resolve(connection);
    }, first.reject);
  };
  begin();
  try {
    return await abortable(first.promise, signal);
  } finally {
    timer?.cancel();
    others.abort(new SvcError('cancelled'));
  }
}

interface Runner<T> {
  /** Delay after the start of the race, milliseconds. */
  readonly afterMs: number;
  run(signal: AbortSignal): Promise<T>;
}

interface RaceOptions<T> {
  /** The event that starts the next runner before its delay ends. */
  readonly hurry: 'when one has failed' | 'when the latest has failed';
  /** Receives results that arrive after the race ended. */
  readonly drop: (late: T) => void;
}

/**
 * Runs until one succeeds. The signals of all other runners abort then.
 * @param runners in order of their start; at least one
 * @throws the last error, or the signal's reason
 */
export async function race<T>(
  runners: readonly Runner<T>[],
  { hurry, drop }: RaceOptions<T>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<T> {
  if (signal.aborted) throw abortError(signal);
  const queue = [...runners];
  const outcome = Promise.withResolvers<T>();
  const others = new AbortController();
  const startedAt = clock.monotonic();
  let running = 0;
  let latest: Runner<T> | undefined;
  let timer: Timer | undefined;
  const won = (result: T): void => {
    if (others.signal.aborted) return drop(result);
    others.abort(new SvcError('cancelled'));
    outcome.resolve(result);
  };
  const begin = (): void => {
    timer?.cancel();
    const runner = queue.shift();
    if (runner === undefined || others.signal.aborted) return;
    running++;
    latest = runner;
    const [next] = queue;
    // If each failure starts the next runner, later runners keep their distance to it.
    const waitMs = (afterMs: number): number =>
      hurry === 'when one has failed' ? afterMs - runner.afterMs : startedAt + afterMs - clock.monotonic();
    if (next !== undefined) timer = clock.after(Math.max(0, waitMs(next.afterMs)), begin);
    runner.run(others.signal).then(won, (failure: unknown) => lost(runner, failure));
  };
  const lost = (runner: Runner<T>, failure: unknown): void => {
    running--;
    if (others.signal.aborted) return;
    if (queue.length > 0 && (hurry === 'when one has failed' || runner === latest)) begin();
    else if (queue.length === 0 && running === 0) outcome.reject(failure);
  };
  begin();
  try {
    return await abortable(outcome.promise, signal);
  } finally {
    timer?.cancel();
    others.abort(new SvcError('cancelled'));
  }
}
