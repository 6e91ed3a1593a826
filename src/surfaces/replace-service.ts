/** Decides whether a program may replace the present service of an agent. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { SvcError } from '../foundation/errors.ts';
import { CHALLENGE_BYTES, CHALLENGE_HEADER, SERVICE_PROOF_HEADER, serviceProof } from '../foundation/service-proof.ts';
import { provenService } from './proven-caller.ts';

type Bound = Promise<{ readonly service_tcp: string }>;

/** The required operations of the daemon. */
interface Agents {
  agentGet(input: { readonly aid: string }): Bound;
  agentCallerKey(input: { readonly aid: string }): Promise<{ readonly caller_key_hex: string }>;
  agentPatch(input: { readonly aid: string; readonly service_tcp: string; readonly temporary: boolean }): Bound;
}

/** Deadline for the proof of a local program, milliseconds. */
const PROOF_MS = 2_000;

/** True if the bound program responds with a valid proof, or does not respond in time. */
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

/** True if the binding is of a proven program that was killed before it could unbind itself. */
async function isStaleBinding(api: Agents, aid: string, service: string): Promise<boolean> {
  const prefix = provenService('');
  const url = service.startsWith(prefix) ? URL.parse(`http://${service.slice(prefix.length)}`) : null;
  if (url === null) return false;
  const { caller_key_hex } = await api.agentCallerKey({ aid });
  return !(await isRunning(url, Buffer.from(caller_key_hex, 'hex')));
}

/**
 * The service that a new one would replace, or null. A binding of a killed program is removed first.
 * @param service the new service; undefined if not known yet
 */
export async function replacedService(api: Agents, aid: string, service?: string): Promise<string | null> {
  const { service_tcp: bound } = await api.agentGet({ aid });
  if (bound === '' || bound === service) return null;
  if (!(await isStaleBinding(api, aid, bound))) return bound;
  const { service_tcp: before } = await api.agentPatch({ aid, service_tcp: '', temporary: true });
  return before === '' || before === service ? null : before;
}

/** @param how instruction for a replacement, such as `--replace` */
export function replacementRequired(aid: string, bound: string, how: string): SvcError {
  return new SvcError('wrong_state', {
    message: `${aid} is bound to ${bound}. To replace it, ${how}.`,
    details: { service_tcp: bound },
  });
}
