/** Groups: copies of all members converge, new entries arrive soon, and removed members lose access. */
import type { Agent } from '../agent.ts';
import type { Surroundings, Users } from '../user.ts';

const MAX_GROUPS = 8;
const PAGE = 50;
/** Larger than every position. */
const END = 1_000_000;
/** Parts of the actions. */
const CREATIONS = 0.1;
const LINKS = 0.15;
const INVITATIONS = 0.1;
const ANSWERS = 0.1;
const REMOVALS = 0.05;
const ROLES = 0.03;
/** In a calm world, entries and removals arrive within this time, milliseconds. */
const ARRIVAL_MS = 90_000;
/** Nothing may be signed by a clock that is ahead by more, milliseconds. Other nodes accept 10 minutes. */
const MAX_AHEAD_MS = 11 * 60_000;

interface Group {
  readonly id: string;
  readonly creator: Agent;
  /** Agents that joined and were not removed, as far as their users know. */
  readonly members: Set<Agent>;
  readonly removed: Set<Agent>;
  /** Acknowledged messages: authors by entry ID. */
  readonly sent: Map<string, Agent>;
}

interface Entry {
  readonly entry_id: string;
  readonly author: string;
  readonly kind: string;
}

export class GroupUsers implements Users {
  readonly name = 'groups';
  readonly weight = 6;
  readonly #world: Surroundings;
  readonly #groups: Group[] = [];
  #appended = 0;
  #joined = 0;
  #removals = 0;
  #watched = 0;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  async act(agent: Agent): Promise<void> {
    const { random, agents } = this.#world;
    let kind = random.next();
    const isIn = (part: number): boolean => {
      kind -= part;
      return kind < 0;
    };
    const own = this.#groups.filter(({ members }) => members.has(agent));
    if (isIn(CREATIONS) || this.#groups.length === 0)
      return this.#groups.length < MAX_GROUPS
        ? await this.#create(agent)
        : await this.#join(agent, random.pick(this.#groups));
    if (isIn(ANSWERS) || own.length === 0) return await this.#joinInvited(agent);
    const group = random.pick(own);
    if (isIn(LINKS)) return await this.#join(random.pick(agents), group);
    if (isIn(INVITATIONS)) return await this.#invite(agent, random.pick(agents), group);
    if (group.creator === agent && isIn(REMOVALS)) return await this.#remove(group);
    if (group.creator === agent && isIn(ROLES)) return await this.#promote(group);
    await this.#append(agent, group);
  }

  async #create(agent: Agent): Promise<void> {
    const { attempt } = this.#world;
    const created = await attempt(`${agent.name} creates a group`, () =>
      agent.node.call('groupCreate', { aid: agent.aid, title: `group ${this.#groups.length}` }),
    );
    if (created === null) return;
    const { group_id: id } = created;
    this.#groups.push({ id, creator: agent, members: new Set([agent]), removed: new Set(), sent: new Map() });
  }

  async #join(agent: Agent, group: Group): Promise<void> {
    const { attempt } = this.#world;
    const { creator, id } = group;
    if (agent === creator || group.members.has(agent) || !creator.node.isRunning || !agent.node.isRunning) return;
    const shown = await attempt(`${creator.name} shows a link`, () =>
      creator.node.call('groupGetLink', { aid: creator.aid, group_id: id }),
    );
    if (shown === null) return;
    const answer = await attempt(`${agent.name} joins the group of ${creator.name}`, () =>
      agent.node.call('groupJoin', { aid: agent.aid, link: shown.link }),
    );
    if (answer === null) return;
    this.#joined++;
    if (group.removed.has(agent)) return;
    group.members.add(agent);
  }

  async #invite(agent: Agent, target: Agent, { id, members }: Group): Promise<void> {
    if (members.has(target)) return;
    await this.#world.attempt(`${agent.name} invites ${target.name} to a group`, () =>
      agent.node.call('groupInvite', { aid: agent.aid, group_id: id, target_aid: target.aid }),
    );
  }

  async #joinInvited(agent: Agent): Promise<void> {
    const { attempt } = this.#world;
    const { aid, node } = agent;
    const list = await attempt(`${agent.name} reads its invitations`, () => node.call('groupInvitations', { aid }));
    for (const { group_id, creator, inviter } of list?.invitations ?? []) {
      const joined = await attempt(`${agent.name} accepts an invitation to a group`, () =>
        node.call('groupJoin', { aid, group_id, creator_aid: creator, inviter_aid: inviter }),
      );
      const group = this.#groups.find(({ id }) => id === group_id);
      if (joined === null || group === undefined) continue;
      this.#joined++;
      if (!group.removed.has(agent)) group.members.add(agent);
    }
  }

  async #remove(group: Group): Promise<void> {
    const { attempt, random } = this.#world;
    const { creator, id } = group;
    const others = [...group.members].filter((agent) => agent !== creator);
    if (others.length === 0) return;
    const member = random.pick(others);
    group.members.delete(member);
    group.removed.add(member);
    const isCalm = this.#isCalm(creator, member);
    const wasMember = (await this.#state(member, group)) === 'member';
    const to = [member.aid];
    const answer = await attempt(`${creator.name} removes ${member.name} from a group`, () =>
      creator.node.call('groupAppend', { aid: creator.aid, group_id: id, kind: 'remove', to }),
    );
    if (answer === null) return;
    this.#removals++;
    if (isCalm && wasMember) this.#expectRemoval(group, member);
  }

  /** In a calm world, a member learns within some seconds that it was removed. */
  #expectRemoval(group: Group, member: Agent): void {
    const { schedule, violate } = this.#world;
    const { node } = member;
    this.#watched++;
    schedule.after(ARRIVAL_MS, () => {
      // A move leaves the events behind.
      if (!this.#isCalm(group.creator, member) || member.node !== node) return;
      void this.#events(member).then((events) => {
        if (!events.some(({ type, text }) => type === 'group.removed' && text.includes(group.id)))
          violate('removed members get an event', `${member.name} does not know its removal by ${group.creator.name}`);
      });
    });
  }

  async #events(agent: Agent): Promise<{ readonly type: string; readonly text: string }[]> {
    const all: { type: string; text: string }[] = [];
    for (let after = 0; ; ) {
      const page = await agent.node.call('eventsPoll', { aid: agent.aid, after_seq: after });
      for (const event of page.events) all.push({ type: event.type, text: JSON.stringify(event) });
      if (page.events.length === 0 || page.last_seq <= after) return all;
      after = page.last_seq;
    }
  }

  async #promote(group: Group): Promise<void> {
    const { random, attempt } = this.#world;
    const { creator, id } = group;
    const { members } = await creator.node.call('groupMembers', { aid: creator.aid, group_id: id });
    const others = members.filter(({ aid }) => aid !== creator.aid);
    if (others.length === 0) return;
    const to = [random.pick(others).aid];
    const body = Buffer.from('admin').toString('base64');
    await attempt(`${creator.name} makes an admin`, () =>
      creator.node.call('groupAppend', { aid: creator.aid, group_id: id, kind: 'role', to, body }),
    );
  }

  async #append(agent: Agent, group: Group): Promise<void> {
    const { attempt, violate } = this.#world;
    const text = `entry ${this.#appended++}`;
    const body = Buffer.from(text).toString('base64');
    const aheadMs = agent.node.process.clock.now() - this.#world.schedule.now();
    const since = this.#world.schedule.now() - ARRIVAL_MS;
    const isElseCalm = this.#world.faultsSince(since).every(({ kind }) => kind === 'wrong clock');
    const knowsTime = isElseCalm && agent.node.clockSetAt < since && agent.node.startedAt < since;
    const written = await attempt(`${agent.name} writes ${text} to the group of ${group.creator.name}`, () =>
      agent.node.call('groupAppend', { aid: agent.aid, group_id: group.id, body }),
    );
    if (written === null) return;
    if (aheadMs > MAX_AHEAD_MS && knowsTime && this.#world.nodes.length > 4)
      violate('nothing is signed by a clock that is ahead', `${agent.name} wrote ${text}, ${aheadMs} ms ahead`);
    if (!group.members.has(agent)) return;
    group.sent.set(written.entry_id, agent);
    if (this.#isCalm(agent)) this.#expectEntry(group, agent, text, written.entry_id);
  }

  /** In a calm world, entries arrive soon at all members that had joined before. */
  #expectEntry(group: Group, author: Agent, text: string, entry: string): void {
    const { schedule, violate } = this.#world;
    const before = [...group.members];
    this.#watched++;
    schedule.after(ARRIVAL_MS, () => {
      for (const member of before) {
        if (!group.members.has(member) || !group.members.has(author) || !this.#isCalm(author, member)) continue;
        void this.#newest(member, group).then((entries) => {
          if (entries !== null && !entries.includes(entry))
            violate('group entries arrive', `${member.name} does not have ${text} of ${author.name}`);
        });
      }
    });
  }

  /** Nothing was wrong for a while, and both nodes have run since then. */
  #isCalm(...agents: readonly Agent[]): boolean {
    return this.#world.isCalm(2 * ARRIVAL_MS, ...agents);
  }

  /** The newest entries of a member; null if it is not a member by its own copy. */
  async #newest(agent: Agent, group: Group): Promise<readonly string[] | null> {
    if ((await this.#state(agent, group)) !== 'member') return null;
    const { entries } = await agent.node.call('groupEntries', {
      ...{ aid: agent.aid, group_id: group.id, before_seq: END, limit: PAGE },
    });
    return entries.map(({ entry_id: id }) => id);
  }

  /** `member`, or why an agent is none. */
  async #state(agent: Agent, group: Group): Promise<string> {
    if (!agent.node.isRunning) return 'off';
    const { attempt } = this.#world;
    const list = await attempt(`${agent.name} lists its groups`, () =>
      agent.node.call('groupList', { aid: agent.aid }),
    );
    const role = list?.groups.find(({ group_id: id }) => id === group.id)?.role ?? 'none';
    return role === 'creator' || role === 'admin' || role === 'member' ? 'member' : role;
  }

  async #all(agent: Agent, group: Group): Promise<readonly Entry[]> {
    const all: Entry[] = [];
    for (let after = 0; ; ) {
      const page = await agent.node.call('groupEntries', {
        ...{ aid: agent.aid, group_id: group.id, after_seq: after, limit: PAGE },
      });
      all.push(...page.entries);
      if (!page.has_more || page.scanned_to_seq <= after) return all;
      after = page.scanned_to_seq;
    }
  }

  async audit(): Promise<void> {
    for (const group of this.#groups) await this.#world.attempt('compares copies', () => this.#compare(group));
  }

  async #compare(group: Group): Promise<void> {
    const { violate } = this.#world;
    const { creator, sent, members } = group;
    if ((await this.#state(creator, group)) !== 'member')
      return violate('creators stay members', `${creator.name} is no member of its group`);
    const reference = await this.#all(creator, group);
    const ids = new Set(reference.map(({ entry_id: id }) => id));
    if (ids.size < reference.length) violate('group entries are stored once', `at ${creator.name}`);
    this.#checkRemovals(reference);
    const { members: known } = await creator.node.call('groupMembers', { aid: creator.aid, group_id: group.id });
    for (const agent of this.#world.agents) {
      if (!known.some(({ aid }) => aid === agent.aid)) continue;
      const state = await this.#state(agent, group);
      if (state !== 'member') {
        violate('members agree', `${agent.name} is a member for ${creator.name}, and ${state} for itself`);
        continue;
      }
      const own = new Set((await this.#all(agent, group)).map(({ entry_id: id }) => id));
      const [missing, extra] = [ids.difference(own).size, own.difference(ids).size];
      if (missing + extra > 0)
        violate('copies converge', `${agent.name} lacks ${missing} entries of ${creator.name}, and has ${extra} more`);
    }
    for (const [id, author] of sent)
      if (members.has(author) && !ids.has(id))
        violate('acknowledged entries are kept', `an entry of ${author.name} is missing at ${creator.name}`);
  }

  /** The removed agent may know the link, so the next entry of the remover is a new one. */
  #checkRemovals(entries: readonly Entry[]): void {
    entries.forEach(({ kind, author }, index) => {
      if (kind !== 'remove') return;
      const next = entries.slice(index + 1).find((entry) => entry.author === author);
      if (next?.kind !== 'rekey')
        this.#world.violate('a removal changes the link', `${next?.kind ?? 'nothing'} follows a removal`);
    });
  }

  figures(): Readonly<Record<string, number>> {
    const figures = { appended: this.#appended, joined: this.#joined, removals: this.#removals };
    return { groups: this.#groups.length, ...figures, watched: this.#watched };
  }
}
