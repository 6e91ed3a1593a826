/** The calling side of a link: sends the header, shows and asks for proofs, waits for the answer. */
import { type Clock, unixSeconds } from '../../foundation/clock.ts';
import { abortError } from '../../foundation/deadline.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { awakeTimeout, SilenceWatch } from '../../foundation/stall.ts';
import type { Stream } from '../transport/types.ts';
import type { ConnectionPool } from './connection-pool.ts';
import type { NodePlace } from './dial.ts';
import { encodeHeader } from './header.ts';
import { type NodeSession, openStreamWithin } from './node-session.ts';
import type { OpenLinks } from './open-links.ts';
import { decodeProof, isCurrent, MAX_PROOF_BYTES, NOT_YET_VALID, type ProvenWindow } from './proofs.ts';
import type { ProvenAgents } from './proven.ts';
import { Refusal, STATUS } from './status.ts';
import { asQuicLink } from './stream.ts';
import { KIND } from './stream-dispatcher.ts';
import type { FirstBytes, FirstPlace, LinkNames, LinkStream, LocalIdentity } from './types.ts';
import { readExactly, readFrame, u16 } from './wire.ts';

/** Silence of the other node, right after a header, that makes us dial beside the old connection: milliseconds … */
export const SILENCE_MS = 1_000;
/** … or so many round trips, where that is longer. */
const SILENCE_RTTS = 4;
/** Time for that dial, after which the node counts as gone: milliseconds … */
export const BESIDE_MS = 2_500;
/** … or so many round trips, where that is longer. */
const BESIDE_RTTS = 8;

/** A node of which something came so lately is most likely still there: milliseconds. */
export const FRESH_MS = 1_000;

/** Neither the pooled connection nor a new one brings a packet. */
class NodeGone extends SvcError {
  constructor() {
    super('connect_failed', { message: 'The other node no longer answers.' });
  }
}

interface OpeningDependencies {
  readonly pool: ConnectionPool;
  readonly proven: ProvenAgents;
  readonly standing: OpenLinks;
  readonly clock: Clock;
}

/** Where a stream leads; the end of a TCP connection to a process that is gone would have come. */
function placeOf(session: NodeSession, stream: Stream): FirstPlace {
  const isFresh = stream.isUpgraded || session.heardWithin(FRESH_MS);
  return { instance: session.instance, isFresh };
}

function say(stream: Stream, bytes: Uint8Array, isAll: boolean): void {
  if (isAll) stream.end(bytes);
  else stream.write(bytes);
}

/** A link that is to be opened. */
export interface Opening {
  readonly place: NodePlace;
  readonly caller: LocalIdentity;
  readonly names: LinkNames;
  /** False where no third node may carry the packets. */
  readonly relays: boolean;
  /** As in `OpenOptions`. */
  readonly first?: FirstBytes | undefined;
  readonly signal: AbortSignal;
  /** Told before its header leaves over QUIC, where silence may mean that the node is gone; TCP tells that itself. */
  readonly onQuic?: (() => void) | undefined;
}

export class LinkInitiator {
  readonly #deps: OpeningDependencies;

  constructor(dependencies: OpeningDependencies) {
    this.#deps = dependencies;
  }

  /**
   * Opens a link to an agent on the node at a place. Where the pooled connection turns out to be
   * broken or silent, the link is opened on a new one: nothing but the header has been sent by then.
   * @throws SvcError as `Links.open`; `Refusal` where the other side refuses
   */
  async open(opening: Opening): Promise<LinkStream> {
    const { pool } = this.#deps;
    const { place, relays, signal } = opening;
    const pooled = pool.current(place.nodeKey, relays);
    const session = pooled ?? (await pool.connect(place, signal, { relays }));
    try {
      return await this.#openWatched(session, opening);
    } catch (error) {
      const lost = error instanceof SvcError && error.code === 'connect_failed' && !(error instanceof Refusal);
      if (pooled === null || !lost || error instanceof NodeGone || signal.aborted) throw error;
      return await this.#openOn(await pool.connect(place, signal, { relays, insteadOf: pooled }), opening);
    }
  }

  /** Opens on a session, and dials a second one as soon as the first shows no sign of life. */
  async #openWatched(session: NodeSession, opening: Opening): Promise<LinkStream> {
    const { pool, clock } = this.#deps;
    const { place, relays, signal } = opening;
    const first = new AbortController();
    const giveUp = (): void => first.abort(abortError(signal));
    if (signal.aborted) giveUp();
    signal.addEventListener('abort', giveUp, { once: true });
    let answered = false;
    let second: Promise<LinkStream> | undefined;
    let received = 0;
    const watches: SilenceWatch[] = [];
    const isSilent = (): boolean => session.connection.stats().bytesReceived === received;
    const dialBeside = async (): Promise<LinkStream> => {
      using limit = awakeTimeout(clock, Math.max(BESIDE_MS, BESIDE_RTTS * session.connection.rtt()), signal);
      const other = await pool.connect(place, limit.signal, { relays, insteadOf: session });
      if (answered) throw new SvcError('cancelled');
      first.abort(new SvcError('cancelled'));
      return await this.#openOn(other, opening);
    };
    const onSilence = (): void => {
      if (!isSilent()) return;
      second = dialBeside();
      second.catch(() => {
        // Not a packet on either: the node is gone. What stands may outlive a short break of the path.
        if (answered || !isSilent()) return;
        session.drain();
        first.abort(new NodeGone());
      });
    };
    const onQuic = (): void => {
      received = session.connection.stats().bytesReceived;
      if (watches.length > 0) return;
      const limitMs = Math.max(SILENCE_MS, SILENCE_RTTS * session.connection.rtt());
      watches.push(new SilenceWatch(clock, limitMs, onSilence));
    };
    try {
      return await this.#openOn(session, { ...opening, onQuic, signal: first.signal });
    } catch (error) {
      if (error instanceof Refusal || error instanceof NodeGone || second === undefined) throw error;
      return await second;
    } finally {
      answered = true;
      for (const watch of watches) watch.stop();
      signal.removeEventListener('abort', giveUp);
    }
  }

  async #openOn(session: NodeSession, opening: Opening): Promise<LinkStream> {
    try {
      return await this.#request(session, opening);
    } catch (error) {
      if (!(error instanceof Refusal) || error.refusal !== STATUS.proofNeeded) throw error;
      this.#deps.proven.forgotten(session, opening.caller);
      return await this.#request(session, opening);
    }
  }

  async #request(session: NodeSession, opening: Opening): Promise<LinkStream> {
    // protocol-links.md, step 6
    const { caller, names, first, signal } = opening;
    const { proven, standing, clock } = this.#deps;
    const known = proven.find('called', session, names.called, unixSeconds(clock));
    const wantsProof = known === null;
    const header = encodeHeader({ ...names, proof: proven.callerProof(session, caller), wantsProof });
    const stream = this.#deps.pool.openUpgraded(session) ?? (await this.#openOnQuic(session, opening));
    try {
      // Nothing but the header goes to a node that has not proven yet that the called agent is on it.
      const early = known === null ? undefined : first?.bytes(placeOf(session, stream));
      const said = [Uint8Array.of(KIND.link), u16(header.length), header, ...(early === undefined ? [] : [early])];
      say(stream, Buffer.concat(said), early !== undefined && first?.isAll === true);
      if (early !== undefined) first?.follow?.((bytes) => void stream.write(bytes));
      const [status = STATUS.failed] = await readExactly(stream, 1, signal).finally(() => first?.follow?.(null));
      session.heard();
      if (status !== STATUS.ok) {
        if (early !== undefined) first?.refused?.();
        throw this.#refusal(status, caller);
      }
      proven.accepted(session, caller);
      const window = known ?? (await this.#checkCalled(stream, session, names.called, signal));
      // A newer delegation was met meanwhile: who answers has to prove himself once more.
      if (!proven.stands(names.called, window, unixSeconds(clock))) throw new Refusal(STATUS.proofNeeded);
      standing.add(names.called, stream, window.issuedAt);
      if (first !== undefined && early === undefined)
        say(stream, first.bytes(placeOf(session, stream)), first.isAll === true);
      return asQuicLink(stream, { ...names, nodeKey: session.there.nodeKey }, session.upgrade);
    } catch (error) {
      stream.destroy();
      throw error;
    }
  }

  /** What a status means: a delegation that has expired by our own clock too says nothing about clocks. */
  #refusal(status: number, { delegation }: LocalIdentity): Refusal {
    const isValid = isCurrent(delegation, 0, unixSeconds(this.#deps.clock));
    return new Refusal(status === STATUS.clockWrong && !isValid ? STATUS.badProof : status);
  }

  #openOnQuic(session: NodeSession, { signal, onQuic }: Opening): Promise<Stream> {
    const stream = openStreamWithin(session, signal);
    // The engine takes a while for a stream, on a thread of its own: what is asked of it is asked meanwhile.
    onQuic?.();
    return stream;
  }

  async #checkCalled(stream: Stream, session: NodeSession, called: Aid, signal: AbortSignal): Promise<ProvenWindow> {
    // protocol-links.md, step 10
    const { proven, clock } = this.#deps;
    const proof = decodeProof(await readFrame(stream, MAX_PROOF_BYTES, signal));
    if (proof === null) throw new SvcError('protocol_error', { message: "The called agent's proof is malformed." });
    try {
      return await proven.verify('called', session, called, proof, unixSeconds(clock));
    } catch (cause) {
      if (cause instanceof SvcError && cause.details?.['reason'] === NOT_YET_VALID) throw cause;
      const message = 'The node that answers does not prove that the called agent is on it.';
      throw new SvcError('protocol_error', { message, cause });
    }
  }
}
