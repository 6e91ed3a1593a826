/** Reaching a node in one of several ways. */
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
/** Addresses of one node that are tried: what an endpoint record holds at most. */
export const MAX_ADDRESSES = 8;
/** Time to reach a node at its addresses, milliseconds. */
export const NODE_DIAL_TIMEOUT_MS = 4_000;
/** The same for a node that strangers do not reach by what it says itself: as the first packet is sent again after one second. */
export const UNLIKELY_DIAL_TIMEOUT_MS = 2_000;

/** An address at which a node may be dialled. */
export interface DialAddress extends Address {
  /** A port of the node's router, which leads to the node. */
  readonly isMapped?: boolean;
}

/** What is known of where a node is. */
export interface NodePlace {
  readonly nodeKey: Uint8Array;
  readonly addresses: readonly DialAddress[];
  /** Nodes that it is connected to, and that may bring us together. */
  readonly helpers: readonly NodeAt[];
  /** 0 unknown, 1 public or full cone, 2 restricted, 3 port-restricted, 4 symmetric. */
  readonly natType: number;
  /** Where a node without helpers is met; absent where it is not. */
  readonly meeting?: TurnRendezvous;
  /** True where the node has a TURN server. */
  readonly hasTurn?: true;
}

/** What is said of a node of which nothing but its addresses is known. */
export const UNHELPED: Pick<NodePlace, 'helpers' | 'natType'> = { helpers: [], natType: 0 };

/** The NAT type of a node that strangers reach at its own port. */
const REACHED = 1;

/** True for a node that strangers do not reach at its addresses, by what it says itself; those of its own networks do. */
export function isUnreached({ addresses, helpers, natType, meeting }: NodePlace): boolean {
  const saysSo = helpers.length > 0 || meeting !== undefined;
  return saysSo && natType !== REACHED && !addresses.some(({ isMapped }) => isMapped === true);
}

/** Names for all that a dial of a place can start with: two places with the same names are the same to a dial. */
export function knownOf({ addresses, helpers, meeting }: NodePlace): string[] {
  const met = meeting === undefined ? [] : [`at ${toHex(meeting.publicKey)}`];
  return [...addresses.map(formatAddress), ...helpers.map((helper) => `by ${toHex(helper.nodeKey)}`), ...met];
}

/** What a way fails with where all who would know say that the node is not there: then no other way leads to it either. */
export class NodeAbsent extends SvcError {
  constructor() {
    super('connect_failed', { message: 'The node is not connected to its helpers. It is offline, or has just moved.' });
  }
}

/**
 * The failure of several tries by nodes that bring us together: that the node is not there only where all of them say so.
 * @param failures at least one
 */
export function whyNot(failures: readonly unknown[]): unknown {
  return failures.findLast((failure) => !(failure instanceof NodeAbsent)) ?? failures.at(-1);
}

/** Whether a relay is among the ways that are tried. */
export function tryRelays(diallers: readonly Dialer[]): boolean {
  return diallers.some(({ kind }) => kind === 'relay');
}

/** When a way is tried again while a relay carries. Milliseconds. */
export interface Rounds {
  /** From the hello over the relay to the first round. */
  readonly firstMs: number;
  /** How many rounds follow soon. */
  readonly soon: number;
  /** From the end of a round to the next of those. */
  readonly periodMs: number;
  /** The same for the rounds after them. */
  readonly laterMs: number;
}

/** One way to reach nodes. */
export interface Dialer {
  /** What its paths are; the way that needs nobody else is called direct, whatever its addresses are. */
  readonly kind: PathKind;
  /**
   * It begins so long after the attempt did, or as soon as the one before it has failed: milliseconds.
   * @param relays whether a relay is tried too
   */
  delayMs(place: NodePlace, relays: boolean): number;
  /** How long it may take from then on, milliseconds. */
  readonly timeoutMs: number;
  /** False where nothing is known that it could begin with. */
  mayLead(place: NodePlace): boolean;
  /**
   * Connects to the node. It need not look at the key that the other side proved: that is done for all ways alike.
   * A connection that the other node dialled to us, because it was asked to, is returned after it was handed to the
   * endpoint: there the other node says hello, on all others we do. When the signal aborts it lets go of all that it holds; a connection that comes after all is closed.
   * @throws SvcError `connect_failed` where it does not lead there, or the signal's reason; `NodeAbsent`
   */
  dial(place: NodePlace, signal: AbortSignal): Promise<Connection>;
  /**
   * Only for a way that may lead there after a relay did. If another way wins the race, its dial goes on, and while a relay
   * carries it is tried again in rounds: new streams move to the connection that it leads to.
   * @param isUnderWay a dial of this way is under way
   */
  rounds?(place: NodePlace, isUnderWay: boolean): Rounds;
}

/** Refuses a connection that is not to the node. */
function checked(connection: Connection, { nodeKey }: NodePlace): Connection {
  if (equalBytes(connection.remoteKey, nodeKey)) return connection;
  connection.close();
  throw new SvcError('connect_failed', { message: 'Another node than the expected one answers.' });
}

/**
 * Tries ways to a node, each after its delay or as soon as the one that began last has failed. The first connection
 * with the node counts; the others are given up.
 * @throws SvcError as the last that failed; `NodeAbsent` where one of them has failed with that
 */
export async function raceDialers(
  diallers: readonly Dialer[],
  place: NodePlace,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Connection> {
  // protocol-links.md, step 1
  if (diallers.length === 0) throw new SvcError('connect_failed', { message: 'There is no way to the node.' });
  const absences: NodeAbsent[] = [];
  const relays = tryRelays(diallers);
  const runners = diallers
    .map((dialler) => ({ dialler, afterMs: dialler.delayMs(place, relays) }))
    .toSorted((a, b) => a.afterMs - b.afterMs)
    .map(({ dialler, afterMs }) => ({
      afterMs,
      run: async (given: AbortSignal) => {
        using limit = awakeTimeout(clock, dialler.timeoutMs, given);
        const dialling = dialler.dial(place, limit.signal);
        // One that comes too late is not wanted any more.
        dialling.then(
          (connection) => (limit.signal.aborted ? connection.close() : undefined),
          (error: unknown) => {
            if (error instanceof NodeAbsent) absences.push(error);
          },
        );
        return checked(await abortable(dialling, limit.signal), place);
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
 * The way that needs nobody else: dials the node's own addresses in their order, each a little after
 * the one before or as soon as one has failed (RFC 8305, section 5).
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
          const options = isMapped === true ? { signal: given, way: { kind: 'mapped' } as const } : { signal: given };
          return endpoint.dial({ host, port }, nodeKey, options);
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

interface Runner<T> {
  /** When it begins, in milliseconds after the race did, if nothing hurries it. */
  readonly afterMs: number;
  run(signal: AbortSignal): Promise<T>;
}

interface RaceOptions<T> {
  /** What makes the next one begin before its time. */
  readonly hurry: 'when one has failed' | 'when the latest has failed';
  /** Takes what comes after another has won, or after the race was given up. */
  readonly drop: (late: T) => void;
}

/**
 * Runs until one succeeds; the signals of the others abort then.
 * @param runners in the order in which they begin; at least one
 * @throws what the last one that failed threw, or the signal's reason
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
  const startedAt = clock.now();
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
    // Where each failure hurries, those behind the hurried one keep their distance to it.
    const waitMs = (afterMs: number): number =>
      hurry === 'when one has failed' ? afterMs - runner.afterMs : startedAt + afterMs - clock.now();
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
