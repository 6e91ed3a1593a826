/** Calls through the API, as a page in a browser sends them. */
import { fromBase64 } from '../../foundation/bytes.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { SvcApi } from './api.ts';
import type { SendCall } from './remote-agent.ts';
import { base64Of } from './text.ts';

/** Statuses of responses without a body (Fetch standard, "null body status"). */
const NO_BODY: ReadonlySet<number> = new Set([101, 103, 204, 205, 304]);

/** Sends calls through the API. A response is returned when it is complete. */
export function sendThroughApi(api: SvcApi): SendCall {
  return async ({ aid, as: local_aid, accessToken: access_token }, path, { method, headers, body, signal }) => {
    const body_base64 = body === undefined ? undefined : base64Of(body);
    // The caller limits the time with its signal.
    const input = { aid, path, method, headers, body_base64, local_aid, access_token, timeout_ms: 0 };
    const answer = await api.fetch(input, signal === undefined ? {} : { signal });
    if (answer.truncated)
      throw new SvcError('too_large', {
        message: 'The response is too long for the API. Use url() and fetch it there.',
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
