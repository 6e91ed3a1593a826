/**
 * Loop detection by marks of the agents that a call has passed. A service may be the local address of another agent, so
 * a call can return to an agent. The called node adds its mark to the request for its service, and a local address
 * passes the marks on. A call that already carries the mark of the called agent is rejected. See
 * docs/protocol-calls.md, "Loops".
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { SvcError } from '../../foundation/errors.ts';
import { memoizeByObject } from '../../foundation/lazy.ts';
import { headerOf, pairs, type RawHeaders } from './headers.ts';

const HOPS_HEADER = 'Svc-Hops';
/** Agents that one call may pass. */
export const MAX_HOPS = 16;
/** Characters of a mark: 64 bits in hex. Only the node that made a mark can tell which agent it stands for. */
const MARK_CHARS = 16;
const MARK = new RegExp(`^[0-9a-f]{${MARK_CHARS}}$`);

/** The mark of the agent with a key. */
const ownMark = memoizeByObject((key: Uint8Array) => ({
  mark: createHmac('sha256', key).update('svcd hop 1').digest('hex').slice(0, MARK_CHARS),
}));

/** The marks of a request, oldest first. Invalid marks are skipped. */
function marksOf(raw: RawHeaders): string[] {
  if (headerOf(raw, 'svc-hops') === undefined) return [];
  const marks: string[] = [];
  for (const [name, value] of pairs(raw))
    if (name.toLowerCase() === 'svc-hops') marks.push(...value.split(',').map((mark) => mark.trim()));
  return marks.filter((mark) => MARK.test(mark)).slice(0, MAX_HOPS);
}

/** The header that a local address or the gateway passes on; empty for a request without marks. */
export function forwardedHops({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): string[] {
  const marks = marksOf(rawHeaders);
  return marks.length === 0 ? [] : [HOPS_HEADER, marks.join(', ')];
}

/**
 * The header for the service of the called agent.
 * @param key proof key of that service
 * @throws SvcError `loop_detected` if the call already passed this agent, or passed too many agents
 */
export function appendHop(key: Uint8Array, { rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): string[] {
  // protocol-calls.md, step 5
  const { mark } = ownMark(key);
  const marks = marksOf(rawHeaders);
  if (marks.includes(mark) || marks.length >= MAX_HOPS) throw new SvcError('loop_detected');
  return [HOPS_HEADER, [...marks, mark].join(', ')];
}
