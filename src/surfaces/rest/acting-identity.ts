/** The identity with which a request goes to a remote node. Its headers may name a local agent and an access token. */
import type { IncomingHttpHeaders } from 'node:http';
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import { VIA_HEADERS } from '../../operations/via-headers.ts';

export interface LocalIdentities {
  /** The node's own identity, used if no agent is named. */
  readonly nodeAid: Aid;
  /** @throws SvcError `not_found` if it is not an agent of this daemon */
  readonly requireLocal: (aid: Aid) => void;
}

/** The caller and the access token that it presents to the remote access list. */
export interface ActingIdentity {
  readonly local: Aid;
  readonly accessToken: string | undefined;
}

function single(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** @throws SvcError `bad_aid`, `not_found` */
export function actingIdentity(
  headers: IncomingHttpHeaders,
  { nodeAid, requireLocal }: LocalIdentities,
): ActingIdentity {
  const named = single(headers, VIA_HEADERS.localAid);
  const local = named === undefined ? nodeAid : parseAid(named);
  if (local !== nodeAid) requireLocal(local);
  return { local, accessToken: single(headers, VIA_HEADERS.accessToken) };
}
