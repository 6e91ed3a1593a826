/** Notes: each acknowledged one is delivered exactly once. */
import { SvcError } from '../../src/foundation/errors.ts';
import type { Agent } from '../agent.ts';
import type { Surroundings, Users } from '../user.ts';

const TEXT = 1;
/** Part of the actions that collect instead of sending. */
const COLLECTING = 0.5;
/** Pause until the senders of queued notes have delivered them to a mailbox that was full, ms, and number of pauses. */
const WAIT_MS = 3_700_000;
const MAX_PAUSES = 2;

interface Sent {
  readonly from: Agent;
  readonly to: Agent;
  readonly at: number;
  isAcknowledged: boolean;
  /** Times that it was delivered. */
  delivered: number;
}

export class NoteUsers implements Users {
  readonly name = 'notes';
  readonly weight = 4;
  readonly #world: Surroundings;
  readonly #sent = new Map<string, Sent>();
  #collected = 0;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  async act(agent: Agent): Promise<void> {
    const { random, agents } = this.#world;
    const to = random.pick(agents);
    if (random.chance(COLLECTING)) await this.#collect(agent);
    else if (to !== agent) for (let i = 0; i < this.#world.burst; i++) await this.#send(agent, to);
  }

  async #send(from: Agent, to: Agent): Promise<void> {
    const { schedule, note, attempt } = this.#world;
    const text = `note ${this.#sent.size}`;
    const sent: Sent = { from, to, at: schedule.now(), isAcknowledged: false, delivered: 0 };
    this.#sent.set(text, sent);
    const body_base64 = Buffer.from(text).toString('base64');
    const answer = await attempt(`${from.name} sends ${text} to ${to.name}`, () =>
      this.#post(from, { aid: from.aid, recipient: to.aid, msg_type: TEXT, body_base64 }),
    );
    if (answer === null) return;
    sent.isAcknowledged = answer.delivered || answer.queued || answer.replicas > 0;
    const { delivered, queued, replicas } = answer;
    note(`${text} acknowledged: delivered ${delivered}, replicas ${replicas}, queued ${queued}`);
  }

  /** Without a network, a note is queued. */
  async #post({ node, name }: Agent, note: Parameters<typeof node.call<'mailboxSend'>>[1]) {
    try {
      return await node.call('mailboxSend', note);
    } catch (error) {
      if (error instanceof SvcError && error.code === 'network_unavailable')
        this.#world.violate('notes are queued without a network', name);
      throw error;
    }
  }

  async #collect(agent: Agent): Promise<boolean> {
    const answer = await this.#world.attempt(`${agent.name} collects notes`, () =>
      agent.node.call('mailboxPoll', { aid: agent.aid }),
    );
    if (answer === null) return false;
    for (const { body_base64, sender, msg_type } of answer.messages) {
      // Groups and file offers use notes too.
      if (msg_type !== TEXT) continue;
      const text = Buffer.from(body_base64, 'base64').toString();
      this.#collected++;
      this.#receive(agent, text, sender);
    }
    return answer.has_more;
  }

  #receive(agent: Agent, text: string, sender: string): void {
    const { note, violate } = this.#world;
    const sent = this.#sent.get(text);
    if (sent === undefined || sent.to !== agent || sent.from.aid !== sender)
      return violate('notes are not invented', `${agent.name} received ${JSON.stringify(text)} from ${sender}`);
    note(`${agent.name} received ${text}`);
    sent.delivered++;
    if (sent.delivered > 1) violate('notes are delivered once', `${agent.name} received ${text} again`);
  }

  async audit(): Promise<void> {
    const { schedule, agents, violate } = this.#world;
    for (let pauses = 0; ; pauses++) {
      for (const agent of agents) while (await this.#collect(agent));
      if (pauses === MAX_PAUSES || this.#missing().length === 0) break;
      await new Promise<void>((resolve) => void schedule.after(WAIT_MS, resolve));
    }
    for (const [text, { from, to, at }] of this.#missing())
      violate('acknowledged notes are delivered', `${text} from ${from.name} to ${to.name} at ${at}`);
  }

  #missing(): [text: string, sent: Sent][] {
    return [...this.#sent].filter(([, { isAcknowledged, delivered }]) => isAcknowledged && delivered === 0);
  }

  figures(): Readonly<Record<string, number>> {
    const acknowledged = this.#sent
      .values()
      .filter((one) => one.isAcknowledged)
      .toArray().length;
    return { sent: this.#sent.size, acknowledged, collected: this.#collected };
  }
}
