/**
 * Notes in a network that loses, delays, duplicates, reorders and partitions, between daemons that
 * restart: every acknowledged note arrives, and no note arrives twice.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { idle } from '../../support/idle.ts';
import { type MailNode, MailWorld } from '../../support/mail-world.ts';

const SEEDS = 6;
const STEPS = 60;

interface Place {
  node: MailNode;
  readonly aid: Aid;
}

for (let seed = 1; seed <= SEEDS; seed++) {
  test(`no note is lost or doubled, seed ${seed}`, async () => {
    const world = new MailWorld(seed);
    const { random } = world.links;
    const places: Place[] = [];
    for (const name of ['a', 'b', 'c']) {
      const node = await world.node(name);
      places.push({ node, aid: (await node.host()).aid });
    }
    // Everybody has met everybody, as after a while of normal life.
    for (const from of places)
      for (const to of places) await world.during(from.node.notes.send(from.aid, to.aid, 0, new Uint8Array(1)));
    const polled = new Map<Aid, string[]>(places.map(({ node, aid }) => [aid, node.poll(aid)]));
    for (const { aid } of places) assert.equal(polled.get(aid)?.length, 3);

    const acknowledged: { to: Aid; id: string }[] = [];
    const attempts: Promise<void>[] = [];
    const send = (from: Place, to: Place, number: number): void => {
      const sending = from.node.notes.send(from.aid, to.aid, 1, new TextEncoder().encode(`${number}`));
      attempts.push(
        sending.then(({ messageId }) => void acknowledged.push({ to: to.aid, id: messageId })).catch(() => {}),
      );
    };
    world.links.trouble = { refuse: 0.3, cut: 0.5, delayMs: 400 };
    for (let step = 0; step < STEPS; step++) {
      const place = random.pick(places);
      const other = random.pick(places);
      const dice = random.below(20);
      if (dice < 10) send(place, other, random.below(2) === 0 ? step : step - 1);
      else if (dice < 12) polled.get(place.aid)?.push(...place.node.poll(place.aid));
      else if (dice < 13) place.node.notes.take(place.aid).giveBack();
      else if (dice < 15) world.links.part(place.node.links, other.node.links);
      else if (dice < 16) world.links.heal();
      else if (dice < 18) place.node.records.unreachable = random.chance(0.5);
      else if (dice < 19) place.node.records.setReachability({ ready: random.chance(0.7) });
      else place.node = await place.node.restart();
      await world.clock.run(random.below(3000));
      await idle();
    }
    world.links.trouble = { refuse: 0, cut: 0, delayMs: 1 };
    world.links.heal();
    for (const { node } of places) {
      node.records.unreachable = false;
      node.records.setReachability({ ready: true });
    }
    await world.during(Promise.all(attempts));
    for (let i = 0; i < 3; i++) {
      await world.clock.run(70_000);
      await idle();
      for (const { node, aid } of places) polled.get(aid)?.push(...node.poll(aid));
    }
    assert.ok(acknowledged.length > 10, 'the weather was so bad that nothing was tested');
    for (const { to, id } of acknowledged) {
      const times = polled.get(to)?.filter((one) => one === id).length;
      assert.equal(times, 1, `a note came ${times} times`);
    }
    for (const ids of polled.values()) assert.equal(new Set(ids).size, ids.length);
  });
}
