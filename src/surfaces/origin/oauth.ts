/**
 * OAuth at a local address: a server names itself in its metadata and its challenges (RFC 9728, RFC 8414) by the address
 * that it has on its own machine. A client compares that with the address that it calls, and would go on to whatever
 * listens there on this machine.
 */
import type { IncomingMessage } from 'node:http';
import type { CallAnswer } from '../../capabilities/calls/http-caller.ts';
import { readBytes } from '../rest/json-body.ts';
import type { Reshaped } from '../rest/remote-call.ts';
import type { AnswerPlace } from '../rest/remote-headers.ts';
import { withBody } from './cards.ts';
import { isMetadataPath, MAX_METADATA_BYTES, withOwnAddresses, withOwnChallenge } from './oauth-addresses.ts';

/** True where a request asks for metadata of OAuth. */
export function asksForMetadata({ method, url = '' }: IncomingMessage): boolean {
  const [path = ''] = url.split('?', 1);
  return method === 'GET' && isMetadataPath(path);
}

/** An address of the server on its machine as one below the local address. */
function leads({ host }: AnswerPlace): (url: URL) => string {
  return ({ pathname, search }) => `http://${host ?? ''}${pathname}${search}`;
}

/** A challenge as the client has to get it. */
export function localChallenge(header: string, place: AnswerPlace): string {
  return withOwnChallenge(header, leads(place));
}

/**
 * Metadata that leads here; null for answers that hold none.
 * @throws SvcError `too_large`
 */
export async function withLocalMetadata(
  { status, headers, body }: CallAnswer,
  place: AnswerPlace,
): Promise<Reshaped | null> {
  if (status !== 200) return null;
  const text = (await readBytes(body, MAX_METADATA_BYTES)).toString();
  return withBody(headers, withOwnAddresses(text, leads(place)));
}
