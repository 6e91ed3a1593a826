/** Perceived latency of calls and tunnels: each step of one product once, in alternation with the other. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { dial } from '../support/tcp-client.ts';
import { call, newAgent } from './api.ts';
import { ends, type Step } from './messages.ts';
import { cpuMs, type FeltNetwork } from './nodes.ts';

const ROUND_TRIP = Buffer.alloc(64, 0x78);
/** Concurrent calls, and calls in one round. */
const PARALLEL = 32;
const CALLS_PER_ROUND = 600;
/**
 * Maximum time until an agent of the other product is found after publication, in milliseconds: sometimes more than a
 * minute.
 */
const FOUND_MS = 120_000;
/** Pause before the next poll, milliseconds. */
const ASK_AGAIN_MS = 1000;

/**
 * A published agent with a service at a port, its caller in the terms of the product, and a function that waits until
 * the agent is found, which svcd must do immediately.
 */
async function reached(network: FeltNetwork, port: number) {
  const { near, far } = ends(network);
  const local = await newAgent(near);
  await call(near, 'POST', `/agents/${local}/publish`);
  const aid = await newAgent(far, `127.0.0.1:${port}`);
  await call(far, 'POST', `/agents/${aid}/publish`);
  const acting = network.name === 'svcd' ? { local_aid: local } : {};
  const found = async <T>(ask: () => Promise<T>): Promise<T> => {
    const until = performance.now() + FOUND_MS;
    for (;;) {
      try {
        return await ask();
      } catch (error) {
        if (network.name === 'svcd' || performance.now() > until) throw error;
      }
      await delay(ASK_AGAIN_MS);
    }
  };
  return { near, aid, acting, found };
}

/** Calls with a response of 1 KB: one alone, and concurrent ones with their rate and the CPU time of both nodes. */
export async function fetches(network: FeltNetwork, port: number): Promise<{ one: Step; many: Step }> {
  const { near, aid, acting, found } = await reached(network, port);
  const ask = () => call(near, 'POST', `/fetch/${aid}`, { ...acting, method: 'GET', path: '/1KB' });
  await found(ask);
  const cpu = (): number => network.nodes.slice(1, 3).reduce((sum, { pid }) => sum + cpuMs(pid), 0);
  return {
    async one() {
      const started = performance.now();
      await ask();
      return { 'fetch of 1 KB': performance.now() - started };
    },
    async many() {
      let left = CALLS_PER_ROUND;
      const [started, before] = [performance.now(), cpu()];
      const caller = async (): Promise<void> => {
        while (left-- > 0) await ask();
      };
      await Promise.all(Array.from({ length: PARALLEL }, caller));
      return {
        [`fetch of 1 KB, ${PARALLEL} in parallel, each`]: (performance.now() - started) / CALLS_PER_ROUND,
        'CPU of both daemons, each fetch': (cpu() - before) / CALLS_PER_ROUND,
      };
    },
  };
}

/**
 * Round trips of 64 bytes through a tunnel, and new connections to their first byte. `port` echoes connections that
 * begin with `e`.
 */
export async function tunnels(network: FeltNetwork, port: number): Promise<{ roundTrip: Step; connection: Step }> {
  const { near, aid, acting, found } = await reached(network, port);
  const { listen } = await found(() =>
    call(near, 'POST', `/tunnel/${aid}`, { ...acting, local_port: 0, idle_timeout_sec: 3600 }),
  );
  const at = { host: '127.0.0.1', port: Number(String(listen).split(':').at(-1)) };
  const socket = await dial(at);
  socket.write('e');
  await once(socket, 'data');
  return {
    async roundTrip() {
      const started = performance.now();
      let received = 0;
      const { promise, resolve } = Promise.withResolvers<void>();
      const onData = (chunk: Buffer): void => {
        received += chunk.length;
        if (received >= ROUND_TRIP.length) resolve();
      };
      socket.on('data', onData);
      socket.write(ROUND_TRIP);
      await promise;
      socket.off('data', onData);
      return { 'tunnel, round trip of 64 B': performance.now() - started };
    },
    async connection() {
      const started = performance.now();
      const fresh = connect({ ...at, noDelay: true });
      fresh.on('error', () => {});
      fresh.write('e');
      await once(fresh, 'data');
      const taken = performance.now() - started;
      fresh.destroy();
      return { 'tunnel, new connection to the first byte': taken };
    },
  };
}
