/** Chat: logs are dense, and both friends have the same entries. */
import type { Agent } from '../agent.ts';
import type { Surroundings, Users } from '../user.ts';

const PAGE = 200;
/** Parts of the actions that ask for friendship, and that accept requests. */
const REQUESTS = 0.15;
const ACCEPTANCES = 0.25;

interface Entry {
  readonly seq: number;
  readonly id: string;
  readonly dir: 'in' | 'out';
  readonly text?: string | undefined;
  readonly status: string;
}

export class ChatUsers implements Users {
  readonly name = 'chats';
  readonly weight = 4;
  readonly #world: Surroundings;
  readonly #friends = new Map<Agent, Set<Agent>>();
  /** Acknowledged texts. */
  readonly #sent = new Map<string, { readonly from: Agent; readonly to: Agent }>();
  #count = 0;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  async act(agent: Agent): Promise<void> {
    const { random, agents } = this.#world;
    const friends = this.#friendsOf(agent);
    const kind = random.next();
    if (kind < REQUESTS || friends.size === 0) {
      const to = random.pick(agents);
      if (to !== agent && !friends.has(to)) await this.#request(agent, to);
    }
    if (kind < REQUESTS + ACCEPTANCES) await this.#acceptAll(agent);
    else if (friends.size > 0) {
      const to = random.pick([...friends]);
      for (let i = 0; i < this.#world.burst; i++) await this.#send(agent, to);
    }
  }

  #friendsOf(agent: Agent): Set<Agent> {
    const known = this.#friends.get(agent) ?? new Set();
    this.#friends.set(agent, known);
    return known;
  }

  async #request(from: Agent, to: Agent): Promise<void> {
    await this.#world.attempt(`${from.name} asks ${to.name} to chat`, () =>
      from.node.call('chatRequest', { aid: from.aid, peer: to.aid }),
    );
  }

  async #acceptAll(agent: Agent): Promise<void> {
    const { agents, attempt } = this.#world;
    const { aid } = agent;
    const contacts = await attempt(`${agent.name} reads its contacts`, () =>
      agent.node.call('chatContacts', { aid, limit: PAGE }),
    );
    if (contacts === null) return;
    for (const { peer } of contacts.in_pending)
      await attempt(`${agent.name} accepts a chat request`, () => agent.node.call('chatAccept', { aid, peer }));
    const friends = this.#friendsOf(agent);
    for (const { peer } of contacts.friends) {
      const other = agents.find((one) => one.aid === peer);
      if (other !== undefined) friends.add(other);
    }
  }

  async #send(from: Agent, to: Agent): Promise<void> {
    const text = `text ${this.#count++}`;
    const answer = await this.#world.attempt(`${from.name} writes ${text} to ${to.name}`, () =>
      from.node.call('chatSend', { aid: from.aid, peer: to.aid, text }),
    );
    if (answer !== null) this.#sent.set(text, { from, to });
  }

  async #log(agent: Agent, peer: Agent): Promise<readonly Entry[]> {
    const entries: Entry[] = [];
    for (;;) {
      const page = await agent.node.call('chatRead', {
        ...{ aid: agent.aid, peer: peer.aid, after_seq: entries.at(-1)?.seq ?? 0, limit: PAGE },
      });
      entries.push(...page.entries);
      if (!page.has_more || page.entries.length === 0) return entries;
    }
  }

  async audit(): Promise<void> {
    const { attempt, agents } = this.#world;
    for (const agent of agents) await this.#acceptAll(agent);
    for (const [agent, friends] of this.#friends) {
      for (const friend of friends) {
        const own = await attempt('reads a log', () => this.#log(agent, friend));
        const theirs = await attempt('reads a log', () => this.#log(friend, agent));
        if (own !== null && theirs !== null) this.#compare(agent, friend, own, theirs);
      }
    }
  }

  #compare(agent: Agent, friend: Agent, own: readonly Entry[], theirs: readonly Entry[]): void {
    const { violate } = this.#world;
    const pair = `${agent.name} and ${friend.name}`;
    own.forEach(({ seq }, index) => {
      if (seq !== index + 1) violate('chat logs are dense', `${pair}: entry ${seq} follows ${index}`);
    });
    if (new Set(own.map(({ id }) => id)).size !== own.length)
      violate('chat entries are stored once', `${pair}: an entry is stored twice`);
    const texts = (entries: readonly Entry[], dir: 'in' | 'out'): string[] =>
      entries.filter((entry) => entry.dir === dir).map((entry) => entry.text ?? '');
    const [out, received] = [texts(own, 'out'), texts(theirs, 'in')];
    if (out.join() !== received.join())
      violate('chat logs are equal', `${agent.name} wrote to ${friend.name}: ${difference(out, received)}`);
    for (const [text, { from, to }] of this.#sent)
      if (from === agent && to === friend && !out.includes(text))
        violate('acknowledged chat entries are kept', `${text} of ${agent.name} to ${friend.name}`);
  }

  figures(): Readonly<Record<string, number>> {
    const friends = this.#friends.values().reduce((sum, set) => sum + set.size, 0);
    return { written: this.#count, acknowledged: this.#sent.size, friends };
  }
}

/** Which texts only one of two lists has, or that their order differs. */
function difference(own: readonly string[], theirs: readonly string[]): string {
  const missing = own.filter((text) => !theirs.includes(text));
  const extra = theirs.filter((text) => !own.includes(text));
  if (missing.length + extra.length === 0) return 'another order';
  return `${own.length} and ${theirs.length} entries; missing ${missing.slice(0, 5).join()}; extra ${extra.slice(0, 5).join()}`;
}
