/**
 * Marks of the agents that a call has passed. A service may be a local address of another agent, so a call can come back
 * to where it was. The called node puts a mark into the request for its service, a local address hands it on, and a call
 * that carries the mark of the called agent already is refused. See docs/protocol-calls.md, "Loops".
 */
import { createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { SvcError } from '../../foundation/errors.ts';
import { pairs, type RawHeaders } from './headers.ts';

const HOPS_HEADER = 'Svc-Hops';
/** Agents that one call may pass. */
export const MAX_HOPS = 16;
/** Characters of a mark: 64 bits in hex. Only the node that made it can tell whose it is. */
const MARK_CHARS = 16;
const MARK = new RegExp(`^[0-9a-f]{${MARK_CHARS}}$`);

/** The marks of a request, oldest first; what is not a mark is left out. */
function marksOf(raw: RawHeaders): string[] {
  const marks: string[] = [];
  for (const [name, value] of pairs(raw))
    if (name.toLowerCase() === 'svc-hops') marks.push(...value.split(',').map((mark) => mark.trim()));
  return marks.filter((mark) => MARK.test(mark)).slice(0, MAX_HOPS);
}

/** The header that a local address or the gateway hands on; none for a request without marks. */
export function hopsPassedOn({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): string[] {
  const marks = marksOf(rawHeaders);
  return marks.length === 0 ? [] : [HOPS_HEADER, marks.join(', ')];
}

/**
 * The header for the service of the called agent.
 * @param key of the proofs to that service
 * @throws SvcError `loop_detected` if the call was here before, or passed too many agents
 */
export function hopsWith(key: Uint8Array, { rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>): string[] {
  // protocol-calls.md, step 5
  const mark = createHmac('sha256', key).update('svcd hop 1').digest('hex').slice(0, MARK_CHARS);
  const marks = marksOf(rawHeaders);
  if (marks.includes(mark) || marks.length >= MAX_HOPS) throw new SvcError('loop_detected');
  return [HOPS_HEADER, [...marks, mark].join(', ')];
}
