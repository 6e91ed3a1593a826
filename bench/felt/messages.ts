/** Perceived latency of publishing, notes and chat: each step of one product once, in alternation with the other. */
import { eventually } from '../../test/support/eventually.ts';
import { call, EventWatch, newAgent } from './api.ts';
import type { FeltNetwork } from './nodes.ts';

/** Milliseconds by measurement. */
export type Taken = Readonly<Record<string, number>>;
/** One of a series of measurements. */
export type Step = (index: number) => Promise<Taken>;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

/** The two nodes that communicate. Neither is the bootstrap node. */
export function ends({ nodes }: FeltNetwork): { near: number; far: number } {
  const [near, far] = [nodes[1]?.port, nodes[2]?.port];
  if (near === undefined || far === undefined) throw new RangeError('the network needs at least three nodes');
  return { near, far };
}

/** Publishes a new agent, publishes it again, and then publishes a service of it. */
export function publishing(network: FeltNetwork): Step {
  const { near } = ends(network);
  return async (index) => {
    const aid = await newAgent(near);
    const first = await timed(() => call(near, 'POST', `/agents/${aid}/publish`));
    const again = await timed(() => call(near, 'POST', `/agents/${aid}/publish`));
    const service = { services: [`felt.s${index % 50}`], name: 'felt', protocols: ['http'], brief: 'a service' };
    const register = await timed(() => call(near, 'POST', `/agents/${aid}/services`, service));
    return { 'publish, first': first, 'publish again': again, 'register a service': register };
  };
}

async function pair(network: FeltNetwork): Promise<{ alice: string; bob: string }> {
  const { near, far } = ends(network);
  const [alice, bob] = [await newAgent(near), await newAgent(far)];
  await call(near, 'POST', `/agents/${alice}/publish`);
  await call(far, 'POST', `/agents/${bob}/publish`);
  return { alice, bob };
}

async function measureDelivery(what: string, heard: EventWatch, send: () => Promise<unknown>): Promise<Taken> {
  const started = performance.now();
  const event = heard.next();
  const answered = await timed(send);
  return { [`${what} answered`]: answered, [`${what}, event at the receiver`]: (await event) - started };
}

/** A note to an online agent. */
export async function notes(network: FeltNetwork): Promise<Step> {
  const { near, far } = ends(network);
  const { alice, bob } = await pair(network);
  const heard = await EventWatch.open(far, bob, 'mailbox.received');
  const path = `/agents/${alice}/mailbox/send`;
  return async (index) => {
    const body = Buffer.from(`note ${index}`).toString('base64');
    const send = () => call(near, 'POST', path, { recipient: bob, msg_type: 3, body_base64: body });
    const taken = await measureDelivery('note', heard, send);
    if (index % 100 === 99) await call(far, 'POST', `/agents/${bob}/mailbox/poll`, {});
    return taken;
  };
}

/** A chat entry to an online friend. */
export async function chat(network: FeltNetwork): Promise<Step> {
  const { near, far } = ends(network);
  const { alice, bob } = await pair(network);
  await call(near, 'POST', `/agents/${alice}/chat/request`, { peer: bob });
  await eventually('the request', async () => {
    const { in_pending } = await call(far, 'GET', `/agents/${bob}/chat/contacts`);
    return Array.isArray(in_pending) && in_pending.length > 0;
  });
  await call(far, 'POST', `/agents/${bob}/chat/accept`, { peer: alice });
  await eventually('the friendship', async () => {
    const { friends } = await call(near, 'GET', `/agents/${alice}/chat/contacts`);
    return Array.isArray(friends) && friends.length > 0;
  });
  const heard = await EventWatch.open(far, bob, 'chat.received');
  const path = `/agents/${alice}/chat/send`;
  return (index) => measureDelivery('chat', heard, () => call(near, 'POST', path, { peer: bob, text: `t${index}` }));
}
