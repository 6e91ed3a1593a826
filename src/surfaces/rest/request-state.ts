import type { IncomingMessage } from 'node:http';
import type { Upgrade } from '../../operations/handlers/exchange.ts';
import type { AdmittedRequest } from './gate.ts';

/** What is known of a request beside its own text. */
export interface RequestState {
  readonly admission: AdmittedRequest;
  /** Where the client asks for a WebSocket. */
  readonly upgrade: Upgrade | undefined;
  /** Hears of each tool that it calls, where that is written down. */
  readonly audit: ((tool: string) => void) | undefined;
  /** Name of the declaration that serves it; empty until a route was found. */
  operation: string;
}

/** The state of the requests under way, forgotten with them. */
export class RequestStates extends WeakMap<IncomingMessage, RequestState> {
  /** @throws Error for a request that did not pass the gate: none of those may be served */
  of(request: IncomingMessage): RequestState {
    const state = this.get(request);
    if (state === undefined) throw new Error('a request went past the gate');
    return state;
  }
}
