/** SIGKILL at random moments of sending, receiving and polling, on real daemons and real disks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { killSome, Mortal } from '../support/mortal.ts';
import { Random } from '../support/random.ts';

const KILLS = 6;

interface World {
  readonly sender: Mortal;
  readonly receiver: Mortal;
  readonly alice: string;
  readonly bob: string;
  readonly random: Random;
}

async function inWorld(seed: number, run: (world: World) => Promise<void>): Promise<void> {
  await using root = await TestDaemon.start();
  const sender = await Mortal.start(root.dhtAddress);
  const receiver = await Mortal.start(root.dhtAddress);
  try {
    const [alice, bob] = [await sender.publishedAgent(), await receiver.publishedAgent()];
    await run({ sender, receiver, alice, bob, random: new Random(seed) });
  } finally {
    await sender.stop();
    await receiver.stop();
  }
}

test('chat: accepted messages arrive once and in order', async () => {
  await inWorld(3, async (world) => {
    const { sender, receiver, alice, bob, random } = world;
    await sender.daemon.call('POST', `/agents/${alice}/chat/request`, { peer: bob });
    await eventually('the request', async () => {
      const { in_pending } = await receiver.daemon.call<{ in_pending: unknown[] }>(
        'GET',
        `/agents/${bob}/chat/contacts`,
      );
      return in_pending.length === 1;
    });
    await receiver.daemon.call('POST', `/agents/${bob}/chat/accept`, { peer: alice });
    const taken: number[] = [];
    const over = new AbortController();
    const talking = (async () => {
      for (let i = 0; !over.signal.aborted; i++) {
        const body = { peer: bob, text: `${i}` };
        if ((await sender.ask('POST', `/agents/${alice}/chat/send`, body)) !== null) taken.push(i);
        else await delay(20);
      }
    })();
    await killSome([sender, receiver], KILLS, random);
    await eventually('a message was accepted', () => taken.length > 0);
    over.abort();
    await talking;
    const heard = await eventually('everything', async () => {
      const numbers: number[] = [];
      for (let after = 0; ; ) {
        const path = `/agents/${bob}/chat/peers/${alice}?limit=200&after_seq=${after}`;
        const page = await receiver.ask<{ entries: { text: string }[]; scanned_to: number; has_more: boolean }>(
          'GET',
          path,
        );
        if (page === null) return false;
        numbers.push(...page.entries.map(({ text }) => Number(text)));
        after = page.scanned_to;
        if (!page.has_more) break;
      }
      return taken.every((number) => numbers.includes(number)) && numbers;
    });
    for (const [i, number] of heard.entries())
      assert.ok(i === 0 || number > (heard[i - 1] ?? 0), 'twice or out of order');
  });
});

test('notes: acknowledged notes are polled once', async () => {
  await inWorld(5, async (world) => {
    const { sender, receiver, alice, bob, random } = world;
    const sent = new Set<string>();
    const polled: string[] = [];
    let lostAnswers = 0;
    const over = new AbortController();
    const sending = (async () => {
      for (let i = 0; !over.signal.aborted; i++) {
        const body = { recipient: bob, msg_type: 1, body_base64: Buffer.from(`${i}`).toString('base64') };
        const answer = await sender.ask<{ message_id: string }>('POST', `/agents/${alice}/mailbox/send`, body);
        if (answer !== null) sent.add(answer.message_id);
        else await delay(20);
      }
    })();
    const poll = async (): Promise<void> => {
      const answer = await receiver.ask<{ messages: { message_id: string }[] }>(
        'POST',
        `/agents/${bob}/mailbox/poll`,
        {},
      );
      if (answer === null) lostAnswers++;
      else polled.push(...answer.messages.map(({ message_id }) => message_id));
    };
    const polling = (async () => {
      while (!over.signal.aborted) {
        await poll();
        await delay(30);
      }
    })();
    await killSome([sender, receiver], KILLS, random);
    await eventually('a note was sent', () => sent.size > 0);
    over.abort();
    await Promise.all([sending, polling]);
    await eventually('everything', async () => {
      await poll();
      return [...sent].every((id) => polled.includes(id));
    });
    // Only a response that the kill interrupted may be repeated, with the same ids.
    const twice = polled.length - new Set(polled).size;
    assert.ok(twice === 0 || lostAnswers > 0, `${twice} notes were polled twice`);
  });
});
