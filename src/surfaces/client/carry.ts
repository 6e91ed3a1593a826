/** Calls through the API itself: what a page in a browser can do. */
import { fromBase64 } from '../../foundation/bytes.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { SvcApi } from './api.ts';
import type { Carry } from './remote-agent.ts';
import { base64Of } from './text.ts';

/** Statuses whose answers have no body (Fetch standard, "null body status"). */
const NO_BODY: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** Carries calls in one piece: an answer is there when it is whole. */
export function carryThrough(api: SvcApi): Carry {
  return async ({ aid, as: local_aid, accessToken: access_token }, path, { method, headers, body, signal }) => {
    const body_base64 = body === undefined ? undefined : base64Of(body);
    // The program ends a call by its signal.
    const input = { aid, path, method, headers, body_base64, local_aid, access_token, timeout_ms: 0 };
    const answer = await api.fetch(input, signal === undefined ? {} : { signal });
    if (answer.truncated)
      throw new SvcError('too_large', {
        message: 'The answer is longer than the API gives in one piece: use url() and fetch it there.',
      });
    const held = Object.entries(answer.headers).flatMap(([name, values]) =>
      values.map((one): [string, string] => [name, one]),
    );
    const bytes = fromBase64(answer.body) ?? new Uint8Array();
    return new Response(NO_BODY.has(answer.status) ? null : new Uint8Array(bytes), {
      status: answer.status,
      headers: held,
    });
  };
}
