/** Datagrams to the port of a running node of the record network. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import { DhtEngine } from '../../../src/network/records/engine.ts';
import {
  COMMAND,
  encodeFindRequest,
  encodeProbeRequest,
  encodeRemoveRequest,
  MAX_REFLECTION_FACTOR,
} from '../../../src/network/records/messages.ts';
import { networkTag, nodeId } from '../../../src/network/records/node-address.ts';
import { PeerHealth } from '../../../src/network/records/peer-health.ts';
import { NodeServer, RecordHost } from '../../../src/network/records/record-host.ts';
import { RecordStore } from '../../../src/network/records/record-store.ts';
import { NETWORK_TAG_BYTES } from '../../../src/network/transport/udp-socket.ts';
import { rawRequest } from '../../support/hostile-dht.ts';
import { TestClock } from '../../support/test-clock.ts';
import { violation } from '../engine/properties.ts';
import { vectorBytes } from '../engine/seeds.ts';
import type { FuzzTarget } from '../engine/target.ts';

const TAG = networkTag('test');
const TO = { host: '127.0.0.1', port: 4121 };
const TARGET = new Uint8Array(32).fill(5);
/** First byte of an answer, after the tag. */
const ANSWER_BYTE = 0x13;
/** Milliseconds of the node's time between two inputs. */
const PAUSE_MS = 100;
/** Maximum event loop turns until a response; a lost response is not awaited. */
const MAX_TURNS = 2000;

/** A node that responds and stores nothing. */
async function liveNode() {
  const failures: unknown[] = [];
  const clock = new TestClock();
  const common = { clock, log: { ...silentLog, warn: (fields: object) => void failures.push(fields) } };
  const engine = new DhtEngine(
    { host: '127.0.0.1', port: 0, tag: TAG },
    { ...common, health: new PeerHealth(common), isOwnHost: () => false, sourceTo: () => null },
  );
  const store = new RecordStore({ file: ':memory:', maxBytes: 16 * 1024 * 1024 }, common);
  const verifier = new RecordVerifier({}, { delegations: new DelegationVerifier() });
  const host = new RecordHost(
    { nodeKey: new Uint8Array(32), tag: TAG },
    clock,
    common.log,
    verifier,
    () => 4122,
    store,
    engine,
  );
  const server = new NodeServer(common.log, host, engine);
  const introduced: unknown[] = [];
  engine.events.request.add((request) => {
    if (request.from.id !== null) introduced.push(request.from);
    void server.onRequest(request);
  });
  await engine.start();
  return { clock, engine, failures, introduced };
}

/** Placeholder in an input for the sender's routing id, which depends on its address. */
const OWN_ID = Buffer.alloc(32, 0xaa);

/** A remote socket, and the responses to it. */
class Stranger {
  readonly #socket: Socket = createSocket('udp4');
  readonly heard: Buffer[] = [];

  async start(): Promise<void> {
    this.#socket.on('message', (datagram) => this.heard.push(datagram));
    this.#socket.bind(0, '127.0.0.1');
    await once(this.#socket, 'listening');
  }

  /** Sends a datagram and then one that is always answered; returns the responses to the first. */
  async ask(datagram: Uint8Array, to: { readonly host: string; readonly port: number }): Promise<Buffer[]> {
    const last = rawRequest(TO, { command: 2, internal: true, target: TARGET });
    // The transaction id of the second datagram.
    last[NETWORK_TAG_BYTES + 2] = 0xee;
    last[NETWORK_TAG_BYTES + 3] = 0xee;
    this.heard.length = 0;
    const bytes = Buffer.from(datagram);
    const at = bytes.indexOf(OWN_ID);
    if (at >= 0) bytes.set(nodeId({ host: TO.host, port: this.#socket.address().port }), at);
    this.#socket.send(bytes, to.port, to.host);
    this.#socket.send(last, to.port, to.host);
    const isLast = (answer: Buffer) => answer.readUInt16LE(NETWORK_TAG_BYTES + 2) === 0xeeee;
    for (let turn = 0; turn < MAX_TURNS && !this.heard.some(isLast); turn++)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    return this.heard.filter((answer) => answer[NETWORK_TAG_BYTES] === ANSWER_BYTE && !isLast(answer));
  }

  stop(): void {
    this.#socket.close();
  }
}

/** A request that claims to come from a node. */
function nodeRequest(): Uint8Array {
  const plain = rawRequest(TO, { command: COMMAND.find });
  const idAt = NETWORK_TAG_BYTES + 10;
  const request = Buffer.concat([plain.subarray(0, idAt), OWN_ID, plain.subarray(idAt)]);
  request[NETWORK_TAG_BYTES + 1] = 1;
  return request;
}

const datagrams: FuzzTarget = {
  name: 'dht-datagrams',
  inputs: 400,
  maxBytes: 1300,
  edit: () => null,
  prepare: async () => {
    const { clock, engine, failures, introduced } = await liveNode();
    const stranger = new Stranger();
    await stranger.start();
    const [record = new Uint8Array()] = vectorBytes('record', 'valid.*.record_hex');
    const digest = new Uint8Array(8);
    const removal = encodeRemoveRequest([{ digest, token: new Uint8Array(16) }]);
    const find = encodeFindRequest({ types: [1], wantsRecords: true });
    return {
      seeds: [
        rawRequest(TO, { command: COMMAND.find, target: TARGET, value: find }),
        rawRequest(TO, { command: COMMAND.store, target: TARGET, value: record }),
        rawRequest(TO, { command: COMMAND.remove, target: TARGET, value: removal }),
        rawRequest(TO, { command: COMMAND.probe, value: encodeProbeRequest({ port: 9, otherSocket: true }) }),
        ...[0, 1, 2, 3, 4].map((command) => rawRequest(TO, { command, internal: true, target: TARGET })),
        nodeRequest(),
      ].map((seed) => new Uint8Array(seed)),
      run: async (input) => {
        // Responses per address and second are limited.
        clock.advance(PAUSE_MS);
        const answers = await stranger.ask(input, engine.address);
        const bytes = answers.reduce((sum, { length }) => sum + length, 0);
        if (bytes > MAX_REFLECTION_FACTOR * input.length) throw violation('an answer is too long', input, bytes);
        if (introduced.length > 0) throw violation('an unverified address was accepted as a node', input);
        if (failures.length > 0) throw violation('the log has a warning', input, JSON.stringify(failures));
        return `${answers.length} ${answers.map((answer) => answer[NETWORK_TAG_BYTES + 1]).join()}`;
      },
      close: async () => {
        stranger.stop();
        await engine.stop();
      },
    };
  },
};

export const datagramTargets: readonly FuzzTarget[] = [datagrams];
