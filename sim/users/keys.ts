/**
 * Keys: owners replace operational keys and move agents to other nodes. A thief with a replaced key acts on its own
 * node, until other nodes know the new key.
 */
import { toHex } from '../../src/foundation/bytes.ts';
import { encodeDelegation } from '../../src/foundation/identity/delegation.ts';
import type { TestIdentity } from '../../test/support/identities.ts';
import type { Agent } from '../agent.ts';
import type { SimulatedNode } from '../node.ts';
import type { Surroundings, Users } from '../user.ts';

/** Parts of the actions. */
const ROTATIONS = 0.3;
/** Proofs have times in seconds, so a key is used for at least this long. */
const MIN_KEY_LIFE_MS = 60_000;

interface Parts {
  readonly nodes: readonly SimulatedNode[];
  /** Starts the service of an agent that has moved. */
  readonly moved: (agent: Agent) => void;
}

export class KeyUsers implements Users {
  readonly name = 'keys';
  readonly weight = 0.5;
  readonly #world: Surroundings;
  readonly #parts: Parts;
  /** The last change of each agent's key or node, milliseconds. */
  readonly #changedAt = new Map<Agent, number>();
  readonly #replaced = new Map<Agent, TestIdentity>();
  #rotations = 0;
  #moves = 0;

  constructor(world: Surroundings, parts: Parts) {
    this.#world = world;
    this.#parts = parts;
  }

  async act(agent: Agent): Promise<void> {
    const { schedule, random } = this.#world;
    const now = schedule.now();
    if (now - (this.#changedAt.get(agent) ?? 0) < MIN_KEY_LIFE_MS) return;
    this.#changedAt.set(agent, now);
    if (random.chance(ROTATIONS)) await this.#rotate(agent);
    else await this.#move(agent);
  }

  async #rotate(agent: Agent): Promise<void> {
    const { schedule, attempt } = this.#world;
    const before = agent.identity;
    const next = agent.newCredentials(schedule.now());
    const done = await attempt(`${agent.name} replaces its key`, async () => {
      await agent.register(next);
      return true;
    });
    if (done === null) return;
    this.#rotations++;
    this.#replaced.set(agent, before);
  }

  /** Between two nodes without a pause, so that nothing arrives at the old node after the bundle was made. */
  async #move(agent: Agent): Promise<void> {
    const { random, attempt, note } = this.#world;
    const to = random.pick(this.#parts.nodes);
    const from = agent.node;
    if (to === from || !to.isRunning || to.machine.lie !== null || agent.acting > 1) return;
    const { aid } = agent;
    agent.isBusy = true;
    try {
      const bundle = await attempt(`${agent.name} leaves ${from.name}`, async () => {
        const document = await from.call('agentBundle', { aid });
        await from.call('agentDelete', { aid });
        return document;
      });
      if (bundle === null) return;
      agent.node = to;
      agent.pendingBundle = bundle;
      this.#parts.moved(agent);
      if (await this.arrive(agent)) this.#moves++;
      else note(`${agent.name} waits for ${to.name}`);
    } finally {
      agent.isBusy = false;
    }
  }

  /** Imports an agent that has left its node. */
  async arrive(agent: Agent): Promise<boolean> {
    const { pendingBundle, node } = agent;
    if (pendingBundle === null) return true;
    const done = await this.#world.attempt(`${agent.name} arrives at ${node.name}`, () =>
      node.call('agentImport', pendingBundle),
    );
    if (done !== null) agent.pendingBundle = null;
    return done !== null;
  }

  /** A replaced key is refused by the node of its agent. */
  async audit(): Promise<void> {
    const { attempt, violate, agents } = this.#world;
    for (const agent of agents) await this.arrive(agent);
    for (const [agent, { operational, delegation }] of this.#replaced) {
      const done = await attempt(`someone registers the replaced key of ${agent.name}`, () =>
        agent.node.call('agentRegister', {
          operational_private_key_hex: toHex(operational.seed),
          delegation_proof_hex: toHex(encodeDelegation(delegation)),
        }),
      );
      if (done !== null) violate('replaced keys are refused', agent.name);
    }
  }

  figures(): Readonly<Record<string, number>> {
    return { rotations: this.#rotations, moves: this.#moves };
  }
}
