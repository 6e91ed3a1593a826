/** The calling side of a link: sends the header, exchanges proofs, waits for the answer. */
import type { Duplex } from 'node:stream';
import { type Clock, type Timer, unixSeconds } from '../../foundation/clock.ts';
import { abortError } from '../../foundation/deadline.ts';
import { detach } from '../../foundation/detached.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { awakeTimeout, SilenceWatch } from '../../foundation/stall.ts';
import { asStep, type OpeningTrace } from '../../foundation/traces/traced-request.ts';
import type { NodePlace, NodeSilence } from '../peers/dial.ts';
import type { PeerTable } from '../peers/peer-table.ts';
import { type NodeSession, openStreamWithin } from '../peers/session.ts';
import { KIND, Refusal, readExactly, readFrame, STATUS, u16, u32 } from '../peers/wire.ts';
import type { Stream } from '../transport/types.ts';
import type { BulkMoves } from './bulk-moves.ts';
import { encodeHeader } from './header.ts';
import { decodeProof, isCurrent, MAX_PROOF_BYTES, NOT_YET_VALID, type ProvenWindow } from './proofs.ts';
import type { OpenLinks, ProvenAgents } from './proven.ts';
import { asQuicLink } from './stream.ts';
import type { FirstBytes, FirstPlace, LinkNames, LinkStream, LocalIdentity } from './types.ts';

/** Silence after a header until another connection is dialed, milliseconds … */
export const SILENCE_MS = 1_000;
/** … or this number of round trips, if that is longer. */
const SILENCE_RTTS = 4;
/** Timeout of that dial, milliseconds. After it the node counts as unreachable … */
export const REDIAL_MS = 2_500;
/** … or this number of round trips, if that is longer. */
const REDIAL_RTTS = 8;

/** A node with a packet within this time is most likely reachable, milliseconds. */
export const FRESH_MS = 1_000;

/** No packet arrives on the current connection or on a new one. */
class NodeGone extends SvcError {
  constructor() {
    super('connect_failed', { message: 'The other node no longer answers.' });
  }
}

/** The state of an attempt to open a link. */
interface Tried {
  /** The connection is older than the attempt, so it may be dead. */
  isPooled: boolean;
  /** The other node was silent, and another connection is dialed. */
  isReplaced: boolean;
  /** The caller's proof was repeated on this connection. */
  isProofRepeated: boolean;
}

/** The next step after a failed attempt on one connection. The remote agent has acted on the header at most. */
function nextStep(error: unknown, tried: Tried): 'prove again' | 'use another connection' | 'give up' {
  if (error instanceof NodeGone) return 'give up';
  if (error instanceof Refusal)
    return error.refusal === STATUS.proofNeeded && !tried.isProofRepeated ? 'prove again' : 'give up';
  const isLost = error instanceof SvcError && error.code === 'connect_failed';
  return tried.isReplaced || (tried.isPooled && isLost) ? 'use another connection' : 'give up';
}

/** The target of a stream. A stopped process would have closed its TCP connection. */
function placeOf(session: NodeSession, stream: Stream): FirstPlace {
  const isFresh = stream.isUpgraded || session.heardWithin(FRESH_MS);
  return { instance: session.instance, isFresh };
}

function say(stream: Stream, bytes: Uint8Array, isAll: boolean): void {
  if (isAll) stream.end(bytes);
  else stream.write(bytes);
}

/** A link to open. */
export interface Opening {
  readonly place: NodePlace;
  readonly caller: LocalIdentity;
  readonly names: LinkNames;
  /** False if no third node may carry the packets. */
  readonly relays: boolean;
  /** As in `OpenOptions`. */
  readonly first?: FirstBytes | undefined;
  /** As `bulk` in `OpenOptions`. */
  readonly isBulk: boolean;
  /** As in `OpenOptions`. */
  readonly silence?: NodeSilence | undefined;
  /** As in `OpenOptions`. */
  readonly trace?: OpeningTrace | undefined;
  /** As in `OpenOptions`. */
  readonly isUnasked: boolean;
  readonly signal: AbortSignal;
}

/**
 * Watches the first connection until the answer to the header. Without a packet, another connection is dialed. When
 * that succeeds, the request on the first connection ends. If no packet arrives on either, the node is unreachable. The
 * faster transport needs no watch, because TCP reports a lost peer.
 */
class AnswerWatch {
  readonly #clock: Clock;
  readonly #session: NodeSession;
  readonly #outer: AbortSignal;
  readonly #redial: (limit: AbortSignal) => Promise<void>;
  readonly #request = new AbortController();
  readonly #giveUp = (): void => this.#request.abort(abortError(this.#outer));
  #silence: SilenceWatch | null = null;
  readonly #silenceLimit: NodeSilence | undefined;
  #silenceTimer: Timer | null = null;
  #received = 0;
  #isOver = false;

  constructor(
    clock: Clock,
    session: NodeSession,
    outer: AbortSignal,
    redial: (limit: AbortSignal) => Promise<void>,
    silenceLimit: NodeSilence | undefined,
  ) {
    this.#silenceLimit = silenceLimit;
    this.#clock = clock;
    this.#session = session;
    this.#outer = outer;
    this.#redial = redial;
    if (outer.aborted) this.#giveUp();
    outer.addEventListener('abort', this.#giveUp, { once: true });
  }

  /** Aborts the request on the first connection. */
  get signal(): AbortSignal {
    return this.#request.signal;
  }

  /** To be called when a header is sent. */
  begin(): void {
    this.#received = this.#session.connection.stats().bytesReceived;
    if (this.#silence !== null) return;
    if (this.#silenceLimit !== undefined) this.#watchSilence(this.#silenceLimit);
    const limitMs = Math.max(SILENCE_MS, SILENCE_RTTS * this.#session.connection.rtt());
    const now = this.#clock.monotonic();
    const silentMs = now - (this.#session.unansweredSince ?? now);
    this.#silence = new SilenceWatch(this.#clock, Math.max(0, limitMs - silentMs), () => {
      if (this.#isSilent()) detach(this.#replace());
    });
  }

  stop(): void {
    this.#isOver = true;
    this.#silence?.stop();
    this.#silenceTimer?.cancel();
    this.#outer.removeEventListener('abort', this.#giveUp);
  }

  #watchSilence({ minMs, roundTrips, onSilence }: NodeSilence): void {
    const session = this.#session;
    const now = this.#clock.monotonic();
    session.expectAnswer();
    const limitMs = Math.max(minMs, roundTrips * session.connection.rtt());
    const untilMs = (session.unansweredSince ?? now) + limitMs - now;
    this.#silenceTimer = this.#clock.after(Math.max(0, untilMs), () => {
      if (session.unansweredSince !== null) onSilence();
    });
  }

  #isSilent(): boolean {
    return this.#session.connection.stats().bytesReceived === this.#received;
  }

  async #replace(): Promise<void> {
    const limitMs = Math.max(REDIAL_MS, REDIAL_RTTS * this.#session.connection.rtt());
    using limit = awakeTimeout(this.#clock, limitMs, this.#outer);
    try {
      await this.#redial(limit.signal);
      if (!this.#isOver) this.#request.abort(new SvcError('cancelled'));
    } catch {
      if (this.#isOver || !this.#isSilent()) return;
      // Its open streams may survive a short interruption.
      this.#session.drain();
      this.#request.abort(new NodeGone());
    }
  }
}

export class LinkInitiator {
  readonly #peers: PeerTable;
  readonly #proven: ProvenAgents;
  readonly #open: OpenLinks;
  readonly #clock: Clock;
  readonly #moves: BulkMoves | null;

  constructor(peers: PeerTable, proven: ProvenAgents, open: OpenLinks, clock: Clock, moves: BulkMoves | null) {
    this.#peers = peers;
    this.#proven = proven;
    this.#open = open;
    this.#clock = clock;
    this.#moves = moves;
  }

  /**
   * Opens a link to an agent at a place, on the current connection or a new one. If that connection is dead or silent,
   * one more is tried.
   * @throws SvcError as `Links.open`; `Refusal` if the other side refuses
   */
  async open(opening: Opening): Promise<LinkStream> {
    const { place, caller, relays, signal, silence, trace } = opening;
    const connect = (insteadOf?: NodeSession): Promise<NodeSession> =>
      asStep(trace, 'dial', () =>
        this.#peers.connect(place, signal, { relays, silence, ...(insteadOf ? { insteadOf } : {}) }),
      );
    const pooled = this.#peers.current(place.nodeKey, relays);
    let session = pooled ?? (await connect());
    const tried: Tried = { isPooled: pooled !== null, isReplaced: false, isProofRepeated: false };
    const redial = async (limit: AbortSignal): Promise<void> => {
      tried.isReplaced = true;
      await this.#peers.connect(place, limit, { relays, insteadOf: session });
    };
    let watch: AnswerWatch | null = new AnswerWatch(this.#clock, session, signal, redial, silence);
    try {
      for (;;) {
        try {
          if (trace !== undefined) trace.path = session.connection.path.kind;
          return await asStep(trace, 'link', () => this.#request(session, opening, watch));
        } catch (error) {
          const next = signal.aborted ? 'give up' : nextStep(error, tried);
          if (next === 'give up') throw error;
          tried.isProofRepeated = next === 'prove again';
          if (next === 'prove again') {
            this.#proven.forgotten(session, caller);
          } else {
            watch?.stop();
            watch = null;
            session = await connect(session);
            Object.assign(tried, { isPooled: false, isReplaced: false });
          }
        }
      }
    } finally {
      watch?.stop();
    }
  }

  async #request(session: NodeSession, opening: Opening, watch: AnswerWatch | null): Promise<LinkStream> {
    // protocol-links.md, step 6
    const { caller, names, first } = opening;
    const signal = watch?.signal ?? opening.signal;
    const known = this.#proven.find('called', session, names.called, unixSeconds(this.#clock));
    const wantsProof = known === null;
    const header = encodeHeader({ ...names, proof: this.#proven.callerProof(session, caller), wantsProof });
    const stream = this.#peers.openUpgraded(session) ?? (await this.#openOnQuic(session, signal, watch));
    const number = opening.isBulk ? (this.#moves?.numberFor(session, stream) ?? null) : null;
    try {
      // The agent's own record names this node, so it may receive the first bytes before it proves the agent.
      const early = first?.bytes(placeOf(session, stream));
      const kind = number === null ? [Uint8Array.of(KIND.link)] : [Uint8Array.of(KIND.bulkLink), u32(number)];
      const parts = [...kind, u16(header.length), header, ...(early === undefined ? [] : [early])];
      say(stream, Buffer.concat(parts), early !== undefined && first?.isAll === true);
      if (early !== undefined) first?.follow?.((bytes) => void stream.write(bytes));
      const [status = STATUS.failed] = await readExactly(stream, 1, signal).finally(() => first?.follow?.(null));
      session.heard();
      if (status !== STATUS.ok) {
        if (early !== undefined) first?.refused?.();
        throw this.#refusal(status, caller);
      }
      this.#proven.accepted(session, caller);
      const window = known ?? (await this.#checkCalled(stream, session, names.called, signal));
      // A newer delegation appeared meanwhile, so the called agent must prove itself again.
      if (!this.#proven.isValid(names.called, window, unixSeconds(this.#clock))) throw new Refusal(STATUS.proofNeeded);
      this.#open.add(names.called, stream, window.issuedAt);
      if (number !== null) this.#moves?.opened(session, stream, number);
      const coverByProof = (other: Duplex): void => {
        this.#open.add(names.called, other, window.issuedAt);
        if (!this.#proven.isValid(names.called, window, unixSeconds(this.#clock))) other.destroy();
      };
      const link = asQuicLink(stream, { ...names, nodeKey: session.there.nodeKey }, session.upgrade);
      return Object.assign(link, { coverByProof, expectAnswer: () => session.expectAnswer() });
    } catch (error) {
      stream.destroy();
      throw error;
    }
  }

  /** The error for a status. A delegation that is also expired by this node's clock proves nothing about clocks. */
  #refusal(status: number, { delegation }: LocalIdentity): Refusal {
    const isValid = isCurrent(delegation, 0, unixSeconds(this.#clock));
    return new Refusal(status === STATUS.clockWrong && !isValid ? STATUS.badProof : status);
  }

  #openOnQuic(session: NodeSession, signal: AbortSignal, watch: AnswerWatch | null): Promise<Stream> {
    const stream = openStreamWithin(session, signal);
    // The engine opens a stream on its own thread. Read its figures meanwhile.
    watch?.begin();
    return stream;
  }

  async #checkCalled(stream: Stream, session: NodeSession, called: Aid, signal: AbortSignal): Promise<ProvenWindow> {
    // protocol-links.md, step 10
    const proof = decodeProof(await readFrame(stream, MAX_PROOF_BYTES, signal));
    if (proof === null) throw new SvcError('protocol_error', { message: "The called agent's proof is malformed." });
    try {
      return await this.#proven.verify('called', session, called, proof, unixSeconds(this.#clock));
    } catch (cause) {
      if (cause instanceof SvcError && cause.details?.['reason'] === NOT_YET_VALID) throw cause;
      const message = 'The node that answers does not prove that the called agent is on it.';
      throw new SvcError('protocol_error', { message, cause });
    }
  }
}
