/** Published records: living agents are found, and sequence numbers never go back. */
import type { Agent } from '../agent.ts';
import type { Surroundings, Users } from '../user.ts';

export class RecordUsers implements Users {
  readonly name = 'records';
  readonly weight = 2;
  readonly #world: Surroundings;
  /** The newest sequence number of each agent. */
  readonly #ownSeq = new Map<Agent, number>();
  #resolved = 0;
  #found = 0;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  async act(agent: Agent): Promise<void> {
    const { random, agents } = this.#world;
    if (random.chance(0.2)) return await this.#publish(agent);
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
