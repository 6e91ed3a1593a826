/** Reaches a node that has no helper by a TURN server of either side: it is asked over the record network. */
import { randomBytes } from 'node:crypto';
import type { Address } from '../../foundation/address.ts';
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { abortable } from '../../foundation/deadline.ts';
import { X25519_PRIVATE_KEY_BYTES } from '../../foundation/domain/notes.ts';
import { SvcError } from '../../foundation/errors.ts';
import { BoxOpener, sealingKeyOf } from '../../foundation/keys/sealed-box.ts';
import { turnRendezvousKey } from '../../foundation/records/keys.ts';
import { RECORD } from '../../foundation/records/types.ts';
import type { NodePlace } from '../peers/dial.ts';
import type { RecordNetwork } from '../records/types.ts';
import type { Connection } from '../transport/types.ts';
import { decodeKnockAnswer, encodeKnock, openKnock, sealKnock } from './knocks.ts';
import { mayDialAt } from './punch-guard.ts';
import { ATTEMPT_BYTES } from './signals.ts';
import { overCarrier } from './turn/over-carrier.ts';
import type { TurnUse } from './turn/turn-servers.ts';

/** How often is looked whether the node has answered, milliseconds. */
export const ANSWER_LOOK_MS = 500;
/** Answers that are read at a time: anybody may write some. */
const MAX_ANSWERS = 8;

interface KnockerDependencies {
  readonly clock: Clock;
  /** This node's public key. */
  readonly nodeKey: Uint8Array;
  readonly records: Pick<RecordNetwork, 'put' | 'list'>;
  /** Our host as others see it; null while none has said. */
  readonly seenHost: () => string | null;
  /** Our own TURN servers. */
  readonly turn: TurnUse;
  /** Dials an address by a way of kind `turn`, whose packets go to `remote`. */
  readonly dial: (address: Address, nodeKey: Uint8Array, remote: Address, signal: AbortSignal) => Promise<Connection>;
}

export class TurnRendezvousClient {
  readonly #deps: KnockerDependencies;

  constructor(dependencies: KnockerDependencies) {
    this.#deps = dependencies;
  }

  /** Whether there is anything that a dial of a node could begin with. */
  mayLead({ meeting, hasTurn }: NodePlace): boolean {
    return meeting !== undefined && (this.#deps.turn.some || hasTurn === true);
  }

  /**
   * Meets a node at a TURN server: of ours where we have one, else of its own.
   * @throws SvcError `connect_failed`, or the signal's reason
   */
  async meet({ nodeKey, meeting }: NodePlace, signal: AbortSignal): Promise<Connection> {
    const { turn, dial, seenHost, nodeKey: caller } = this.#deps;
    const host = seenHost();
    if (meeting === undefined || host === null) throw new SvcError('connect_failed');
    const attempt = new Uint8Array(randomBytes(ATTEMPT_BYTES));
    const opener = new BoxOpener(sealingKeyOf(randomBytes(X25519_PRIVATE_KEY_BYTES)));
    const knock = async (listensAt: Address | null): Promise<void> => {
      const message = encodeKnock({ caller, attempt, answerTo: opener.publicKey, host, listensAt });
      await this.#put(message, meeting.publicKey, signal);
    };
    if (turn.some)
      return await overCarrier(turn, { peerHost: meeting.host, token: attempt }, async (carrier) => {
        await knock(carrier.relayed);
        await abortable(carrier.here, signal);
        return await dial(carrier.local, nodeKey, carrier.server, signal);
      });
    await knock(null);
    const at = await this.#answer(opener, attempt, signal);
    if (!mayDialAt(at, { host, port: 0 }))
      throw new SvcError('connect_failed', {
        message: 'The node named an address that is not dialled: a private host, or a port below 1024.',
      });
    return await dial(at, nodeKey, at, signal);
  }

  async #put(message: Uint8Array, to: Uint8Array, signal: AbortSignal): Promise<void> {
    const { records, clock } = this.#deps;
    const { replicas, isHere } = await records.put(turnRendezvousKey(to), sealKnock(message, to, clock), { signal });
    if (replicas === 0 && isHere !== true)
      throw new SvcError('connect_failed', { message: 'No node of the record network was reached.' });
  }

  /** Looks until the node has answered. */
  async #answer(opener: BoxOpener, attempt: Uint8Array, signal: AbortSignal): Promise<Address> {
    const { records, clock } = this.#deps;
    for (;;) {
      const found = await records.list(turnRendezvousKey(opener.publicKey), [RECORD.note], {
        limit: MAX_ANSWERS,
        signal,
      });
      const messages = found.map((record) => openKnock(record, opener));
      const answers = messages.map((message) => (message === null ? null : decodeKnockAnswer(message)));
      const answer = answers.find((one) => one !== null && equalBytes(one.attempt, attempt));
      if (answer !== undefined && answer !== null) return answer.listensAt;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = clock.after(ANSWER_LOOK_MS, resolve);
      try {
        await abortable(promise, signal);
      } finally {
        timer.cancel();
      }
    }
  }
}
