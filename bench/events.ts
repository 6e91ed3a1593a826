/** A thousand subscribers of event streams over HTTP, half for one agent and half for the node. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { EmitOrder, EventsHello } from './support/events-child.ts';
import { type BenchTable, quantile } from './table.ts';

const SUBSCRIBERS = 1_000;
const EVENTS_PER_S = 100;
const SECONDS = 10;
const MAX_P95_MS = 100;
const MARK = Buffer.from('\nevent: chat.received\n');
const TIME = Buffer.from('"at":"');
const ISO_LENGTH = '2026-01-01T00:00:00.000Z'.length;

/** Counts the events of one subscriber, and notes how old the newest of each chunk was. */
function subscribe(port: number, path: string, ages: number[], counted: (events: number) => void): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`));
    socket.once('data', () => resolve(socket));
    socket.on('data', (chunk: Buffer) => {
      let events = 0;
      for (let at = chunk.indexOf(MARK); at >= 0; at = chunk.indexOf(MARK, at + 1)) events++;
      if (events === 0) return;
      counted(events);
      // The oldest event of a batch waited the most.
      const at = chunk.indexOf(TIME);
      if (at >= 0) ages.push(Date.now() - Date.parse(chunk.toString('latin1', at + 6, at + 6 + ISO_LENGTH)));
    });
  });
}

export async function run(): Promise<BenchTable> {
  const child = fork(new URL('support/events-child.ts', import.meta.url));
  const [{ aid, port }] = (await once(child, 'message')) as [EventsHello];
  const ages: number[] = [];
  const total = EVENTS_PER_S * SECONDS;
  let received = 0;
  let complete = (): void => {};
  const counted = (events: number): void => {
    received += events;
    if (received >= total * SUBSCRIBERS) complete();
  };
  const sockets: Socket[] = [];
  for (let i = 0; i < SUBSCRIBERS; i++)
    sockets.push(await subscribe(port, i % 2 === 0 ? `/agents/${aid}/events` : '/events', ages, counted));
  const all = new Promise<void>((resolve) => {
    complete = resolve;
    setTimeout(resolve, (SECONDS + 10) * 1000);
  });
  child.send({ events: total, ms: SECONDS * 1000 } satisfies EmitOrder);
  await all;
  for (const socket of sockets) socket.destroy();
  child.disconnect();
  const lost = total * SUBSCRIBERS - received;
  const p95 = quantile(ages, 0.95);
  return {
    title: `${SUBSCRIBERS} subscribers, ${EVENTS_PER_S} events/s for ${SECONDS} s`,
    rows: [
      { what: 'events lost', value: lost, unit: '', aim: '0', ok: lost === 0 },
      { what: 'emit to client, p50', value: quantile(ages, 0.5), unit: 'ms' },
      { what: 'emit to client, p95', value: p95, unit: 'ms', aim: `≤ ${MAX_P95_MS} ms`, ok: p95 <= MAX_P95_MS },
      { what: 'emit to client, p99', value: quantile(ages, 0.99), unit: 'ms' },
    ],
  };
}
