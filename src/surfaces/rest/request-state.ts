import type { IncomingMessage } from 'node:http';
import type { Upgrade } from '../../operations/handlers/exchange.ts';
import type { AdmittedRequest } from './gate.ts';

/** State of a request outside its HTTP message. */
export interface RequestState {
  readonly admission: AdmittedRequest;
  /** Set if the client requests a WebSocket. */
  readonly upgrade: Upgrade | undefined;
  /** Called for each tool call, if an audit log is written. */
  readonly audit: ((tool: string) => void) | undefined;
  /** Name of the operation; empty until a route matched. */
  operation: string;
}

/** State of the requests in progress. Entries are garbage-collected with the request. */
export class RequestStates extends WeakMap<IncomingMessage, RequestState> {
  /** @throws Error if the request did not pass the gate; such requests must not be served */
  of(request: IncomingMessage): RequestState {
    const state = this.get(request);
    if (state === undefined) throw new Error('a request was not checked by the gate');
    return state;
  }
}
