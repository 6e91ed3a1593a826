/** Dispatches signal requests to the two roles of this node: helper and called node. */
import type { Address } from '../../foundation/address.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { NodeRequestHandler } from '../node-requests.ts';
import { isStraight } from '../transport/path.ts';
import type { Helper } from './helper.ts';
import type { PunchResponder } from './punch-responder.ts';
import { decodeIntroduction, encodeIntroductionAnswer } from './signals.ts';

/**
 * Answers requests of kind 'signal'. A caller's address is the source of its packets, never its own claim.
 * @param helper null if this node does not help others
 * @param seenAt the address that others see, for the source of a connection; lent ports of this node have another one
 */
export function signalHandler(
  helper: Pick<Helper, 'answer'> | null,
  called: Pick<PunchResponder, 'answer'>,
  seenAt: (source: Address) => Address = (source) => source,
): NodeRequestHandler {
  return async (body, { nodeKey, path }) => {
    // On a relayed or punched path, the source address is not one at which the node is reachable.
    if (!isStraight(path)) throw new SvcError('access_denied');
    const from = { nodeKey, address: seenAt(path.remote), source: path.source };
    const introduction = decodeIntroduction(body);
    if (introduction !== null) return encodeIntroductionAnswer(await called.answer(introduction, from));
    if (helper === null) throw new SvcError('access_denied');
    return await helper.answer(body, from);
  };
}
