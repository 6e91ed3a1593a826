/** Asks neighbours for TCP connections beside the QUIC connection, and answers those who ask: `network/near`. */
import type { Clock } from '../../foundation/clock.ts';
import type { Log } from '../../foundation/log.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import {
  decodeAnswer,
  decodeRequest,
  encodeAnswer,
  encodeRequest,
  MAX_NEAR_REQUEST_BYTES,
  NEAR_ANSWER_BYTES,
  type NearAnswer,
  type NearRequest,
} from '../near/agreement.ts';
import type { Near } from '../near/near.ts';
import type { QuicStream } from '../quic/types.ts';
import { type NodeSession, openStreamWithin } from './node-session.ts';
import { ProtocolBreach, Refusal, STATUS } from './status.ts';
import { KIND, type StreamDispatcher, type StreamHandler } from './stream-dispatcher.ts';
import { readExactly, readFrame, u16 } from './wire.ts';

/** Time for a neighbour to answer, milliseconds. */
const ASK_TIMEOUT_MS = 5_000;

interface NearStreamsDependencies {
  readonly near: Near;
  readonly gate: Pick<StreamDispatcher, 'admit'>;
  readonly clock: Clock;
  readonly log: Log;
  /** New links to a node go beside its QUIC connection from now on. */
  readonly onReady: (session: NodeSession) => void;
}

export class NearStreams {
  readonly #deps: NearStreamsDependencies;

  constructor(dependencies: NearStreamsDependencies) {
    this.#deps = dependencies;
  }

  /** A new stream to a node beside its QUIC connection; null where that has to carry it. */
  open(session: NodeSession): QuicStream | null {
    const { connection, beside } = session;
    const stream = this.#deps.near.take({
      connection,
      beside,
      ask: (request) => this.#ask(session, request),
      onReady: () => this.#deps.onReady(session),
    });
    if (stream !== null) session.adopt(stream);
    return stream;
  }

  /** Takes the streams of kind "near". */
  readonly answer: StreamHandler = async (stream, session, signal) => {
    const { near, gate } = this.#deps;
    const request = decodeRequest(await readFrame(stream, MAX_NEAR_REQUEST_BYTES, signal));
    if (request === null) throw new ProtocolBreach('A request for other ways is malformed.');
    const answer = await near.answer(request, {
      connection: session.connection,
      beside: session.beside,
      onStream: (opened) => gate.admit(opened, session),
    });
    if (answer === null) throw new Refusal(STATUS.unknownPurpose);
    stream.end(Buffer.concat([Uint8Array.of(STATUS.ok), encodeAnswer(answer)]));
    stream.resume();
  };

  async #ask(session: NodeSession, request: NearRequest): Promise<NearAnswer | null> {
    using limit = awakeTimeout(this.#deps.clock, ASK_TIMEOUT_MS);
    const stream = await openStreamWithin(session, limit.signal);
    try {
      const body = encodeRequest(request);
      stream.end(Buffer.concat([Uint8Array.of(KIND.near), u16(body.length), body]));
      const [status] = await readExactly(stream, 1, limit.signal);
      if (status === STATUS.ok) return decodeAnswer(await readExactly(stream, NEAR_ANSWER_BYTES, limit.signal));
      this.#deps.log.debug({ node: session.nodeId }, 'a neighbour goes on over QUIC alone');
      return null;
    } finally {
      stream.destroy();
    }
  }
}
