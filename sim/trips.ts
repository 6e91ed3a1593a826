/**
 * Round trips of single steps between complete nodes, exact: each datagram takes 100 ms of virtual time, and work takes
 * none. Flushes of the disk take a few milliseconds.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { KeyPair } from '../src/foundation/identity/keys.ts';
import { delegateAnew } from '../test/support/identities.ts';
import type { Random } from '../test/support/random.ts';
import { Agent, FIRST_SERVICE_PORT } from './agent.ts';
import { SimulatedNode } from './node.ts';
import type { Schedule } from './schedule.ts';
import { UdpNetwork } from './udp-network.ts';

/** One direction, milliseconds. */
const ONE_WAY_MS = 100;
const NODES = 8;
const DHT_PORT = 4121;
/** Time until the nodes are idle, milliseconds. */
const REST_MS = 20_000;
/** Time after which other nodes still know a killed one, milliseconds. */
const SOON_MS = 3000;
/** Period in which a user looks for events, milliseconds. */
const LOOK_MS = 1;

/** Times for which a node is down after a stop, and after a kill, which no program is started sooner after. */
const STOPPED_MS = [0, 300, 600, 1000, 2000, 5000];
const KILLED_MS = [600, 800, 1000, 2000, 5000];
const CALL_AGAIN_MS = 100;

/** Round trips of each step, in halves. */
export type Trips = Readonly<Record<string, number>>;

export class TripsWorld {
  readonly #schedule: Schedule;
  readonly #random: Random;
  readonly #udp: UdpNetwork;
  readonly #directory = mkdtempSync(join(tmpdir(), 'svcd-trips-'));
  readonly #nodes: SimulatedNode[] = [];
  readonly #rows: Record<string, number> = {};
  readonly #hosted: Agent[] = [];
  #agents = 0;

  constructor(schedule: Schedule, random: Random) {
    this.#schedule = schedule;
    this.#random = random;
    const quality = { loss: 0, duplication: 0, jitterMs: 0, minDelayMs: ONE_WAY_MS, mapMs: 0 };
    this.#udp = new UdpNetwork(schedule, random, quality);
  }

  async #join(name: string): Promise<SimulatedNode> {
    const [first] = this.#nodes;
    const node = new SimulatedNode({
      ...{ name, schedule: this.#schedule, random: this.#random, directory: this.#directory },
      machine: this.#udp.machine(this.#udp.newHost()),
      bootstrap: first === undefined ? [] : [`${first.machine.host}:${DHT_PORT}`],
    });
    await this.#schedule.until(node.start());
    this.#nodes.push(node);
    await this.#rest();
    return node;
  }

  async #newAgent(node: SimulatedNode): Promise<Agent> {
    const identity = delegateAnew(KeyPair.generate(), Math.floor(this.#schedule.now() / 1000));
    const nth = this.#agents++;
    const agent = new Agent(`a${nth}`, node, FIRST_SERVICE_PORT + nth, identity);
    this.#hosted.push(agent);
    agent.serve();
    await this.#schedule.until(agent.register());
    return agent;
  }

  async #rest(): Promise<void> {
    await this.#schedule.run(REST_MS);
  }

  #row(what: string, ms: number): void {
    this.#rows[what] = Math.floor(ms / ONE_WAY_MS) / 2;
  }

  async #measure<T>(what: string, work: () => Promise<T>): Promise<T> {
    const startedAt = this.#schedule.now();
    const result = await this.#schedule.until(work());
    this.#row(what, this.#schedule.now() - startedAt);
    return result;
  }

  async #publish({ node, aid }: Agent): Promise<void> {
    await this.#schedule.until(node.call('agentPublish', { aid }));
  }

  /** Sends a note, and measures when its recipient has the event and when the sender is answered. */
  async #note(what: string, from: Agent, to: Agent): Promise<void> {
    const { last_seq: after_seq } = await this.#schedule.until(to.node.call('eventsPoll', { aid: to.aid }));
    const startedAt = this.#schedule.now();
    const sending = this.#measure(`${what}: answered`, () => this.#send(from, to));
    const look = async (): Promise<void> => {
      const { events } = await to.node.call('eventsPoll', { aid: to.aid, after_seq });
      if (events.some(({ type }) => type === 'mailbox.received'))
        return this.#row(`${what}: event at the receiver`, this.#schedule.now() - startedAt);
      this.#schedule.after(LOOK_MS, () => void look());
    };
    void look();
    await sending;
  }

  /**
   * Ends a node and starts it again while another one calls it all the time.
   * @returns milliseconds from its start to an answered call
   */
  async #restart(
    node: SimulatedNode,
    downMs: number,
    end: () => Promise<void>,
    call: () => Promise<unknown>,
  ): Promise<number> {
    await this.#schedule.until(call());
    await this.#rest();
    await this.#schedule.until(end());
    const answered = Promise.withResolvers<number>();
    const attempt = (): void =>
      void call().then(
        () => answered.resolve(this.#schedule.now()),
        () => this.#schedule.after(CALL_AGAIN_MS, attempt),
      );
    attempt();
    await this.#schedule.run(downMs);
    await this.#schedule.until(node.start());
    const startedAt = this.#schedule.now();
    for (const agent of this.#hosted) if (agent.node === node) agent.serve();
    const lostMs = (await this.#schedule.until(answered.promise)) - startedAt;
    await this.#rest();
    return lostMs;
  }

  #send(from: Agent, to: Agent) {
    const body_base64 = Buffer.from(`note ${this.#schedule.now()}`).toString('base64');
    return from.node.call('mailboxSend', { aid: from.aid, recipient: to.aid, msg_type: 1, body_base64 });
  }

  async run(): Promise<Trips> {
    try {
      await this.#all();
      return this.#rows;
    } finally {
      rmSync(this.#directory, { recursive: true, force: true });
    }
  }

  async #all(): Promise<void> {
    const nodes: SimulatedNode[] = [];
    for (let i = 0; i < NODES; i++) nodes.push(await this.#join(`node-${i}`));
    const caller = await this.#join('caller');
    const called = await this.#join('called');
    const local = await this.#newAgent(caller);
    const publish = () => caller.call('agentPublish', { aid: local.aid });
    await this.#measure('publish, first', publish);
    await this.#measure('publish again', publish);
    await this.#rest();
    await this.#measure('publish later', publish);
    const first = await this.#newAgent(called);
    const second = await this.#newAgent(called);
    await this.#publish(first);
    await this.#publish(second);
    await this.#rest();
    const fetchOf = ({ aid }: Agent) => caller.call('fetch', { aid, path: '/', local_aid: local.aid });
    await this.#measure('first call, agent and node unknown', () => fetchOf(first));
    await this.#measure('call', () => fetchOf(first));
    await this.#measure('first call of a second agent on the node', () => fetchOf(second));

    const restarts = [
      ['restart until called again', STOPPED_MS, async () => void (await called.stop())],
      ['killed until called again', KILLED_MS, async () => called.crash()],
    ] as const;
    for (const [what, downMs, end] of restarts) {
      const lostMs: number[] = [];
      for (const ms of downMs) lostMs.push(await this.#restart(called, ms, end, () => fetchOf(first)));
      this.#row(what, Math.max(...lostMs));
    }

    const sender = await this.#join('sender');
    const receiver = await this.#join('receiver');
    const [alice, bob, gone] = [
      await this.#newAgent(sender),
      await this.#newAgent(receiver),
      await this.#newAgent(receiver),
    ];
    for (const agent of [alice, bob, gone]) await this.#publish(agent);
    await this.#rest();
    await this.#note('first note', alice, bob);
    await this.#note('another note', alice, bob);
    receiver.crash();
    await this.#schedule.run(SOON_MS);
    await this.#measure('note to an agent that is off', () => this.#send(alice, gone));
    await this.#measure('another note to it', () => this.#send(alice, gone));
  }
}
