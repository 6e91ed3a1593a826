/** Who answers what other nodes ask on the way to a third one: this node as their helper, or as the one that is called. */
import { SvcError } from '../../foundation/errors.ts';
import type { NodeRequestHandler } from '../node-requests.ts';
import { isStraight } from '../transport/path.ts';
import type { Helper } from './helper.ts';
import type { PunchResponder } from './punch-responder.ts';
import { decodeIntroduction, encodeIntroductionAnswer } from './signals.ts';

interface SignalAnswersDependencies {
  readonly helper: Pick<Helper, 'answer'>;
  readonly called: Pick<PunchResponder, 'answer'>;
  /** Whether this node helps others: it wants to, and strangers reach it. */
  readonly helps: () => boolean;
}

/** Answers requests of kind 'signal'. Where others are seen is how their packets come to us, never what they say. */
export function signalAnswers({ helper, called, helps }: SignalAnswersDependencies): NodeRequestHandler {
  return async (body, { nodeKey, path }) => {
    // Where a relay or a punched port is seen is not where the node is.
    if (!isStraight(path)) throw new SvcError('access_denied');
    const from = { nodeKey, address: path.remote };
    const introduction = decodeIntroduction(body);
    if (introduction !== null) return encodeIntroductionAnswer(await called.answer(introduction, from));
    if (!helps()) throw new SvcError('access_denied');
    return await helper.answer(body, from);
  };
}
