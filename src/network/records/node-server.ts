/** Hands the datagrams that come in to those who answer them. What is not understood gets no answer. */
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
import { hostKeyOf } from './node-address.ts';
import type { RecordHost } from './record-host.ts';
import type { RpcRequest } from './rpc/rpc.ts';
import { decodeSeveralRequest, encodeSeveralReply } from './several-messages.ts';

interface NodeServerDependencies {
  readonly log: Log;
  readonly host: RecordHost;
  readonly engine: Pick<DhtEngine, 'answerProbe'>;
}

export class NodeServer {
  readonly #deps: NodeServerDependencies;

  constructor(dependencies: NodeServerDependencies) {
    this.#deps = dependencies;
  }

  /** Answers a request that came in a datagram; never rejects. */
  async onRequest(request: RpcRequest): Promise<void> {
    try {
      await this.#answer(request);
    } catch (error) {
      this.#deps.log.warn({ error }, 'a request could not be answered');
    }
  }

  async #answer(request: RpcRequest): Promise<void> {
    const { command, target, value, token } = request;
    if (value === null) return;
    if (command === COMMAND.probe) return this.#onProbe(request, value);
    if (target?.length !== KEY_BYTES) return;
    if (command === COMMAND.find) return this.#onFind(request, target, value);
    // Who wants something changed has to show that he is where he says.
    if (token === null) return;
    if (command === COMMAND.store) return await this.#onStore(request, target, value);
    if (command === COMMAND.storeSeveral) return await this.#onStoreSeveral(request, target, value);
    if (command === COMMAND.remove) return this.#onRemove(request, target, value);
  }

  #onProbe(request: RpcRequest, value: Uint8Array): void {
    const probe = decodeProbeRequest(value);
    if (probe !== null) this.#deps.engine.answerProbe(request, probe.port, probe.otherSocket);
  }

  #onFind(request: RpcRequest, key: Uint8Array, value: Uint8Array): void {
    const find = decodeFindRequest(value);
    if (find === null) return;
    const asking = {
      from: hostKeyOf(request.from),
      bytes: value.length + REQUEST_OVERHEAD_BYTES,
      proven: request.token !== null,
    };
    const answer = this.#deps.host.find(key, find, asking);
    if (answer !== null) request.reply(answer);
  }

  async #onStore(request: RpcRequest, key: Uint8Array, value: Uint8Array): Promise<void> {
    if (value.length > MAX_DATAGRAM_RECORD_BYTES) return;
    const reply = await this.#deps.host.store(key, value, hostKeyOf(request.from), MAX_DATAGRAM_RECORD_BYTES);
    request.reply(reply, { token: false });
  }

  async #onStoreSeveral(request: RpcRequest, key: Uint8Array, value: Uint8Array): Promise<void> {
    const records = decodeSeveralRequest(value);
    if (records === null) return;
    const codes = await this.#deps.host.storeSeveral(key, records, hostKeyOf(request.from));
    request.reply(encodeSeveralReply(codes), { token: false });
  }

  #onRemove(request: RpcRequest, key: Uint8Array, value: Uint8Array): void {
    const removals = decodeRemoveRequest(value);
    const count = removals === null ? null : this.#deps.host.removeNotes(key, removals, hostKeyOf(request.from));
    if (count !== null) request.reply(encodeRemoveReply(count), { token: false });
  }
}
