/** Calls and access lists: no call reaches a service whose access list excludes the caller. */
import type { Agent } from '../agent.ts';
import type { Surroundings, Users } from '../user.ts';

/** Part of the actions that change an access list. */
const CHANGES = 0.15;
/** A call that was admitted just before a change may reach the service this much later, milliseconds. */
const IN_FLIGHT_MS = 5;

/** Time without faults after which every call must be answered, milliseconds. */
const CALM_MS = 150_000;

interface Access {
  readonly isPublic: boolean;
  readonly allowed: ReadonlySet<string>;
  readonly denied: ReadonlySet<string>;
}

/** The rules of one agent. While a change is not answered, the rules before and after it count. */
class KnownAccess {
  /** Null after a failed change, until the list is read. */
  rules: Access | null = { isPublic: true, allowed: new Set(), denied: new Set() };
  before: Access | null = null;
  changedAt = 0;
}

function admits({ isPublic, allowed, denied }: Access, caller: string): boolean {
  return !denied.has(caller) && (isPublic || allowed.has(caller));
}

export class CallUsers implements Users {
  readonly name = 'calls';
  readonly weight = 4;
  readonly #world: Surroundings;
  readonly #access = new Map<Agent, KnownAccess>();
  #made = 0;
  #answered = 0;
  #refused = 0;
  #changes = 0;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  /** Watches the service of an agent. */
  watch(agent: Agent): void {
    agent.onCall = (caller) => this.#onCall(agent, caller);
  }

  #accessOf(agent: Agent): KnownAccess {
    const known = this.#access.get(agent) ?? new KnownAccess();
    this.#access.set(agent, known);
    return known;
  }

  #onCall(agent: Agent, caller: string): void {
    const { schedule, agents, violate } = this.#world;
    const name = agents.find(({ aid }) => aid === caller)?.name ?? caller;
    const { rules, before, changedAt } = this.#accessOf(agent);
    if (rules === null || admits(rules, caller)) return;
    if (before !== null && schedule.now() <= changedAt + IN_FLIGHT_MS && admits(before, caller)) return;
    violate('access lists', `a call of ${name} reached the service of ${agent.name}, which excludes it`);
  }

  async act(agent: Agent): Promise<void> {
    const { random, agents } = this.#world;
    if (random.chance(CHANGES)) return await this.#change(agent);
    const to = random.pick(agents);
    if (to !== agent) await this.#call(agent, to);
  }

  async #call(from: Agent, to: Agent): Promise<boolean> {
    const { attempt, note, violate } = this.#world;
    const path = `/call/${this.#made++}`;
    const answer = await attempt(`${from.name} calls ${to.name} ${path}`, () =>
      from.node.call('fetch', { aid: to.aid, path, local_aid: from.aid }),
    );
    if (answer === null) {
      this.#expectAnswer(from, to, path);
      return false;
    }
    note(`${path} answered with ${answer.status}`);
    const body = Buffer.from(answer.body, 'base64').toString();
    const isRight = answer.status === 200 && body === `${to.aid} ${path}`;
    if (answer.status === 403) this.#refused++;
    if (isRight) this.#answered++;
    else if (answer.status === 200) violate('calls are answered by the called agent', `${path}: ${body}`);
    return isRight;
  }

  /** In a calm world, calls that the access list admits are answered. */
  #expectAnswer(from: Agent, to: Agent, path: string): void {
    const { rules, changedAt } = this.#accessOf(to);
    const { schedule, violate, isCalm } = this.#world;
    const isSettled = rules !== null && admits(rules, from.aid) && schedule.now() - changedAt > CALM_MS;
    if (isSettled && isCalm(CALM_MS, from, to))
      violate('calls are answered in a calm world', `${from.name} ${path} ${to.name}`);
  }

  async #change(agent: Agent): Promise<void> {
    const { random, agents, schedule, attempt } = this.#world;
    const known = this.#accessOf(agent);
    const before = known.rules;
    if (before === null) return await this.#read(agent, known);
    const other = random.pick(agents);
    if (other === agent) return;
    const { aid } = agent;
    const [text, after, work] = random.pick([
      ['is public', { ...before, isPublic: true }, () => agent.node.call('aclPatch', { aid, default: 'public' })],
      ['is private', { ...before, isPublic: false }, () => agent.node.call('aclPatch', { aid, default: 'deny' })],
      [
        `allows ${other.name}`,
        { ...before, allowed: new Set([...before.allowed, other.aid]) },
        () => agent.node.call('aclAllow', { aid, body_aid: other.aid }),
      ],
      [
        `denies ${other.name}`,
        { ...before, denied: new Set([...before.denied, other.aid]) },
        () => agent.node.call('aclDeny', { aid, body_aid: other.aid }),
      ],
      ['forgives all', { ...before, denied: new Set<string>() }, () => this.#forgive(agent)],
    ] as const);
    Object.assign(known, { before, rules: after, changedAt: Number.POSITIVE_INFINITY });
    const isDone = (await attempt<unknown>(`${agent.name} ${text}`, work)) !== null;
    Object.assign(known, { changedAt: schedule.now(), rules: isDone ? after : null });
    if (isDone) this.#changes++;
  }

  async #forgive(agent: Agent): Promise<true> {
    const { aid } = agent;
    const { deny } = await agent.node.call('aclGet', { aid });
    for (const { id } of deny) await agent.node.call('aclDenyDelete', { aid, id });
    return true;
  }

  async #read(agent: Agent, known: KnownAccess): Promise<void> {
    const { aid } = agent;
    const list = await this.#world.attempt(`${agent.name} reads its access list`, () =>
      agent.node.call('aclGet', { aid }),
    );
    if (list === null) return;
    known.rules = {
      isPublic: list.default === 'public',
      allowed: new Set(list.allow.flatMap((entry) => entry.aid ?? [])),
      denied: new Set(list.deny.map((entry) => entry.aid)),
    };
  }

  /** After the network has healed, each agent that admits another one can be called by it. */
  async audit(): Promise<void> {
    const { random, agents, violate } = this.#world;
    for (const from of agents) {
      const to = random.pick(agents);
      const { rules } = this.#accessOf(to);
      if (to === from || rules === null || !admits(rules, from.aid)) continue;
      if (!(await this.#call(from, to))) violate('agents can be called', `${from.name} cannot call ${to.name}`);
    }
  }

  figures(): Readonly<Record<string, number>> {
    return { made: this.#made, answered: this.#answered, refused: this.#refused, changes: this.#changes };
  }
}
