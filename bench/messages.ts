/**
 * Notes and chat between real daemons: time from a note to the recipient's event, time until a returning recipient has
 * its notes, and throughput of chat entries that are durable on both sides.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { TestDaemon } from '../test/support/daemon.ts';
import { eventually } from '../test/support/eventually.ts';
import { ready, TestNetwork } from '../test/support/network.ts';
import { type BenchTable, quantile } from './table.ts';

const NOTES = 100;
const NOTE_AIM_MS = 50;
const NODES = 60;
const PICKUP_AIM_MS = 2000;
const CHAT_ENTRIES = 3000;
/** Concurrent requests of the chat client. */
const SENDERS = 16;
const CHAT_AIM_PER_S = 500;

async function published(daemon: TestDaemon): Promise<string> {
  const aid = await daemon.newAgent();
  await daemon.call('POST', `/agents/${aid}/publish`);
  return aid;
}

/** Arrival times of an agent's events in milliseconds, by payload. */
async function follow(daemon: TestDaemon, aid: string, signal: AbortSignal): Promise<Map<string, number>> {
  const arrivals = new Map<string, number>();
  const response = await fetch(`${daemon.api}/agents/${aid}/events?types=mailbox.received`, { signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  void (async () => {
    for (let chunk = await reader?.read(); chunk?.done === false; chunk = await reader?.read())
      for (const [id] of chunk.value.matchAll(/[0-9a-f]{64}/g)) arrivals.set(id, performance.now());
  })().catch(() => {});
  return arrivals;
}

/** Time from the response of `send` to the event at the recipient, and the time of `send` itself. */
async function notes(a: TestDaemon, b: TestDaemon): Promise<{ after: number[]; sending: number[] }> {
  const [alice, bob] = [await published(a), await published(b)];
  const stop = new AbortController();
  const arrivals = await follow(b, bob, stop.signal);
  const sent = new Map<string, number>();
  const sending: number[] = [];
  for (let i = 0; i < NOTES; i++) {
    const started = performance.now();
    const body = { recipient: bob, msg_type: 3, body_base64: Buffer.from(`note ${i}`).toString('base64') };
    const { message_id } = await a.call<{ message_id: string }>('POST', `/agents/${alice}/mailbox/send`, body);
    sent.set(message_id, performance.now());
    sending.push(performance.now() - started);
    await delay(60);
  }
  await eventually('all events', () => arrivals.size >= NOTES);
  stop.abort();
  const after = [...sent].map(([id, at]) => Math.max(0, (arrivals.get(id) ?? Number.NaN) - at));
  return { after, sending };
}

/** Time from a ready network to the note in the mailbox of a daemon that was offline. */
async function pickup(network: TestNetwork): Promise<number> {
  const [root, a, b] = [network.at(0), network.at(1), network.at(2)];
  const [alice, bob] = [await published(a), await published(b)];
  await a.call('POST', `/agents/${alice}/mailbox/send`, { recipient: bob, msg_type: 1, body_base64: 'eA==' });
  await b.kill();
  await a.call('POST', `/agents/${alice}/mailbox/send`, { recipient: bob, msg_type: 1, body_base64: 'eQ==' });
  const back = await TestDaemon.start({ dataDir: b.dataDir, bootstrap: [root.dhtAddress] });
  await ready(back);
  const started = performance.now();
  await eventually('the note', async () => {
    const { messages } = await back.call<{ messages: unknown[] }>('GET', `/agents/${bob}/mailbox`);
    return messages.length === 2;
  });
  const took = performance.now() - started;
  await back.stop();
  return took;
}

/** Entries per second, from the first request to the last entry in the other log. */
async function chat(a: TestDaemon, b: TestDaemon, senders: number, entries: number): Promise<number> {
  const [alice, bob] = [await published(a), await published(b)];
  await a.call('POST', `/agents/${alice}/chat/request`, { peer: bob });
  await eventually('the request', async () => {
    const { in_pending } = await b.call<{ in_pending: unknown[] }>('GET', `/agents/${bob}/chat/contacts`);
    return in_pending.length === 1;
  });
  await b.call('POST', `/agents/${bob}/chat/accept`, { peer: alice });
  await a.call('POST', `/agents/${alice}/chat/send`, { peer: bob, text: 'first' });
  const started = performance.now();
  let next = 0;
  const sender = async (): Promise<void> => {
    while (next++ < entries) await a.call('POST', `/agents/${alice}/chat/send`, { peer: bob, text: 'x'.repeat(100) });
  };
  await Promise.all(Array.from({ length: senders }, sender));
  await eventually('all entries', async () => {
    const { unread_count } = await b.call<{ unread_count: number }>(
      'GET',
      `/agents/${bob}/chat/peers/${alice}?limit=1`,
    );
    return unread_count === entries + 1;
  });
  return (entries / (performance.now() - started)) * 1000;
}

export async function run(): Promise<BenchTable> {
  const network = await TestNetwork.start(NODES);
  const picked = await pickup(network);
  await network.stop();
  const few = await TestNetwork.start(3);
  const [a, b] = [few.at(1), few.at(2)];
  const { after, sending } = await notes(a, b);
  const together = await chat(a, b, SENDERS, CHAT_ENTRIES);
  const alone = await chat(a, b, 1, 300);
  await few.stop();
  const p50 = quantile(after, 0.5);
  return {
    title: 'Notes and chat between daemons',
    rows: [
      {
        what: 'note to an online agent, answer of send to event, p50',
        value: p50,
        unit: 'ms',
        aim: `≤ ${NOTE_AIM_MS} ms`,
        ok: p50 <= NOTE_AIM_MS,
      },
      { what: 'the same, p95', value: quantile(after, 0.95), unit: 'ms' },
      { what: 'send itself, p50', value: quantile(sending, 0.5), unit: 'ms' },
      { what: 'send itself, p95', value: quantile(sending, 0.95), unit: 'ms' },
      {
        what: `note in the mailbox after the network is ready, ${NODES} nodes`,
        value: picked,
        unit: 'ms',
        aim: `≤ ${PICKUP_AIM_MS} ms`,
        ok: picked <= PICKUP_AIM_MS,
      },
      {
        what: `chat, durable on both, ${SENDERS} requests in parallel`,
        value: together,
        unit: 'entries/s',
        aim: `≥ ${CHAT_AIM_PER_S}`,
        ok: together >= CHAT_AIM_PER_S,
      },
      { what: 'chat, sequential requests', value: alone, unit: 'entries/s' },
    ],
  };
}
