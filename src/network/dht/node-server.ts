/** Hands the datagrams that come in to those who answer them. What is not understood gets no answer. */
import type DHT from 'dht-rpc';
import type { Log } from '../../foundation/log.ts';
import { KEY_BYTES } from '../../foundation/records/keys.ts';
import { MAX_DATAGRAM_RECORD_BYTES } from '../../foundation/records/types.ts';
import type { DhtEngine } from './engine.ts';
import {
  COMMAND,
  decodeFindRequest,
  decodeProbeRequest,
  decodeRemoveRequest,
  encodeRemoveReply,
  REQUEST_OVERHEAD_BYTES,
} from './messages.ts';
import type { RecordHost } from './record-host.ts';

export interface NodeServerDependencies {
  readonly log: Log;
  readonly host: RecordHost;
  readonly engine: Pick<DhtEngine, 'answerProbe'>;
}

export class NodeServer {
  readonly #deps: NodeServerDependencies;

  constructor(dependencies: NodeServerDependencies) {
    this.#deps = dependencies;
  }

  /** Answers a request that came in a datagram. */
  onRequest(request: DHT.Request): void {
    try {
      this.#answer(request);
    } catch (error) {
      this.#deps.log.warn({ error }, 'a request could not be answered');
    }
  }

  #answer(request: DHT.Request): void {
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
    if (probe !== null) this.#deps.engine.answerProbe(request, probe.port, probe.otherSocket);
  }
}
