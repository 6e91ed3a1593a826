/** Groups: after the network has healed, all members have the same entries in the same order. */
import type { Agent } from '../agent.ts';
import type { Surroundings, Users } from '../user.ts';
import { difference } from './chats.ts';

const PAGE = 50;
/** Parts of the actions that create groups, invite, and join. The rest writes. */
const CREATIONS = 0.05;
const INVITATIONS = 0.15;
const JOINS = 0.35;
const MAX_ROOMS = 6;

interface Room {
  readonly id: string;
  readonly members: Set<Agent>;
  /** Acknowledged texts. */
  readonly written: Map<string, Agent>;
}

export class RoomUsers implements Users {
  readonly name = 'rooms';
  readonly weight = 4;
  readonly #world: Surroundings;
  readonly #rooms: Room[] = [];
  #count = 0;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  async act(agent: Agent): Promise<void> {
    const { random } = this.#world;
    const kind = random.next();
    const own = this.#rooms.filter(({ members }) => members.has(agent));
    if (kind < CREATIONS || this.#rooms.length === 0) await this.#create(agent);
    else if (kind < CREATIONS + INVITATIONS && own.length > 0) await this.#invite(agent, random.pick(own));
    else if (kind < CREATIONS + INVITATIONS + JOINS || own.length === 0) await this.#joinAll(agent);
    else await this.#write(agent, random.pick(own));
  }

  async #create(agent: Agent): Promise<void> {
    if (this.#rooms.length >= MAX_ROOMS) return;
    const title = `room ${this.#rooms.length}`;
    const made = await this.#world.attempt(`${agent.name} creates ${title}`, () =>
      agent.node.call('groupCreate', { aid: agent.aid, title }),
    );
    if (made !== null) this.#rooms.push({ id: made.group_id, members: new Set([agent]), written: new Map() });
  }

  async #invite(agent: Agent, { id, members }: Room): Promise<void> {
    const { random, agents, attempt } = this.#world;
    const target = random.pick(agents);
    if (members.has(target)) return;
    await attempt(`${agent.name} invites ${target.name} to ${id.slice(0, 8)}`, () =>
      agent.node.call('groupInvite', { aid: agent.aid, group_id: id, target_aid: target.aid }),
    );
  }

  async #joinAll(agent: Agent): Promise<void> {
    const { attempt } = this.#world;
    const { aid, node } = agent;
    const list = await attempt(`${agent.name} reads its invitations`, () => node.call('groupInvitations', { aid }));
    for (const { group_id, creator, inviter } of list?.invitations ?? []) {
      const room = this.#rooms.find(({ id }) => id === group_id);
      const what = `${agent.name} joins ${group_id.slice(0, 8)}`;
      const joined = await attempt(what, () =>
        node.call('groupJoin', { aid, group_id, creator_aid: creator, inviter_aid: inviter }),
      );
      if (joined !== null) room?.members.add(agent);
    }
  }

  async #write(agent: Agent, { id, written }: Room): Promise<void> {
    const text = `entry ${this.#count++}`;
    const body = Buffer.from(text).toString('base64');
    const answer = await this.#world.attempt(`${agent.name} writes ${text} to ${id.slice(0, 8)}`, () =>
      agent.node.call('groupAppend', { aid: agent.aid, group_id: id, body }),
    );
    if (answer !== null) written.set(text, agent);
  }

  /** The texts of a copy, in its order. */
  async #texts(agent: Agent, group_id: string): Promise<readonly string[]> {
    const texts: string[] = [];
    const { aid } = agent;
    for (let after_seq = 0; ; ) {
      const page = await agent.node.call('groupEntries', { aid, group_id, after_seq, limit: PAGE });
      for (const { body, kind } of page.entries)
        if (kind === 'msg') texts.push(Buffer.from(body ?? '', 'base64').toString());
      if (!page.has_more || page.scanned_to_seq <= after_seq) return texts;
      after_seq = page.scanned_to_seq;
    }
  }

  async audit(): Promise<void> {
    const { attempt, violate } = this.#world;
    for (const { id, members, written } of this.#rooms) {
      const [first, ...others] = [...members];
      if (first === undefined) continue;
      const room = id.slice(0, 8);
      const texts = await attempt('reads a group', () => this.#texts(first, id));
      if (texts === null) continue;
      if (new Set(texts).size !== texts.length) violate('group entries are stored once', `${room} at ${first.name}`);
      for (const [text, author] of written)
        if (!texts.includes(text))
          violate(
            'acknowledged group entries are kept',
            `${text} of ${author.name} is not in ${room} at ${first.name}`,
          );
      for (const other of others) {
        const theirs = await attempt('reads a group', () => this.#texts(other, id));
        if (theirs !== null && texts.toSorted().join() !== theirs.toSorted().join())
          violate('groups converge', `${room} at ${first.name} and ${other.name}: ${difference(texts, theirs)}`);
      }
    }
  }

  figures(): Readonly<Record<string, number>> {
    const members = this.#rooms.reduce((sum, room) => sum + room.members.size, 0);
    return { written: this.#count, rooms: this.#rooms.length, members };
  }
}
