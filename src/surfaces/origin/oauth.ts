/**
 * OAuth at a local address. In metadata and challenges (RFC 9728, RFC 8414) a server uses the address on its own
 * machine. A client compares it with the address that it calls, and would connect to another program at that address on
 * this machine.
 */
import type { IncomingMessage } from 'node:http';
import type { CallResponse } from '../../capabilities/calls/http-caller.ts';
import { readBytes } from '../rest/json-body.ts';
import type { ReshapedResponse } from '../rest/remote-call.ts';
import type { ResponsePlace } from '../rest/remote-headers.ts';
import { withBody } from './cards.ts';
import { isMetadataPath, MAX_METADATA_BYTES, withOwnAddresses, withOwnChallenge } from './oauth-addresses.ts';

/** True if a request is for OAuth metadata. */
export function isMetadataRequest({ method, url = '' }: IncomingMessage): boolean {
  const [path = ''] = url.split('?', 1);
  return method === 'GET' && isMetadataPath(path);
}

/** Translates a URL of the server to one below the local address. */
function leads({ host }: ResponsePlace): (url: URL) => string {
  return ({ pathname, search }) => `http://${host ?? ''}${pathname}${search}`;
}

/** Translates a challenge for the client. */
export function localChallenge(header: string, place: ResponsePlace): string {
  return withOwnChallenge(header, leads(place));
}

/**
 * Translated metadata. Null for responses without metadata.
 * @throws SvcError `too_large`
 */
export async function withLocalMetadata(
  { status, headers, body }: CallResponse,
  place: ResponsePlace,
): Promise<ReshapedResponse | null> {
  if (status !== 200) return null;
  const text = (await readBytes(body, MAX_METADATA_BYTES)).toString();
  return withBody(headers, withOwnAddresses(text, leads(place)));
}
