/** The handler of calls. */
import type { EvidenceSetting } from '../../capabilities/agents/evidence-setting.ts';
import type { FetchRequest, FetchResult } from '../../capabilities/calls/fetch-service.ts';
import { toBase64 } from '../../foundation/base64.ts';
import type { CollectedBytes } from '../../foundation/collected-bytes.ts';
import type { callOperations, evidenceOperations } from '../calls.ts';
import type { CallContext, Handlers } from '../operation.ts';
import type { ActingAgent } from './local-agents.ts';

// Handlers of the evidence operations.

interface EvidenceHandlerDependencies {
  readonly evidence: EvidenceSetting;
}

export function evidenceHandlers({ evidence }: EvidenceHandlerDependencies): Handlers<typeof evidenceOperations> {
  return {
    evidenceGet: ({ aid }) => ({ aid, enabled: evidence.get(aid) }),
    evidenceSet: ({ aid, enabled }) => {
      evidence.set(aid, enabled);
      return { aid, enabled: evidence.get(aid) };
    },
  };
}

export interface CallHandlerDependencies extends ActingAgent {
  readonly fetch: (request: FetchRequest, signal: AbortSignal) => Promise<FetchResult>;
}

/** From this size, the surface writes bodies into the response itself, if it can. Bytes. */
const LONG_BODY_BYTES: number = 48 * 1024;

/** The base64 of a body, or its placeholder. */
function bodyText(body: CollectedBytes, context: CallContext): string {
  if (body.length >= LONG_BODY_BYTES && context.inline !== undefined) return context.inline(body);
  const text = toBase64(body.bytes());
  body.free();
  return text;
}

export function callHandlers({ fetch, localAid }: CallHandlerDependencies): Handlers<typeof callOperations> {
  return {
    fetch: async (input, context) => {
      const { status, headers, bytes, truncated } = await fetch(
        {
          remote: input.aid,
          local: localAid(input.local_aid),
          method: input.method,
          path: input.path,
          headers: input.headers,
          bodyBase64: input.body_base64,
          accessToken: input.access_token,
          note: input.note,
          waitS: input.wait_s,
          trace: context.trace,
          timeoutMs:
            input.timeout_ms ?? (input.timeout_s === undefined ? undefined : Math.round(input.timeout_s * 1000)),
        },
        context.signal,
      );
      return { status, headers, body: bodyText(bytes, context), truncated };
    },
  };
}
