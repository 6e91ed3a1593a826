/** Whether a program may take the place of the service that an agent is bound to. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { SvcError } from '../foundation/errors.ts';
import { CHALLENGE_BYTES, CHALLENGE_HEADER, SERVICE_PROOF_HEADER, serviceProof } from '../foundation/service-proof.ts';
import { provenService } from './proven-caller.ts';

type Bound = Promise<{ readonly service_tcp: string }>;

/** What this needs of a client of the daemon. */
interface Agents {
  agentGet(input: { readonly aid: string }): Bound;
  agentCallerKey(input: { readonly aid: string }): Promise<{ readonly caller_key_hex: string }>;
  agentPatch(input: { readonly aid: string; readonly service_tcp: string; readonly temporary: boolean }): Bound;
}

/** How long a program of this machine may take to prove itself, milliseconds. */
const PROOF_MS = 2_000;

/** True if a program answers there and proves that it is the one that was bound; also if it does not answer in time. */
async function isRunning({ hostname, port }: URL, key: Uint8Array): Promise<boolean> {
  const challenge = randomBytes(CHALLENGE_BYTES).toString('hex');
  const signal = AbortSignal.timeout(PROOF_MS);
  const asking = request({
    host: hostname.replace(/^\[|\]$/g, ''),
    port,
    method: 'OPTIONS',
    path: '*',
    headers: { [CHALLENGE_HEADER]: challenge },
    agent: false,
    signal,
  });
  try {
    const answered = once(asking, 'response');
    asking.end();
    const [answer]: IncomingMessage[] = await answered;
    answer?.destroy();
    return answer?.headers[SERVICE_PROOF_HEADER.toLowerCase()] === serviceProof(key, challenge, Number(port));
  } catch {
    return signal.aborted;
  }
}

/** True where it belongs to a program that proved itself and is gone: it was killed before it could unbind itself. */
async function isLeftOver(api: Agents, aid: string, service: string): Promise<boolean> {
  const prefix = provenService('');
  const url = service.startsWith(prefix) ? URL.parse(`http://${service.slice(prefix.length)}`) : null;
  if (url === null) return false;
  const { caller_key_hex } = await api.agentCallerKey({ aid });
  return !(await isRunning(url, Buffer.from(caller_key_hex, 'hex')));
}

/**
 * The service that a new one would replace; null where there is none. What a killed program has left behind is unbound
 * first.
 * @param service what is to be bound; undefined where it is not known yet
 */
export async function replacedService(api: Agents, aid: string, service?: string): Promise<string | null> {
  const { service_tcp: bound } = await api.agentGet({ aid });
  if (bound === '' || bound === service) return null;
  if (!(await isLeftOver(api, aid, bound))) return bound;
  const { service_tcp: before } = await api.agentPatch({ aid, service_tcp: '', temporary: true });
  return before === '' || before === service ? null : before;
}

/** @param how what to do to replace it: `--replace` */
export function refuseToReplace(aid: string, bound: string, how: string): SvcError {
  return new SvcError('wrong_state', {
    message: `${aid} is bound to ${bound}. To replace it until the new service ends, ${how}.`,
    details: { service_tcp: bound },
  });
}
