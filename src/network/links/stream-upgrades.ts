/** Opens streams of a connection over a faster transport, and answers peers that request that. */
import type { Clock } from '../../foundation/clock.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Log } from '../../foundation/log.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { type NodeSession, openStreamWithin } from '../peers/session.ts';
import type { Stream, StreamUpgrade } from '../transport/types.ts';
import { ProtocolBreach, Refusal, STATUS } from './status.ts';
import { KIND, type StreamDispatcher, type StreamHandler } from './stream-dispatcher.ts';
import { readExactly, readFrame, u16 } from './wire.ts';

/** Deadline for the response of a peer, milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;

interface StreamUpgradesDependencies {
  readonly upgrade: StreamUpgrade;
  readonly gate: Pick<StreamDispatcher, 'admit'>;
  readonly clock: Clock;
  readonly log: Log;
  /** New links to a node use the faster transport from now on. */
  readonly onReady: (session: NodeSession) => void;
}

export class StreamUpgrades {
  readonly #deps: StreamUpgradesDependencies;

  constructor(dependencies: StreamUpgradesDependencies) {
    this.#deps = dependencies;
  }

  /** A new stream to a node over the faster transport, or null if the connection must carry it. */
  open(session: NodeSession): Stream | null {
    const stream = this.#deps.upgrade.open({
      connection: session.connection,
      state: session.upgrade,
      request: (body) => this.#request(session, body),
      onReady: () => this.#deps.onReady(session),
    });
    if (stream !== null) session.adopt(stream);
    return stream;
  }

  /** Handles the streams of kind "near". */
  readonly answer: StreamHandler = async (stream, session, signal) => {
    const { upgrade, gate } = this.#deps;
    const request = await readFrame(stream, upgrade.maxRequestBytes, signal);
    const answer = await upgrade
      .answer(request, {
        connection: session.connection,
        state: session.upgrade,
        onStream: (opened) => gate.admit(opened, session),
      })
      .catch((error: unknown) => {
        const isMalformed = error instanceof SvcError && error.code === 'protocol_error';
        throw isMalformed ? new ProtocolBreach(error.message) : error;
      });
    if (answer === null) throw new Refusal(STATUS.unknownPurpose);
    stream.end(Buffer.concat([Uint8Array.of(STATUS.ok), answer]));
    stream.resume();
  };

  async #request(session: NodeSession, body: Uint8Array): Promise<Uint8Array | null> {
    using limit = awakeTimeout(this.#deps.clock, REQUEST_TIMEOUT_MS);
    const stream = await openStreamWithin(session, limit.signal);
    try {
      stream.end(Buffer.concat([Uint8Array.of(KIND.near), u16(body.length), body]));
      const [status] = await readExactly(stream, 1, limit.signal);
      if (status === STATUS.ok) return await readExactly(stream, this.#deps.upgrade.responseBytes, limit.signal);
      this.#deps.log.debug({ node: session.nodeId }, 'the peer declines a faster transport');
      return null;
    } finally {
      stream.destroy();
    }
  }
}
