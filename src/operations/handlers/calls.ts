/** The handler of calls. */
import type { FetchRequest } from '../../capabilities/calls/fetch-request.ts';
import type { FetchResult } from '../../capabilities/calls/fetch-service.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import type { callOperations } from '../calls.ts';
import type { Handlers } from '../operation.ts';

export interface CallHandlerDependencies {
  readonly fetch: (request: FetchRequest, signal: AbortSignal) => Promise<FetchResult>;
  /** The local agent that acts: the named one, or the only one; see docs/concepts.md. */
  readonly localAid: (named: Aid | undefined) => Aid;
}

export function callHandlers({ fetch, localAid }: CallHandlerDependencies): Handlers<typeof callOperations> {
  return {
    fetch: (input, { signal }) =>
      fetch(
        {
          remote: input.aid,
          local: localAid(input.local_aid),
          method: input.method,
          path: input.path,
          headers: input.headers,
          bodyBase64: input.body_base64,
          accessToken: input.access_token,
          timeoutMs: input.timeout_ms,
        },
        signal,
      ),
  };
}
