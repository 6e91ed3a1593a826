/** Published records: living agents and their services are found, and sequence numbers never go back. */
import type { Agent } from '../agent.ts';
import type { Surroundings, Users } from '../user.ts';

/** Parts of the actions. */
const PUBLICATIONS = 0.2;
const OFFERS = 0.1;
const SERVICE = 'simulation';
const MAX_FOUND = 100;

export class RecordUsers implements Users {
  readonly name = 'records';
  readonly weight = 2;
  readonly #world: Surroundings;
  /** The newest sequence number of each agent. */
  readonly #ownSeq = new Map<Agent, number>();
  readonly #offering = new Set<Agent>();
  #resolved = 0;
  #found = 0;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  async act(agent: Agent): Promise<void> {
    const { random, agents } = this.#world;
    if (random.chance(PUBLICATIONS)) return await this.#publish(agent);
    if (random.chance(OFFERS)) return await this.#offer(agent);
    const to = random.pick(agents);
    if (to !== agent) await this.#resolve(agent, to);
  }

  async #publish(agent: Agent): Promise<void> {
    const answer = await this.#world.attempt(`${agent.name} publishes`, () =>
      agent.node.call('agentPublish', { aid: agent.aid }),
    );
    if (answer === null) return;
    const before = this.#ownSeq.get(agent) ?? 0;
    if (answer.seq < before)
      this.#world.violate('sequence numbers never go back', `${agent.name} published ${answer.seq} after ${before}`);
    this.#ownSeq.set(agent, answer.seq);
  }

  async #offer(agent: Agent): Promise<void> {
    const { aid, node } = agent;
    const done = await this.#world.attempt(`${agent.name} offers a service`, () =>
      node.call('serviceRegister', { aid, services: [SERVICE], name: agent.name }),
    );
    if (done !== null) this.#offering.add(agent);
  }

  async #discover(from: Agent): Promise<void> {
    const found = await this.#world.attempt(`${from.name} searches services`, () =>
      from.node.call('discover', { services: [SERVICE], limit: MAX_FOUND }),
    );
    for (const { aid, name } of this.#offering)
      if (found?.entries.some((entry) => entry.aid === aid) !== true)
        this.#world.violate('offered services are found', `${from.name} does not find the service of ${name}`);
  }

  async #resolve(from: Agent, to: Agent): Promise<boolean> {
    this.#resolved++;
    const answer = await this.#world.attempt(`${from.name} resolves ${to.name}`, () =>
      from.node.call('resolve', { aid: to.aid }),
    );
    if (answer !== null) this.#found++;
    return answer !== null;
  }

  async audit(): Promise<void> {
    for (const agent of this.#world.agents) await this.#publish(agent);
    await this.#discover(this.#world.random.pick(this.#world.agents));
    for (const from of this.#world.agents) {
      const to = this.#world.random.pick(this.#world.agents);
      if (to !== from && !(await this.#resolve(from, to)))
        this.#world.violate('living agents are found', `${from.name} does not find ${to.name}`);
    }
  }

  figures(): Readonly<Record<string, number>> {
    return { resolved: this.#resolved, found: this.#found };
  }
}
