/** Success of honest users and programs during a flood: number of attempts, and number served. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Address } from '../../src/foundation/address.ts';
import { serviceKey } from '../../src/foundation/records/keys.ts';
import { COMMAND, encodeFindRequest } from '../../src/network/records/messages.ts';
import { rawRequest } from '../../test/support/hostile-dht.ts';

/** A longer wait counts as not served, milliseconds. */
const ATTEMPT_TIMEOUT_MS = 5000;
/** Another address of this machine, for honest requests. */
export const HONEST_HOST = '127.0.0.2';

/** Makes one attempt. True if it was served. */
export type Attempt = (signal: AbortSignal) => Promise<boolean>;

export class Served {
  asked = 0;
  served = 0;
  /** Milliseconds each. */
  readonly times: number[] = [];

  get share(): number {
    return this.asked === 0 ? 0 : this.served / this.asked;
  }
}

/** Sends a request every `everyMs`, even if responses are late, until the signal. Resolves with the last response. */
export async function keepAsking(attempt: Attempt, everyMs: number, until: AbortSignal): Promise<Served> {
  const result = new Served();
  const started = performance.now();
  const running: Promise<void>[] = [];
  const one = async (due: number): Promise<void> => {
    result.asked++;
    const served = await attempt(AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)).catch(() => false);
    result.times.push(performance.now() - due);
    if (served) result.served++;
  };
  for (let i = 0; !until.aborted; i++) {
    const due = started + i * everyMs;
    while (performance.now() < due) await delay(due - performance.now());
    running.push(one(due));
  }
  await Promise.all(running);
  return result;
}

/** GET with status 200, on a keep-alive or a new connection. */
export function httpGet(url: URL, agent: Agent | false): Attempt {
  return (signal) =>
    new Promise((resolve, reject) => {
      const asking = request(url, { agent, signal }, (answer) => {
        answer
          .resume()
          .once('end', () => resolve(answer.statusCode === 200))
          .once('error', reject);
      });
      asking.once('error', reject).end();
    });
}

/** Asks the record network of a daemon for a service, from the honest address. */
export async function recordQuestion(dht: Address, service: string): Promise<{ ask: Attempt; close: () => void }> {
  const socket = createSocket('udp4');
  socket.bind(0, HONEST_HOST);
  await once(socket, 'listening');
  const value = encodeFindRequest({ types: [], wantsRecords: true });
  const question = rawRequest(dht, { command: COMMAND.find, target: serviceKey(service), value }, '');
  return {
    async ask(signal) {
      const answer = once(socket, 'message', { signal });
      socket.send(question, dht.port, dht.host);
      await answer;
      return true;
    },
    close: () => socket.close(),
  };
}
