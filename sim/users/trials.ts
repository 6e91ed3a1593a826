/** Trials: short sequences of events on separate nodes, which no fault of the world affects. */
import { createServer } from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { DATABASE_FILE } from '../../src/foundation/data-dir/paths.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import type { Aid } from '../../src/foundation/identity/aid.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { delegateAnew, type TestIdentity } from '../../test/support/identities.ts';
import type { Agent } from '../agent.ts';
import { TRIAL_NAMES, type TrialName } from '../names.ts';
import type { SimulatedNode } from '../node.ts';
import type { Surroundings, Users } from '../user.ts';

const SECOND_MS = 1000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS: number = 24 * HOUR_MS;
const SERVICE_PORT = 9000;
const SECRET = 'a secret of many words';
const PAGE = 50;
/** A clock that is ahead by this is accepted, milliseconds. */
const ALMOST_MS = 50_000;
/** A node joins within this time, milliseconds. */
const JOIN_MS = 30_000;
/** A note, a message or an entry arrives within this time, milliseconds. */
const ARRIVAL_MS = 90_000;
/** A node that lacks a helper uses one that returned after a minute within this time, milliseconds. */
const LATE_HELPER_MS = 80_000;
/** A call of a node that has just returned, or that has moved, may take this long, milliseconds. */
const RETURNED_MS = 800;
const MOVED_MS = 4000;
/** A connection in use leaves a dead path within this time, milliseconds. */
const DEAD_PATH_MS = 8000;
/** Timers that a node without work may begin in a minute. */
const MAX_TIMERS = 3000;
/** Repetitions, because a power cut loses a random part. */
const POWER_CUTS = 4;
const ZERO_SECRET: Uint8Array = new Uint8Array(32);

interface Parts {
  /** Trials that take place. */
  readonly only: readonly TrialName[];
  /** A running node without agents. It joins through another node, through the nodes of the world, or through none. */
  readonly newNode: (via?: SimulatedNode | null, isBehindNat?: boolean) => Promise<SimulatedNode>;
  /** Gives the machine of a node another public address. */
  readonly move: (node: SimulatedNode) => void;
  /** Loses all datagrams between two groups of nodes. Returns how to end it. */
  readonly cut: (left: readonly SimulatedNode[], right: readonly SimulatedNode[]) => () => void;
  /** The NAT of a node forgets all mappings. */
  readonly restartNat: (node: SimulatedNode) => void;
}

export class TrialUsers implements Users {
  readonly name = 'trials';
  readonly weight = 1;
  readonly #world: Surroundings;
  readonly #parts: Parts;
  readonly #trials: readonly ((agent: Agent) => Promise<void>)[];
  #begun = 0;
  #complete = 0;

  constructor(world: Surroundings, parts: Parts) {
    this.#world = world;
    this.#parts = parts;
    const trials: Readonly<Record<TrialName, (agent: Agent) => Promise<void>>> = {
      'offline note': (agent) => this.#offlineNote(agent),
      'failed flush': () => this.#failedFlush(),
      'unflushed text': () => this.#unflushedText(),
      'wrong time': () => this.#wrongTime(),
      'first node': () => this.#firstOfANetwork(),
      returned: () => this.#returned(),
      'moved 1 s ago': () => this.#moved(SECOND_MS),
      'moved 3 s ago': () => this.#moved(3 * SECOND_MS),
      'moved 10 s ago': () => this.#moved(10 * SECOND_MS),
      'moved awake 3 s ago': () => this.#movedAwake(3 * SECOND_MS),
      'moved awake 15 s ago': () => this.#movedAwake(15 * SECOND_MS),
      secret: () => this.#secret(),
      restless: () => this.#restless(),
      denied: () => this.#denied(),
      'kept note': () => this.#keptNote(),
      'entries ahead': () => this.#entriesAhead(),
      'false invitation': () => this.#falseInvitation(),
      'clock behind': (agent) => this.#clockSetRight(agent, -2 * DAY_MS),
      'clock ahead': (agent) => this.#clockSetRight(agent, 2 * DAY_MS),
      'full disk': () => this.#failingRenewals('with a full disk', (node) => node),
      'full disks elsewhere': () => this.#failingRenewals('with full disks elsewhere', (_, other) => other),
      'denied late': () => this.#deniedLate(),
      'dead path': () => this.#deadPath(),
      halves: () => this.#halves(),
      'first node moved': () => this.#firstMoved(),
      'short visit': () => this.#shortVisit(),
      'late helper': () => this.#lateHelper(),
    };
    this.#trials = TRIAL_NAMES.filter((name) => parts.only.includes(name)).map((name) => trials[name]);
  }

  /** Each trial once. */
  async act(agent: Agent): Promise<void> {
    const trial = this.#trials[this.#begun];
    if (trial === undefined) return;
    this.#begun++;
    const result = await this.#world.attempt(`trial ${this.#begun} begins`, () => trial(agent).then(() => true));
    if (result === true) this.#complete++;
  }

  // Disks.

  /** A commit that waited during a failed flush survives a power cut if it was acknowledged. */
  async #failedFlush(): Promise<void> {
    const [one, two] = [await this.#node(), await this.#node()];
    const [writer, reader] = await this.#friends(one, two);
    two.machine.isOnline = false;
    const send = (text: string) => this.#isDone(one.call('chatSend', { aid: writer, peer: reader, text }));
    for (let round = 0; round < POWER_CUTS; round++) {
      one.disk.faults.failingFlushes = 1;
      const lost = send('lost').then(() => void (one.disk.faults.failingFlushes = 0));
      const isSent = await send(`kept ${round}`);
      await lost;
      one.cutPower();
      await one.start();
      const { entries } = await one.call('chatRead', { aid: writer, peer: reader, limit: PAGE });
      if (isSent && !entries.some(({ text }) => text === `kept ${round}`))
        this.#world.violate('acknowledged changes survive a power cut', 'a message waited during a failed flush');
    }
    await this.#end(one, two);
  }

  /** A message whose flush failed is not sent before it is on the disk, so both logs are equal after a power cut. */
  async #unflushedText(): Promise<void> {
    const [one, two] = [await this.#node(), await this.#node()];
    const [writer, reader] = await this.#friends(one, two);
    const send = (text: string) => this.#isDone(one.call('chatSend', { aid: writer, peer: reader, text }));
    for (let round = 0; round < POWER_CUTS; round++) {
      one.disk.faults.failingFlushes = 1;
      await send(`lost ${round}`);
      // The next link of both sends what is queued.
      two.crash();
      await two.start();
      await this.#pause(ARRIVAL_MS);
      one.cutPower();
      one.disk.faults.failingFlushes = 0;
      await one.start();
      await send(`kept ${round}`);
      await this.#pause(ARRIVAL_MS);
      const page = { after_seq: 0, limit: PAGE };
      const { entries: own } = await one.call('chatRead', { aid: writer, peer: reader, ...page });
      const { entries: theirs } = await two.call('chatRead', { aid: reader, peer: writer, ...page });
      const extra = theirs.filter(({ text }) => !own.some((entry) => entry.text === text));
      if (extra.length > 0)
        this.#world.violate('chat logs are equal', `a message was sent that a power cut removed: ${extra[0]?.text}`);
    }
    await this.#end(one, two);
  }

  // Publications.

  /** A publication that other nodes refuse for its time fails with this cause, also if both clocks are almost right. */
  async #wrongTime(): Promise<void> {
    const node = await this.#node();
    await this.#pause(MINUTE_MS);
    node.process.jump(ALMOST_MS);
    await this.#pause(JOIN_MS);
    const code = await this.#agent(node, ALMOST_MS * 2).then(
      () => 'success',
      (error: unknown) => (error instanceof SvcError ? error.code : 'unexpected'),
    );
    this.#world.note(`a publication with a wrong clock: ${code}`);
    if (code !== 'clock_wrong')
      this.#world.violate('a wrong clock is named', `a publication with a wrong clock ended with ${code}`);
    await this.#end(node);
  }

  /** Agents are found soon after a wrong clock was set right. */
  async #clockSetRight({ node: other }: Agent, aheadMs: number): Promise<void> {
    const node = await this.#node();
    const agents = [await this.#agent(node), await this.#agent(node)];
    await this.#pause(20 * MINUTE_MS);
    node.process.jump(aheadMs);
    await this.#pause(5 * MINUTE_MS);
    for (const aid of agents) await node.call('agentPublish', { aid }).catch(() => {});
    node.process.jump(-aheadMs);
    await this.#pause(90 * MINUTE_MS);
    for (const aid of agents)
      if (!(await this.#isDone(other.call('resolve', { aid }))))
        this.#world.violate('agents are found after a wrong clock was set right', `${aheadMs} ms`);
    await this.#end(node);
  }

  /** A node whose renewals fail waits between attempts. */
  async #failingRenewals(
    how: string,
    full: (node: SimulatedNode, other: SimulatedNode) => SimulatedNode,
  ): Promise<void> {
    const other = await this.#parts.newNode(null);
    const node = await this.#parts.newNode(other);
    await this.#pause(JOIN_MS);
    await this.#agent(node);
    await this.#pause(20 * MINUTE_MS);
    const { faults } = full(node, other).disk;
    faults.isFull = true;
    let most = 0;
    for (let minute = 0; minute < 60 && most <= MAX_TIMERS; minute++) {
      const before = node.process.begunTimers;
      await this.#pause(MINUTE_MS);
      most = Math.max(most, node.process.begunTimers - before);
    }
    faults.isFull = false;
    this.#world.note(`${most} timers in a minute ${how}`);
    if (most > MAX_TIMERS) this.#world.violate('failures do not make work', `${most} timers in a minute ${how}`);
    await this.#end(node, other);
  }

  /** Records of the first node of a network are sent to the next one. */
  async #firstOfANetwork(): Promise<void> {
    const first = await this.#parts.newNode(null);
    const client = await this.#parts.newNode(first, true);
    await this.#pause(JOIN_MS);
    const aid = await this.#agent(first);
    await this.#pause(MINUTE_MS);
    const next = await this.#parts.newNode(first);
    await this.#pause(3 * MINUTE_MS);
    first.crash();
    if (!(await this.#isDone(next.call('resolve', { aid }))))
      this.#world.violate('records reach the second node of a network', 'an agent of the first one is not found');
    await this.#end(client, next);
  }

  /** The only other node of a network takes records at the address that it moved to. */
  async #firstMoved(): Promise<void> {
    const first = await this.#parts.newNode(null);
    const second = await this.#parts.newNode(first);
    await this.#pause(JOIN_MS);
    const aid = await this.#agent(second);
    await this.#pause(MINUTE_MS);
    this.#parts.move(first);
    await this.#pause(3 * MINUTE_MS);
    const isTaken = await this.#isDone(second.call('agentPublish', { aid }));
    const { replicas = 0 } = (await second.call('agentPublish', { aid }).catch(() => null)) ?? {};
    this.#world.note(`a node that moved takes records: ${isTaken}, ${replicas}`);
    if (replicas === 0)
      this.#world.violate('nodes that moved take records', 'the only other node of a network takes none');
    await this.#end(first, second);
  }

  /** A helper that was silent when a node behind a NAT joined is used soon after it can be reached. */
  async #lateHelper(): Promise<void> {
    const first = await this.#parts.newNode(null);
    const second = await this.#parts.newNode(first);
    await this.#pause(JOIN_MS);
    second.machine.isOnline = false;
    const client = await this.#parts.newNode(first, true);
    await this.#pause(MINUTE_MS);
    second.machine.isOnline = true;
    await this.#pause(LATE_HELPER_MS);
    const { helpers } = await client.call('status', {});
    if (helpers.length < 2)
      this.#world.violate('nodes behind NATs have helpers', `${helpers.length} of 2 nodes that can help do`);
    await this.#end(first, second, client);
  }

  // Calls.

  /** A call begins another attempt if an earlier one has waited since the node was offline. */
  async #returned(): Promise<void> {
    const [one, two] = [await this.#node(), await this.#node()];
    const [caller, called] = [await this.#agent(one), await this.#agent(two)];
    await this.#pause(MINUTE_MS);
    await one.call('resolve', { aid: called });
    two.machine.isOnline = false;
    void one.call('fetch', { aid: called, path: '/', local_aid: caller }).catch(() => {});
    await this.#pause(2 * SECOND_MS);
    two.machine.isOnline = true;
    await this.#mustAnswer(one, caller, called, 'that has returned', RETURNED_MS);
    await this.#end(one, two);
  }

  /** A node is found soon at the address that it moved to. */
  async #moved(afterMs: number): Promise<void> {
    const [one, two] = [await this.#node(), await this.#node()];
    const [caller, called] = [await this.#agent(one), await this.#agent(two)];
    await this.#pause(MINUTE_MS);
    await this.#mustAnswer(one, caller, called, 'that has joined', MOVED_MS);
    two.crash();
    this.#parts.move(two);
    await two.start();
    this.#serve(two);
    await this.#pause(afterMs);
    await this.#mustAnswer(one, caller, called, `that moved ${afterMs} ms ago`, MOVED_MS);
    await this.#end(one, two);
  }

  /** A node that calls its caller, stops and returns within a second, is dialed again. */
  async #shortVisit(): Promise<void> {
    const { note, violate, schedule } = this.#world;
    const [one, two] = [await this.#node(), await this.#node()];
    const [caller, called] = [await this.#agent(one), await this.#agent(two)];
    await this.#pause(MINUTE_MS);
    await one.call('resolve', { aid: called });
    two.crash();
    await two.start();
    await this.#pause(20 * SECOND_MS);
    this.#parts.move(two);
    const call = (): Promise<boolean> => this.#isDone(one.call('fetch', { aid: called, path: '/', local_aid: caller }));
    const first = call();
    const since = schedule.now();
    await two.call('fetch', { aid: caller, path: '/', local_aid: called }).catch(() => {});
    note(`visited after ${schedule.now() - since} ms`);
    await two.stop();
    await two.start();
    this.#serve(two);
    note(`back after ${schedule.now() - since} ms`);
    const at = schedule.now();
    const isAnswered = await call();
    note(`a call after a short visit: ${await first}, ${isAnswered}, ${schedule.now() - at} ms`);
    if (!isAnswered) violate('calls find nodes soon', 'a call after a short visit failed');
    await this.#end(one, two);
  }

  /** A node that moved without a restart is found soon. The caller did not know its former address. */
  async #movedAwake(afterMs: number): Promise<void> {
    const [one, two] = [await this.#node(), await this.#node()];
    const [caller, called] = [await this.#agent(one), await this.#agent(two)];
    await this.#pause(MINUTE_MS);
    this.#parts.move(two);
    await this.#pause(afterMs);
    await this.#mustAnswer(one, caller, called, `that moved awake ${afterMs} ms ago`, MOVED_MS);
    await this.#end(one, two);
  }

  async #mustAnswer(node: SimulatedNode, caller: Aid, called: Aid, which: string, maxMs: number): Promise<void> {
    const { schedule, note, violate } = this.#world;
    const since = schedule.now();
    const isAnswered = await this.#isDone(node.call('fetch', { aid: called, path: '/', local_aid: caller }));
    const ms = schedule.now() - since;
    note(`a call of a node ${which}: ${isAnswered}, ${ms} ms`);
    if (!isAnswered || ms > maxMs)
      violate('calls find nodes soon', `a call of a node ${which} took ${ms} ms: ${isAnswered ? 'ok' : 'failed'}`);
  }

  /** A secret counts for an agent that was deleted and registered again with it. */
  async #secret(): Promise<void> {
    const [one, two] = [await this.#node(), await this.#node()];
    const caller = await this.#agent(one);
    const identity = delegateAnew(KeyPair.generate(), Math.floor(this.#world.schedule.now() / 1000));
    const { aid } = identity;
    for (const life of [1, 2]) {
      await this.#register(two, identity);
      await two.call('aclPatch', { aid, default: 'deny' });
      await two.call('aclAllow', { aid, secret: SECRET });
      const wish = { aid, path: '/', local_aid: caller, access_token: SECRET };
      const status = await one.call('fetch', wish).then(
        (answer) => answer.status,
        (error: unknown) => (error instanceof SvcError ? error.code : 'unexpected'),
      );
      this.#world.note(`the secret of life ${life}: ${status}`);
      if (status !== 200) this.#world.violate('a right secret opens', `the secret of life ${life}: ${status}`);
      await two.call('agentDelete', { aid });
    }
    await this.#end(one, two);
  }

  /** A connection survives many changes of network. */
  async #restless(): Promise<void> {
    const { random } = this.#world;
    const { one, two, caller, called } = await this.#echoed();
    const connection = await this.#open(one, caller, called);
    for (let change = 0; change < 40; change++) {
      connection.write();
      await this.#pause(100 + random.next() * (random.chance(0.3) ? 8000 : 1500));
      this.#parts.move(random.chance(0.7) ? one : two);
    }
    await this.#pause(30 * SECOND_MS);
    const { sent, received, isClosed } = connection;
    this.#world.note(`a restless connection: ${received} of ${sent} bytes, closed: ${isClosed}`);
    if (isClosed || received < sent)
      this.#world.violate('tunnel connections outlive their path', `${received} of ${sent} bytes, closed: ${isClosed}`);
    await this.#end(one, two);
  }

  /** A tunnel connection that begins after the access list changed does not reach the service. */
  async #denied(): Promise<void> {
    const { one, two, caller, called } = await this.#echoed();
    const first = await this.#open(one, caller, called);
    first.write();
    await this.#pause(2 * SECOND_MS);
    await two.call('aclDeny', { aid: called, body_aid: caller });
    const second = await this.#open(one, caller, called);
    second.write();
    await this.#pause(5 * SECOND_MS);
    this.#world.note(`connections before and after a change of access: ${first.received}, ${second.received} bytes`);
    if (second.received > 0) this.#world.violate('access lists', 'a tunnel reached a service that excludes its caller');
    await this.#end(one, two);
  }

  /** As `#denied`, if the access list changes while the service has not yet accepted. */
  async #deniedLate(): Promise<void> {
    const { one, two, caller, called } = await this.#echoed();
    two.process.acceptMs.set(SERVICE_PORT, 4 * SECOND_MS);
    const connection = await this.#open(one, caller, called);
    connection.write();
    await this.#pause(2 * SECOND_MS);
    await two.call('aclDeny', { aid: called, body_aid: caller });
    await this.#pause(5 * SECOND_MS);
    this.#world.note(`a connection that was denied before the service accepted: ${connection.received} bytes`);
    if (connection.received > 0)
      this.#world.violate('access lists', 'a tunnel reached a service that excluded its caller meanwhile');
    await this.#end(one, two);
  }

  /** A connection in use moves to another path after the NAT of its silent side forgets the present one. */
  async #deadPath(): Promise<void> {
    const { schedule, note, violate } = this.#world;
    const { one, two, caller, called } = await this.#echoed(true);
    const connection = await this.#open(one, caller, called);
    connection.write();
    await this.#pause(5 * SECOND_MS);
    this.#parts.restartNat(two);
    const since = schedule.now();
    const before = connection.received;
    for (let step = 0; step < 600 && connection.received === before && !connection.isClosed; step++) {
      if (step % 10 === 0) connection.write();
      await this.#pause(SECOND_MS / 10);
    }
    const ms = schedule.now() - since;
    note(`a connection on a dead path: ${before} bytes, ${ms} ms, closed: ${connection.isClosed}`);
    if (before > 0 && (connection.isClosed || ms > DEAD_PATH_MS))
      violate('connections leave dead paths soon', `${ms} ms, closed: ${connection.isClosed}`);
    await this.#end(one, two);
  }

  /** After a partition, both halves of a network find each other, although no bootstrap node is in the other half. */
  async #halves(): Promise<void> {
    const first = await this.#parts.newNode(null);
    const left = [first, await this.#parts.newNode(first)];
    const bridge = await this.#parts.newNode(first);
    await this.#pause(JOIN_MS);
    const third = await this.#parts.newNode(bridge);
    await this.#pause(JOIN_MS);
    const right = [third, await this.#parts.newNode(third)];
    await this.#pause(2 * MINUTE_MS);
    bridge.crash();
    await this.#pause(5 * MINUTE_MS);
    const [, reader] = left;
    const [, owner] = right;
    if (reader === undefined || owner === undefined) return;
    const known = await this.#isDone(reader.call('resolve', { aid: await this.#agent(owner) }));
    const heal = this.#parts.cut(left, right);
    await this.#pause(20 * MINUTE_MS);
    heal();
    await this.#pause(4 * MINUTE_MS);
    const isFound = await this.#isDone(reader.call('resolve', { aid: await this.#agent(owner) }));
    this.#world.note(`an agent of the other half is found before a partition: ${known}, after it: ${isFound}`);
    if (known && !isFound)
      this.#world.violate('halves of a network meet again', 'an agent of the other half is not found');
    await this.#end(...left, ...right);
  }

  /** Two nodes. The service of the second one returns every byte. */
  async #echoed(isBehindNat = false) {
    const [one, two] = [await this.#node(), await this.#node(isBehindNat)];
    two.process.runOther(() => {
      net.createServer((socket) => void socket.on('error', () => {}).pipe(socket)).listen(SERVICE_PORT);
    });
    const [caller, called] = [await this.#agent(one), await this.#agent(two)];
    await this.#pause(MINUTE_MS);
    return { one, two, caller, called };
  }

  /** A TCP connection through a tunnel. */
  async #open(node: SimulatedNode, caller: Aid, called: Aid) {
    const { listen } = await node.call('tunnelOpen', { aid: called, local_aid: caller });
    const socket = node.process.runOther(() => net.connect(Number(listen.split(':').at(-1)), '127.0.0.1'));
    const state = { sent: 0, received: 0, isClosed: false };
    socket.on('error', () => {});
    socket.on('close', () => void (state.isClosed = true));
    socket.on('data', (chunk: Buffer) => void (state.received += chunk.length));
    const write = (): void => {
      state.sent++;
      node.process.deliver(() => void socket.write('x'));
    };
    return Object.assign(state, { write });
  }

  // Notes and groups.

  /** Without a network, a note is queued. */
  async #offlineNote({ aid: recipient }: Agent): Promise<void> {
    const node = await this.#node();
    const aid = await this.#agent(node);
    await this.#pause(MINUTE_MS);
    node.machine.isOnline = false;
    await this.#pause(3 * MINUTE_MS);
    const note = { aid, recipient, msg_type: 1, body_base64: 'AAAA' };
    const { queued } = await node.call('mailboxSend', note);
    if (!queued) this.#world.violate('notes are queued without a network', 'a note is not queued');
    await this.#end(node);
  }

  /** A note is on the disks of other nodes when it is acknowledged. */
  async #keptNote(): Promise<void> {
    const first = await this.#parts.newNode(null);
    const [second, sender, recipient] = [
      await this.#parts.newNode(first),
      await this.#parts.newNode(first),
      await this.#parts.newNode(first),
    ];
    await this.#pause(JOIN_MS);
    const [from, to] = [await this.#agent(sender), await this.#agent(recipient)];
    await this.#pause(MINUTE_MS);
    await sender.call('mailboxSend', { aid: from, recipient: to, msg_type: 1, body_base64: 'AAAA' });
    recipient.crash();
    await this.#pause(MINUTE_MS);
    const holders = [first, second];
    for (const { disk } of holders) disk.faults.failingFlushes = 1;
    const acknowledged: string[] = [];
    for (let nth = 0; nth < POWER_CUTS; nth++) {
      const body_base64 = Buffer.from(`note ${nth}`).toString('base64');
      const { replicas } = await sender.call('mailboxSend', { aid: from, recipient: to, msg_type: 1, body_base64 });
      if (replicas > 0) acknowledged.push(body_base64);
    }
    // The sender has copies too.
    sender.crash();
    for (const holder of holders) holder.cutPower();
    for (const { disk } of holders) disk.faults.failingFlushes = 0;
    for (const holder of holders) await holder.start();
    await recipient.start();
    await this.#pause(2 * ARRIVAL_MS);
    const { messages } = await recipient.call('mailboxPoll', { aid: to });
    const missing = acknowledged.filter((body) => !messages.some((message) => message.body_base64 === body));
    this.#world.note(`kept notes: ${acknowledged.length} acknowledged, ${missing.length} missing`);
    if (missing.length > 0)
      this.#world.violate('acknowledged notes are delivered', `${missing.length} of ${acknowledged.length} are lost`);
    await this.#end(first, second, recipient);
  }

  /** Group entries that were written while the clock was ahead do not block later ones. */
  async #entriesAhead(): Promise<void> {
    const [one, two] = [await this.#node(), await this.#node()];
    const [creator, member] = [await this.#agent(one), await this.#agent(two)];
    const { group_id } = await one.call('groupCreate', { aid: creator, title: 'trial' });
    const { link } = await one.call('groupGetLink', { aid: creator, group_id });
    await this.#pause(MINUTE_MS);
    await two.call('groupJoin', { aid: member, link });
    await this.#pause(ARRIVAL_MS);
    const write = (text: string) =>
      this.#isDone(two.call('groupAppend', { aid: member, group_id, body: Buffer.from(text).toString('base64') }));
    two.machine.isOnline = false;
    two.crash();
    await two.start();
    two.process.jump(15 * MINUTE_MS);
    const ahead = [await write('ahead'), await write('ahead too')];
    two.process.jump(-15 * MINUTE_MS);
    const isWritten = await write('on time');
    two.machine.isOnline = true;
    await this.#pause(6 * MINUTE_MS);
    const { entries } = await one.call('groupEntries', { aid: creator, group_id, after_seq: 0, limit: PAGE });
    const texts = entries.map(({ body }) => Buffer.from(body ?? '', 'base64').toString());
    this.#world.note(`written ahead: ${ahead.join()}, on time: ${isWritten}, read: ${texts.join()}`);
    if (ahead.includes(true) && !(isWritten && texts.includes('on time')))
      this.#world.violate('group entries arrive', 'earlier ones of the author were written while its clock was ahead');
    await this.#end(one, two);
  }

  /** A false invitation does not keep an agent out of a group. */
  async #falseInvitation(): Promise<void> {
    const [one, two] = [await this.#node(), await this.#node()];
    const [creator, member] = [await this.#agent(one), await this.#agent(two)];
    const { group_id } = await one.call('groupCreate', { aid: creator, title: 'trial' });
    const { link } = await one.call('groupGetLink', { aid: creator, group_id });
    await this.#pause(MINUTE_MS);
    const eve = delegateAnew(KeyPair.generate(), Math.floor(this.#world.schedule.now() / 1000)).aid;
    this.#change(two, (database) => {
      database
        .prepare(
          `INSERT INTO group_invites_in (aid, group_id, inviter, creator, title, secret, at, known)
           VALUES (?, ?, ?, ?, '', ?, 0, 0)`,
        )
        .run(member, Buffer.from(group_id, 'hex'), eve, eve, ZERO_SECRET);
    });
    await two.start();
    await this.#pause(JOIN_MS);
    await two.call('groupJoin', { aid: member, group_id }).catch(() => {});
    const { state } = await two.call('groupJoin', { aid: member, link });
    if (state !== 'joined')
      this.#world.violate('false invitations have no effect', 'an agent cannot join with the right link');
    await this.#end(one, two);
  }

  /** Changes the database of a node, which does not run afterwards. */
  #change(node: SimulatedNode, change: (database: DatabaseSync) => void): void {
    node.crash();
    const database = new DatabaseSync(join(node.directory, DATABASE_FILE));
    change(database);
    database.close();
  }

  // The parts of all trials.

  async #node(isBehindNat = false): Promise<SimulatedNode> {
    const node = await this.#parts.newNode(undefined, isBehindNat);
    await this.#pause(JOIN_MS);
    return node;
  }

  async #end(...nodes: readonly SimulatedNode[]): Promise<void> {
    for (const node of nodes) {
      node.machine.isOnline = true;
      await node.stop();
    }
  }

  /** A published agent whose service answers. @param aheadMs of the clock that signs its delegation */
  async #agent(node: SimulatedNode, aheadMs = 0): Promise<Aid> {
    const now = this.#world.schedule.now() + aheadMs;
    const identity = delegateAnew(KeyPair.generate(), Math.floor(now / 1000));
    await this.#register(node, identity);
    return identity.aid;
  }

  async #register(node: SimulatedNode, { aid, credentials }: TestIdentity): Promise<void> {
    this.#serve(node);
    await node.call('agentRegister', {
      operational_private_key_hex: credentials.operationalPrivateKeyHex,
      delegation_proof_hex: credentials.delegationProofHex,
      service_tcp: `127.0.0.1:${SERVICE_PORT}`,
    });
    await node.call('agentPublish', { aid });
  }

  #serve(node: SimulatedNode): void {
    if (node.ports.has(SERVICE_PORT)) return;
    node.process.runOther(() => {
      createServer((request, response) => {
        request.resume();
        response.end('trial');
      }).listen(SERVICE_PORT);
    });
  }

  /** New agents of two nodes that are friends. */
  async #friends(one: SimulatedNode, two: SimulatedNode): Promise<readonly [Aid, Aid]> {
    const [here, there] = [await this.#agent(one), await this.#agent(two)];
    await one.call('chatRequest', { aid: here, peer: there });
    await this.#pause(ARRIVAL_MS);
    await two.call('chatAccept', { aid: there, peer: here });
    await this.#pause(ARRIVAL_MS);
    return [here, there];
  }

  /** True if an operation succeeds. */
  async #isDone(work: Promise<unknown>): Promise<boolean> {
    return await work.then(
      () => true,
      () => false,
    );
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#world.schedule.after(ms, resolve));
  }

  async audit(): Promise<void> {}

  figures(): Readonly<Record<string, number>> {
    return { begun: this.#begun, complete: this.#complete };
  }
}
