/**
 * Disasters of one disk: lost journals, old databases, changed texts. The node has no agents of other users.
 */
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DATABASE_FILE } from '../../src/foundation/data-dir/paths.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { delegateAnew } from '../../test/support/identities.ts';
import type { Agent } from '../agent.ts';
import type { SimulatedNode } from '../node.ts';
import type { Surroundings, Users } from '../user.ts';

/** A file of a database, its journal, and the index of the journal. */
const SUFFIXES = ['', '-wal', '-shm'];
const DAMAGE = 'changed by the disk';
const PAGE = 200;
/** The state of a database is marked every 10 s, milliseconds. */
const MARKED_MS = 25_000;
const ARRIVAL_MS = 60_000;

interface Parts {
  /** A running node without agents, which no fault of the world affects. */
  readonly newNode: () => Promise<SimulatedNode>;
}

export class DisasterUsers implements Users {
  readonly name = 'disasters';
  readonly weight = 1;
  readonly #world: Surroundings;
  readonly #parts: Parts;
  #node: SimulatedNode | null = null;
  #isBusy = false;
  #begun = 0;
  #complete = 0;

  constructor(world: Surroundings, parts: Parts) {
    this.#world = world;
    this.#parts = parts;
  }

  async act(agent: Agent): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    const { random, attempt } = this.#world;
    this.#node ??= await this.#parts.newNode();
    const node = this.#node;
    const disaster = random.pick([
      () => this.#lostJournal(node, agent),
      () => this.#oldDatabase(node, agent),
      () => this.#foreignKeys(node),
      () => this.#oldLog(node, agent),
      () => this.#damagedText(node, agent),
      () => this.#damagedQueue(node, agent),
    ]);
    this.#begun++;
    if ((await attempt('a disaster begins', disaster)) !== null) this.#complete++;
    node.machine.isOnline = true;
    if (!node.isRunning) await attempt('a node starts after a disaster', () => node.start().then(() => true));
    this.#isBusy = false;
  }

  /** A lost journal does not bring removed access back. */
  async #lostJournal(node: SimulatedNode, { aid: caller }: Agent): Promise<true> {
    const aid = await this.#newAgent(node);
    await node.call('aclPatch', { aid, default: 'deny' });
    const { id } = await node.call('aclAllow', { aid, body_aid: caller });
    // A stop copies the journal to the database.
    await node.stop();
    await node.start();
    await this.#pause(MARKED_MS);
    await node.call('aclAllowDelete', { aid, id });
    node.crash();
    node.disk.dropJournals();
    await node.start();
    const { allow } = await node.call('aclGet', { aid });
    if (allow.length > 0) this.#world.violate('removed access does not return', 'a lost journal restores it');
    await node.call('accessConfirm', {}).catch(() => {});
    return true;
  }

  /** Agents are closed after their database lost changes. */
  async #oldDatabase(node: SimulatedNode, caller: Agent): Promise<true> {
    const aid = await this.#newAgent(node);
    await node.call('aclPatch', { aid, default: 'deny' });
    const { id } = await node.call('aclAllow', { aid, body_aid: caller.aid });
    await this.#pause(MARKED_MS);
    await this.#save(node, 'old');
    await this.#pause(MARKED_MS);
    await node.call('aclAllowDelete', { aid, id });
    await this.#pause(MARKED_MS);
    await this.#load(node, 'old');
    await node.call('agentPublish', { aid });
    const call = { aid, path: '/', local_aid: caller.aid };
    const reached = await caller.node.call('fetch', call).catch((error: unknown) => error);
    const code = reached instanceof Error && 'code' in reached ? reached.code : '';
    // Without a service, admitted calls fail with this code.
    if (!(reached instanceof Error) || code === 'no_inbound')
      this.#world.violate('agents are closed after lost changes', `${caller.name} calls an agent that excluded it`);
    await node.call('accessConfirm', {}).catch(() => {});
    return true;
  }

  /** The key of an agent outlives a start with a database that does not know it. */
  async #foreignKeys(node: SimulatedNode): Promise<true> {
    await this.#save(node, 'before');
    const aid = await this.#newAgent(node);
    await this.#save(node, 'after');
    await this.#load(node, 'before');
    await this.#pause(MARKED_MS);
    await this.#load(node, 'after');
    await node.call('agentExport', { aid }).catch((error: unknown) => {
      this.#world.violate('keys outlive another database', String(error));
    });
    await node.call('accessConfirm', {}).catch(() => {});
    return true;
  }

  /** A cursor of a reader is not ahead of a restored log. */
  async #oldLog(node: SimulatedNode, agent: Agent): Promise<true> {
    const [reader, writer] = await this.#friends(node, agent.node);
    await this.#save(node, 'log');
    for (const text of ['one', 'two', 'three']) await agent.node.call('chatSend', { aid: writer, peer: reader, text });
    await this.#pause(ARRIVAL_MS);
    const { scanned_to: cursor } = await node.call('chatRead', { aid: reader, peer: writer, limit: PAGE });
    // Nothing comes from the friend until the reader has read again.
    node.machine.isOnline = false;
    await this.#load(node, 'log');
    const again = await node.call('chatRead', { aid: reader, peer: writer, after_seq: cursor, limit: PAGE });
    const { entries } = await node.call('chatRead', { aid: reader, peer: writer, limit: PAGE });
    const last = entries.at(-1)?.seq ?? 0;
    if (again.scanned_to > last)
      this.#world.violate('cursors are not ahead of logs', `${again.scanned_to} is ahead of ${last}`);
    node.machine.isOnline = true;
    await node.call('accessConfirm', {}).catch(() => {});
    return true;
  }

  /** Text that the disk changed is not shown. */
  async #damagedText(node: SimulatedNode, agent: Agent): Promise<true> {
    const [reader, writer] = await this.#friends(node, agent.node);
    await agent.node.call('chatSend', { aid: writer, peer: reader, text: 'right' });
    await this.#pause(ARRIVAL_MS);
    await this.#damage(node, reader);
    const { entries } = await node.call('chatRead', { aid: reader, peer: writer, limit: PAGE });
    if (entries.some(({ text }) => text === DAMAGE)) this.#world.violate('damaged texts are not shown', DAMAGE);
    return true;
  }

  /** Text that the disk changed before it was sent is not sent. */
  async #damagedQueue(node: SimulatedNode, agent: Agent): Promise<true> {
    const [writer, reader] = await this.#friends(node, agent.node);
    node.machine.isOnline = false;
    await node.call('chatSend', { aid: writer, peer: reader, text: 'right' });
    await this.#damage(node, writer);
    node.machine.isOnline = true;
    await this.#pause(3 * ARRIVAL_MS);
    const { entries } = await agent.node.call('chatRead', { aid: reader, peer: writer, limit: PAGE });
    if (entries.some(({ text }) => text === DAMAGE)) this.#world.violate('damaged texts are not sent', DAMAGE);
    return true;
  }

  async #newAgent(node: SimulatedNode): Promise<Aid> {
    const identity = delegateAnew(KeyPair.generate(), Math.floor(this.#world.schedule.now() / 1000));
    const { operationalPrivateKeyHex, delegationProofHex } = identity.credentials;
    await node.call('agentRegister', {
      operational_private_key_hex: operationalPrivateKeyHex,
      delegation_proof_hex: delegationProofHex,
    });
    await node.call('agentPublish', { aid: identity.aid });
    return identity.aid;
  }

  /** New agents of two nodes that are friends. */
  async #friends(one: SimulatedNode, two: SimulatedNode): Promise<readonly [Aid, Aid]> {
    const [here, there] = [await this.#newAgent(one), await this.#newAgent(two)];
    await one.call('chatRequest', { aid: here, peer: there });
    await this.#pause(ARRIVAL_MS);
    await two.call('chatAccept', { aid: there, peer: here });
    await this.#pause(ARRIVAL_MS);
    return [here, there];
  }

  /** Changes the last text of an agent's chats while its node does not run. */
  async #damage(node: SimulatedNode, aid: Aid): Promise<void> {
    node.crash();
    const database = new DatabaseSync(join(node.directory, DATABASE_FILE));
    database
      .prepare('UPDATE chat_entries SET text = ? WHERE pair = (SELECT id FROM chat_pairs WHERE aid = ?)')
      .run(DAMAGE, aid);
    database.close();
    await node.start();
  }

  /** Keeps a copy of the database. */
  async #save(node: SimulatedNode, name: string): Promise<void> {
    node.crash();
    this.#copy(join(node.directory, DATABASE_FILE), this.#copyOf(node, name));
    await node.start();
  }

  /** Replaces the database by a copy. */
  async #load(node: SimulatedNode, name: string): Promise<void> {
    node.crash();
    this.#copy(this.#copyOf(node, name), join(node.directory, DATABASE_FILE));
    await node.start();
  }

  #copyOf({ directory }: SimulatedNode, name: string): string {
    return `${directory}-${name}.db`;
  }

  #copy(from: string, to: string): void {
    for (const suffix of SUFFIXES) {
      rmSync(to + suffix, { force: true });
      if (existsSync(from + suffix)) cpSync(from + suffix, to + suffix);
    }
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#world.schedule.after(ms, resolve));
  }

  async audit(): Promise<void> {
    await this.#node?.stop();
  }

  figures(): Readonly<Record<string, number>> {
    return { begun: this.#begun, complete: this.#complete };
  }
}
