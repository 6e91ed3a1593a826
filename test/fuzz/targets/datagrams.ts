/** Datagrams at the port of a live node of the record network. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { silentLog } from '../../../src/foundation/log.ts';
import { RecordVerifier } from '../../../src/foundation/records/verifier.ts';
import { DhtEngine } from '../../../src/network/dht/engine.ts';
import {
  COMMAND,
  encodeFindRequest,
  encodeProbeRequest,
  encodeRemoveRequest,
  MAX_REFLECTION_FACTOR,
} from '../../../src/network/dht/messages.ts';
import { NodeServer } from '../../../src/network/dht/node-server.ts';
import { PeerHealth } from '../../../src/network/dht/peer-health.ts';
import { RecordHost } from '../../../src/network/dht/record-host.ts';
import { RecordStore } from '../../../src/network/dht/record-store.ts';
import { nodeId } from '../../../src/network/dht/routing-id.ts';
import { encodeSeveralRequest } from '../../../src/network/dht/several-messages.ts';
import { NETWORK_TAG_BYTES, networkTag } from '../../../src/network/dht/wire.ts';
import { rawRequest } from '../../support/hostile-dht.ts';
import { TestClock } from '../../support/test-clock.ts';
import { broken } from '../engine/properties.ts';
import { vectorBytes } from '../engine/seeds.ts';
import type { FuzzTarget } from '../engine/target.ts';

const TAG = networkTag('test');
const TO = { host: '127.0.0.1', port: 4121 };
const TARGET = new Uint8Array(32).fill(5);
/** The first byte of the engine's answers, behind the tag. */
const ANSWER_BYTE = 0x13;
/** Milliseconds between two inputs, of the node's time. */
const PAUSE_MS = 100;
/** Turns of the event loop that an answer may take; one that is lost is not waited for. */
const MAX_TURNS = 2000;

/** A node that answers, with nothing in its store. */
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
    { ...common, store, verifier, quicPort: () => 4122, engine },
  );
  const server = new NodeServer({ ...common, host, engine });
  const introduced: unknown[] = [];
  engine.events.request.add((request) => {
    if (request.from.id !== null) introduced.push(request.from);
    void server.onRequest(request);
  });
  await engine.start();
  return { clock, engine, failures, introduced };
}

/** Stands in an input for the routing id of whoever sends it, which nobody can choose. */
const OWN_ID = Buffer.alloc(32, 0xaa);

/** A stranger's socket, and what comes back to it. */
class Stranger {
  readonly #socket: Socket = createSocket('udp4');
  readonly heard: Buffer[] = [];

  async start(): Promise<void> {
    this.#socket.on('message', (datagram) => this.heard.push(datagram));
    this.#socket.bind(0, '127.0.0.1');
    await once(this.#socket, 'listening');
  }

  /** Sends a datagram and one behind it that is always answered; returns the answers to the first. */
  async ask(datagram: Uint8Array, to: { readonly host: string; readonly port: number }): Promise<Buffer[]> {
    const last = rawRequest(TO, { command: 2, internal: true, target: TARGET });
    // Its number, by which its answer is known.
    last[NETWORK_TAG_BYTES + 2] = 0xee;
    last[NETWORK_TAG_BYTES + 3] = 0xee;
    this.heard.length = 0;
    const said = Buffer.from(datagram);
    const at = said.indexOf(OWN_ID);
    if (at >= 0) said.set(nodeId({ host: TO.host, port: this.#socket.address().port }), at);
    this.#socket.send(said, to.port, to.host);
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

/** A request of somebody who says that he is a node. */
function introduction(): Uint8Array {
  const plain = rawRequest(TO, { command: COMMAND.find });
  const idAt = NETWORK_TAG_BYTES + 10;
  const said = Buffer.concat([plain.subarray(0, idAt), OWN_ID, plain.subarray(idAt)]);
  said[NETWORK_TAG_BYTES + 1] = 1;
  return said;
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
        rawRequest(TO, {
          command: COMMAND.storeSeveral,
          target: TARGET,
          value: encodeSeveralRequest([{ encoded: record }]),
        }),
        rawRequest(TO, { command: COMMAND.remove, target: TARGET, value: removal }),
        rawRequest(TO, { command: COMMAND.probe, value: encodeProbeRequest({ port: 9, otherSocket: true }) }),
        ...[0, 1, 2, 3, 4].map((command) => rawRequest(TO, { command, internal: true, target: TARGET })),
        introduction(),
      ].map((seed) => new Uint8Array(seed)),
      run: async (input) => {
        // An address gets only so many answers a second.
        clock.advance(PAUSE_MS);
        const answers = await stranger.ask(input, engine.address);
        const bytes = answers.reduce((sum, { length }) => sum + length, 0);
        if (bytes > MAX_REFLECTION_FACTOR * input.length) throw broken('an answer is too long', input, bytes);
        if (introduced.length > 0) throw broken('a stranger was believed to be a node', input);
        if (failures.length > 0) throw broken('the log has a warning', input, JSON.stringify(failures));
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
