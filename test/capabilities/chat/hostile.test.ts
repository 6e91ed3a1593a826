/**
 * Chat in a network that loses, delays, duplicates, reorders and partitions, between daemons that crash: entries arrive
 * exactly once and in order, and both sides agree on their relationship.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { type ChatNode, ChatWorld } from '../../support/chat-world.ts';

const SEEDS = 40;
const STEPS = 80;
const BAD = { refuse: 0.3, cut: 0.6, delayMs: 500 };
const CALM = { refuse: 0, cut: 0, delayMs: 1 };

interface Side {
  node: ChatNode;
  readonly aid: Aid;
  readonly peer: Aid;
  /** Entries that were accepted for delivery here. */
  readonly sent: string[];
}

async function sides(world: ChatWorld): Promise<[Side, Side]> {
  const [a, alice, b, bob] = await world.friends();
  return [
    { node: a, aid: alice, peer: bob, sent: [] },
    { node: b, aid: bob, peer: alice, sent: [] },
  ];
}

/** One random fault or recovery. */
async function weather(world: ChatWorld, one: Side, other: Side): Promise<void> {
  const dice = world.links.random.below(10);
  if (dice < 3) world.links.part(one.node.links, other.node.links);
  else if (dice < 6) world.links.heal();
  else if (dice < 7) one.node = await one.node.restart();
  else if (dice < 8) world.links.trouble = world.links.random.chance(0.5) ? BAD : CALM;
}

function texts(node: ChatNode, aid: Aid, peer: Aid, incoming: boolean): (string | null)[] {
  return node
    .log(aid, peer)
    .filter((entry) => entry.incoming === incoming)
    .map((entry) => entry.text);
}

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`exactly once and in order, seed ${seed}`, async () => {
    const world = new ChatWorld(seed);
    const { random } = world.links;
    const [one, other] = await sides(world);
    world.links.trouble = BAD;
    const sending: Promise<unknown>[] = [];
    for (let step = 0; step < STEPS; step++) {
      const side = random.pick([one, other]);
      const burst = random.chance(0.3) ? 0 : random.below(8);
      for (let i = 0; i < burst; i++) {
        const text = `${step}.${i}`;
        side.sent.push(text);
        sending.push(side.node.say(side.aid, side.peer, text));
      }
      // Accepted entries are on disk. A node may crash only after that.
      await world.clock.run(1);
      await weather(world, side, side === one ? other : one);
      await world.clock.run(random.below(4000));
    }
    world.links.trouble = CALM;
    world.links.heal();
    await world.during(Promise.all(sending));
    const queues = (): string[] =>
      [one, other].flatMap(({ node, aid, peer }) => node.log(aid, peer).map(({ status }) => status));
    await world.until('empty queues', () => !queues().includes('queued'));
    assert.deepEqual(texts(other.node, other.aid, other.peer, true), one.sent);
    assert.deepEqual(texts(one.node, one.aid, one.peer, true), other.sent);
    assert.deepEqual(texts(one.node, one.aid, one.peer, false), one.sent);
    for (const { node, aid, peer } of [one, other]) {
      const log = node.log(aid, peer);
      assert.deepEqual(
        log.map(({ seq }) => seq),
        log.map((_, i) => i + 1),
      );
      assert.equal(node.chat.read(aid, peer, 0, 1).unread, (aid === one.aid ? other : one).sent.length);
    }
  });
}

/** Pairs of states in which neither side has a control message to send. */
const AGREED = new Set(['friends friends', 'none none', 'out_pending in_pending', 'in_pending out_pending']);

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`both sides finally agree after any operations, seed ${seed}`, async () => {
    const world = new ChatWorld(1000 + seed);
    const { random } = world.links;
    const [one, other] = await sides(world);
    world.links.trouble = BAD;
    let wasBlocked = false;
    const acts = ['request', 'request', 'accept', 'accept', 'refuse', 'remove', 'block'] as const;
    for (let step = 0; step < STEPS; step++) {
      const side = random.pick([one, other]);
      if (random.chance(0.4)) {
        const act = random.pick(acts);
        try {
          side.node.chat[act](side.aid, side.peer, '');
          wasBlocked ||= act === 'block';
        } catch {
          // The operation is not allowed in this state.
        }
      } else {
        const text = `${step}`;
        side.sent.push(text);
        void side.node.say(side.aid, side.peer, text).catch(() => side.sent.splice(side.sent.indexOf(text), 1));
      }
      await world.clock.run(1);
      await weather(world, side, side === one ? other : one);
      await world.clock.run(random.below(3000));
    }
    world.links.trouble = CALM;
    world.links.heal();
    const states = (): string => `${one.node.state(one.aid, one.peer)} ${other.node.state(other.aid, other.peer)}`;
    const open = (): boolean =>
      [one, other].some(({ node, aid, peer }) => (node.pairs.pair(aid, peer)?.control ?? null) !== null);
    await world.until('no control messages', () => !open());
    // A side with an outdated friendship detects it with its next entry.
    for (const side of [one, other])
      if (side.node.state(side.aid, side.peer) === 'friends') {
        side.sent.push('anyone?');
        await world.during(side.node.say(side.aid, side.peer, 'anyone?'));
      }
    await world.until('no control messages', () => !open());
    // A request to a blocking peer gets no answer and waits until it expires.
    const unanswered = wasBlocked && ['none out_pending', 'out_pending none'].includes(states());
    assert.ok(unanswered || states().includes('blocked') || AGREED.has(states()), states());
    for (const [from, to] of [
      [one, other],
      [other, one],
    ] as const) {
      const heard = texts(to.node, to.aid, to.peer, true);
      // In the order in which the entries were sent, without duplicates. Dropped and blocked entries are missing.
      let at = 0;
      for (const text of heard) {
        at = from.sent.indexOf(text ?? '', at) + 1;
        assert.ok(at > 0, `"${text}" arrived twice or out of order`);
      }
    }
  });
}
