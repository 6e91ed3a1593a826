/**
 * Agents that live shortly: registered, moved between nodes, given new keys, deleted and registered again. No old copy,
 * key or access list of an agent counts.
 */
import { createServer } from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DATABASE_FILE } from '../../src/foundation/data-dir/paths.ts';
import { decodeDelegation } from '../../src/foundation/identity/delegation.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { RECORD } from '../../src/foundation/records/types.ts';
import { delegateAnew, type TestIdentity } from '../../test/support/identities.ts';
import type { Agent } from '../agent.ts';
import type { SimulatedNode } from '../node.ts';
import type { Surroundings, Users } from '../user.ts';

const FIRST_PORT = 20_000;
/** Probability that a statement fails while an agent is deleted. */
const FAILING_WRITES = 0.2;
const SECRET = 'a secret of many words';
const OTHER_SECRET = 'another secret of many words';
/** Custom type of records. */
const CUSTOM_TYPE: number = RECORD.customLast;
/** Time after which nothing is stored of a chat request that ended, milliseconds. */
const FORGOTTEN_MS: number = 25 * 60_000;
/** Callers look for a connection that lost its path for a minute, milliseconds. */
const LATE_MS = 100_000;
/** After this time in a calm world, an operation on the network must succeed, milliseconds. */
const CALM_MS = 240_000;

export class LifeUsers implements Users {
  readonly name = 'lives';
  readonly weight = 2;
  readonly #world: Surroundings;
  #lastPort = FIRST_PORT;
  #lives = 0;
  #complete = 0;

  constructor(world: Surroundings) {
    this.#world = world;
  }

  async act(agent: Agent): Promise<void> {
    const { random, agents } = this.#world;
    const other = random.pick(agents).node;
    if (other === agent.node || !other.isRunning || !this.#isCalm(agent, other)) return;
    this.#lives++;
    const life = random.pick([
      () => this.#rebirth(agent),
      () => this.#secret(agent, other),
      () => this.#held(agent, other),
      () => this.#move(agent, other),
      () => this.#twins(agent, other),
      () => this.#lateTunnel(agent, other),
      () => this.#newToken(agent, other),
      () => this.#withdrawn(agent, other),
    ]);
    const isComplete = await this.#world.attempt(`${agent.name} begins a short life`, life);
    if (isComplete === true) this.#complete++;
  }

  #isCalm(agent: Agent, other: SimulatedNode): boolean {
    return (
      this.#world.isCalm(CALM_MS, agent) && other.isRunning && this.#world.schedule.now() - other.startedAt > CALM_MS
    );
  }

  #newIdentity(): TestIdentity {
    return delegateAnew(KeyPair.generate(), this.#now());
  }

  #now(): number {
    return Math.floor(this.#world.schedule.now() / 1000);
  }

  async #register(
    node: SimulatedNode,
    { credentials }: TestIdentity,
    more: { publish?: boolean; service_tcp?: string },
  ) {
    return await node.call('agentRegister', {
      operational_private_key_hex: credentials.operationalPrivateKeyHex,
      delegation_proof_hex: credentials.delegationProofHex,
      ...more,
    });
  }

  /** A service that answers with a text. Returns its address. */
  #serve(node: SimulatedNode, text: string): string {
    const port = ++this.#lastPort;
    node.process.runOther(() => {
      createServer((request, response) => {
        request.resume();
        response.end(text);
      }).listen(port);
    });
    return `127.0.0.1:${port}`;
  }

  /** An agent that is deleted and registered again has no rules of its earlier life. */
  async #rebirth({ node, aid: other }: Agent): Promise<true> {
    const identity = this.#newIdentity();
    const { aid } = identity;
    await this.#register(node, identity, { publish: false });
    await node.call('aclPatch', { aid, default: 'deny' });
    await node.call('aclDeny', { aid, body_aid: other });
    node.disk.faults.failingWrites = FAILING_WRITES;
    await this.#world.attempt('deletes an agent', () => node.call('agentDelete', { aid }));
    node.disk.faults.failingWrites = 0;
    const isDeleted = await node.call('agentGet', { aid }).then(
      () => false,
      () => true,
    );
    await this.#register(node, identity, { publish: false });
    const { default: policy, deny } = await node.call('aclGet', { aid });
    if (isDeleted && (policy !== 'public' || deny.length > 0))
      this.#world.violate('access lists end with their agents', `a new agent has the rules of an earlier one`);
    await node.call('agentDelete', { aid });
    return true;
  }

  /** A secret counts for an agent that was deleted and registered again with it. */
  async #secret(caller: Agent, node: SimulatedNode): Promise<true> {
    const identity = this.#newIdentity();
    const { aid } = identity;
    const service_tcp = this.#serve(node, 'secret');
    for (const life of [1, 2]) {
      await this.#register(node, identity, { service_tcp });
      await node.call('aclPatch', { aid, default: 'deny' });
      await node.call('aclAllow', { aid, secret: SECRET });
      await node.call('agentPublish', { aid });
      const { status } = await caller.node.call('fetch', {
        ...{ aid, path: '/', local_aid: caller.aid, access_token: SECRET },
      });
      if (status === 403 && this.#isCalm(caller, node))
        this.#world.violate('a right secret opens', `the secret of life ${life} is refused`);
      await node.call('agentDelete', { aid });
    }
    return true;
  }

  /** An agent that was registered not to be published is not found. */
  async #held({ node }: Agent, other: SimulatedNode): Promise<true> {
    const identity = this.#newIdentity();
    const { aid } = identity;
    await this.#register(node, identity, { publish: false });
    await this.#pause(30_000);
    const found = await this.#world.attempt('looks for a held agent', () => other.call('resolve', { aid }));
    if (found !== null) this.#world.violate('held agents are not published', `an agent of ${node.name} is found`);
    await node.call('agentDelete', { aid });
    return true;
  }

  /** After a move with a new key, calls reach the new node, and no record under the old key is shown. */
  async #move(agent: Agent, to: SimulatedNode): Promise<true> {
    const { violate } = this.#world;
    const { node: from } = agent;
    const old = this.#newIdentity();
    const { aid } = old;
    await this.#register(from, old, { service_tcp: this.#serve(from, 'old') });
    await from.call('agentPublishRecord', { aid, rec_type: CUSTOM_TYPE, payload_base64: 'AAAA', ttl: 3600 });
    await from.call('agentPublish', { aid });
    await this.#pause(5000);
    const renewed = delegateAnew(old.master, this.#now());
    await this.#register(to, renewed, { service_tcp: this.#serve(to, 'new') });
    await to.call('agentPublish', { aid });
    await this.#pause(60_000);
    // The user of the old node resolves the agent, so this node knows the newer delegation.
    await from.call('agentPublish', { aid }).catch(() => {});
    const { body } = await from.call('fetch', { aid, path: '/', local_aid: agent.aid });
    // During a partition, the old node may not learn of the move.
    if (Buffer.from(body, 'base64').toString() === 'old' && this.#isCalm(agent, to))
      violate('old copies are not called', `${from.name} calls its own copy of an agent that moved to ${to.name}`);
    const { records } = await to.call('resolveRecords', { aid });
    const newest = renewed.delegation.issuedAt;
    const issued = records.map((one) => decodeDelegation(Buffer.from(one.delegation_base64, 'base64')).issuedAt);
    if (issued.some((at) => at < newest))
      violate('records under replaced keys are not shown', `${to.name} shows ${records.length} records`);
    await from.call('agentDelete', { aid });
    await to.call('agentDelete', { aid });
    return true;
  }

  /** An agent on two nodes: each publication exceeds the earlier ones, whichever node makes it. */
  async #twins(agent: Agent, two: SimulatedNode): Promise<true> {
    const { node: one } = agent;
    const identity = this.#newIdentity();
    const { aid } = identity;
    await this.#register(one, identity, {});
    await one.call('agentPublish', { aid });
    const bundle = await one.call('agentBundle', { aid });
    await two.call('agentImport', bundle);
    let last = 0;
    for (const node of [one, two, one, one, two, two, one]) {
      const { seq } = await node.call('agentPublish', { aid });
      if (seq <= last && this.#isCalm(agent, two))
        this.#world.violate('sequence numbers never go back', `${node.name} publishes ${seq} after ${last}`);
      last = seq;
    }
    await one.call('agentDelete', { aid });
    await two.call('agentDelete', { aid });
    return true;
  }

  /** A service that returns every byte. Returns its address. */
  #echo(node: SimulatedNode): string {
    const port = ++this.#lastPort;
    node.process.runOther(() => {
      net
        .createServer((socket) => {
          socket.on('error', () => {});
          socket.pipe(socket);
        })
        .listen(port);
    });
    return `127.0.0.1:${port}`;
  }

  /** Connects to a tunnel. The state of the connection can be read at any time. */
  #connect({ process }: SimulatedNode, listen: string): { received: number; isClosed: boolean } {
    const state = { received: 0, isClosed: false };
    process.runOther(() => {
      const socket = net.connect({ port: Number(listen.split(':').at(-1)), host: '127.0.0.1' });
      socket.on('error', () => {});
      socket.on('data', (chunk: Buffer) => void (state.received += chunk.length));
      socket.on('close', () => void (state.isClosed = true));
      socket.write('hello');
    });
    return state;
  }

  /** A tunnel ends with the agent that it leads to. */
  async #lateTunnel(agent: Agent, node: SimulatedNode): Promise<true> {
    const identity = this.#newIdentity();
    const { aid } = identity;
    await this.#register(node, identity, { service_tcp: this.#echo(node) });
    await node.call('agentPublish', { aid });
    const { listen } = await agent.node.call('tunnelOpen', { aid, local_aid: agent.aid });
    const connection = this.#connect(agent.node, listen);
    await this.#pause(20_000);
    const wasOpen = connection.received > 0 && !connection.isClosed;
    await node.call('agentDelete', { aid });
    await this.#pause(LATE_MS);
    if (wasOpen && !connection.isClosed && this.#isCalm(agent, node))
      this.#world.violate('tunnels end with their agents', `a tunnel of ${agent.name} outlives its agent`);
    return true;
  }

  /** A tunnel that is opened again with another token uses this token. */
  async #newToken(agent: Agent, node: SimulatedNode): Promise<true> {
    const identity = this.#newIdentity();
    const { aid } = identity;
    await this.#register(node, identity, { service_tcp: this.#echo(node) });
    await node.call('aclPatch', { aid, default: 'deny' });
    const { id } = await node.call('aclAllow', { aid, secret: SECRET });
    await node.call('agentPublish', { aid });
    const wish = { aid, local_aid: agent.aid, local_port: ++this.#lastPort };
    await agent.node.call('tunnelOpen', { ...wish, access_token: SECRET });
    await node.call('aclAllow', { aid, secret: OTHER_SECRET });
    await node.call('aclAllowDelete', { aid, id });
    const { listen } = await agent.node.call('tunnelOpen', { ...wish, access_token: OTHER_SECRET });
    const connection = this.#connect(agent.node, listen);
    await this.#pause(20_000);
    if (connection.received === 0 && this.#isCalm(agent, node))
      this.#world.violate('tunnels use the newest token', `a tunnel of ${agent.name} does not open`);
    await node.call('agentDelete', { aid });
    return true;
  }

  /** Nothing remains of a chat request that was withdrawn. */
  async #withdrawn(agent: Agent, node: SimulatedNode): Promise<true> {
    const [one, two] = [this.#newIdentity(), this.#newIdentity()];
    await this.#register(agent.node, one, {});
    await this.#register(node, two, {});
    await agent.node.call('agentPublish', { aid: one.aid });
    await node.call('agentPublish', { aid: two.aid });
    await agent.node.call('chatRequest', { aid: one.aid, peer: two.aid });
    await this.#pause(10_000);
    await agent.node.call('chatRemove', { aid: one.aid, peer: two.aid });
    await this.#pause(FORGOTTEN_MS);
    for (const { disk } of [agent.node, node])
      if (this.#isCalm(agent, node) && rowsOf(disk.directory, one.aid) > 0)
        this.#world.violate('ended chat requests leave no row', `a request of ${agent.name} is still stored`);
    return true;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#world.schedule.after(ms, resolve));
  }

  async audit(): Promise<void> {}

  figures(): Readonly<Record<string, number>> {
    return { lives: this.#lives, complete: this.#complete };
  }
}

/** Rows of a node about chats of an agent. */
function rowsOf(directory: string, aid: string): number {
  const database = new DatabaseSync(join(directory, DATABASE_FILE), { readOnly: true });
  const row = database.prepare('SELECT count(*) AS n FROM chat_pairs WHERE aid = ?1 OR peer = ?1').get(aid);
  database.close();
  return Number(row?.['n']);
}
