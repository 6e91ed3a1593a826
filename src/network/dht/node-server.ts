/** Hands the datagrams that come in to those who answer them. What is not understood gets no answer. */
import type DHT from 'dht-rpc';
import type { Clock } from '../../foundation/clock.ts';
import type { Log } from '../../foundation/log.ts';
import { RateLimiter } from '../../foundation/rate-limit.ts';
import { KEY_BYTES } from '../../foundation/records/keys.ts';
import { MAX_DATAGRAM_RECORD_BYTES } from '../../foundation/records/types.ts';
import type { Engine } from './engine.ts';
import type { Membership } from './membership.ts';
import {
  COMMAND,
  decodeFindRequest,
  decodeProbeRequest,
  decodeRemoveRequest,
  encodeRemoveReply,
  REQUEST_OVERHEAD_BYTES,
} from './messages.ts';
import { publisherOf } from './node-address.ts';
import type { PeerHealth } from './peer-health.ts';
import type { RecordHost } from './record-host.ts';
import type { WireHooks } from './wire.ts';

/** Requests of any kind that one address gets answered per second, and at once. */
const REQUESTS_PER_SECOND = 500;
const REQUEST_BURST = 5000;
/** Addresses whose rates are remembered. */
const MAX_RATE_KEYS = 8192;

export interface NodeServerDependencies {
  readonly clock: Clock;
  readonly log: Log;
  readonly health: PeerHealth;
  readonly host: RecordHost;
  readonly engine: () => Engine;
  readonly membership: () => Membership;
}

export class NodeServer implements Pick<WireHooks, 'admits' | 'onDatagram'> {
  readonly #deps: NodeServerDependencies;
  readonly #rate: RateLimiter;

  constructor(dependencies: NodeServerDependencies) {
    this.#deps = dependencies;
    this.#rate = new RateLimiter(
      { perSecond: REQUESTS_PER_SECOND, burst: REQUEST_BURST, maxKeys: MAX_RATE_KEYS },
      dependencies,
    );
  }

  admits(from: DHT.Address): boolean {
    return this.#rate.take(publisherOf(from));
  }

  onDatagram(from: DHT.Address, isRequest: boolean, socket: DHT.Socket): void {
    this.#deps.health.heard(from);
    if (!isRequest && this.#deps.engine().isServerSocket(socket)) this.#deps.membership().onServerAnswer(from);
  }

  onRequest(request: DHT.Request): void {
    try {
      this.#answer(request);
    } catch (error) {
      this.#deps.log.warn({ error }, 'a request could not be answered');
    }
  }

  #answer(request: DHT.Request): void {
    if (this.#deps.engine().isServerSocket(request.socket)) this.#deps.membership().onUnasked(request);
    switch (request.command) {
      case COMMAND.find:
        return this.#onFind(request);
      case COMMAND.store:
        this.#onStore(request).catch((error: unknown) => this.#deps.log.warn({ error }, 'a record was not taken'));
        return;
      case COMMAND.remove:
        return this.#onRemove(request);
      case COMMAND.probe:
        return this.#onProbe(request);
    }
  }

  #onFind(request: DHT.Request): void {
    const { target, value, token } = request;
    const find = value === null ? null : decodeFindRequest(value);
    if (target?.length !== KEY_BYTES || value === null || find === null) return;
    const bytes = value.length + REQUEST_OVERHEAD_BYTES;
    request.reply(this.#deps.host.find(target, find, bytes, token !== null), { closerNodes: false });
  }

  async #onStore(request: DHT.Request): Promise<void> {
    const { target, value, token, from } = request;
    if (target?.length !== KEY_BYTES || value === null || token === null) return;
    if (value.length > MAX_DATAGRAM_RECORD_BYTES) return;
    const reply = await this.#deps.host.store(target, value, from, MAX_DATAGRAM_RECORD_BYTES);
    request.reply(reply, { closerNodes: false, token: false });
  }

  #onRemove(request: DHT.Request): void {
    const { target, value, token, from } = request;
    if (target?.length !== KEY_BYTES || value === null || token === null) return;
    const removals = decodeRemoveRequest(value);
    if (removals === null) return;
    const count = this.#deps.host.removeNotes(target, removals, from);
    if (count !== null) request.reply(encodeRemoveReply(count), { closerNodes: false, token: false });
  }

  #onProbe(request: DHT.Request): void {
    const probe = request.value === null ? null : decodeProbeRequest(request.value);
    if (probe !== null) this.#deps.engine().answerProbe(request, probe.port, probe.otherSocket);
  }
}
