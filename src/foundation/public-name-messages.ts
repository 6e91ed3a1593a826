/** Messages between the node of an agent and an entry: docs/protocol-public.md. */
import { CborMap, fromBytes, nullable, text, toBytes, uint, word } from './cbor-map.ts';
import { isEntryToken, isPublicName, MAX_PUBLIC_NAME_CHARS, NAME_LEASE_DAYS } from './domain/public-names.ts';
import { MAX_PORT } from './domain/tunnels.ts';
import { canonicalIp } from './ip.ts';

/** Longest message, bytes. */
export const MAX_NAME_MESSAGE_BYTES = 512;

/** Why an entry refuses a name. */
export const NAME_VERDICTS = ['ok', 'taken', 'not_below', 'invalid', 'denied', 'full'] as const;
export type NameVerdict = (typeof NAME_VERDICTS)[number];

const anyName = text((name) => name.length <= MAX_PUBLIC_NAME_CHARS && /^[!-~]*$/.test(name));

const REQUEST = new CborMap(
  {
    action: ['a', word(['claim', 'release'])],
    /** A label below the first domain of the entry, or a whole name. */
    name: ['n', anyName],
    /** The token of an invitation. */
    token: ['t', nullable(text(isEntryToken))],
  },
  { version: 1, isOpen: true },
);

const ANSWER = new CborMap(
  {
    verdict: ['s', word(NAME_VERDICTS)],
    /** The whole name. */
    name: ['n', anyName],
    leaseDays: ['d', uint(NAME_LEASE_DAYS * 100)],
  },
  { isOpen: true },
);

const CONNECTION = new CborMap(
  {
    name: ['n', text(isPublicName)],
    clientAddress: ['a', text((address) => canonicalIp(address) === address)],
    clientPort: ['p', uint(MAX_PORT)],
  },
  { version: 1, isOpen: true },
);

export type NameRequest = ReturnType<typeof REQUEST.decode>;
export type NameAnswer = ReturnType<typeof ANSWER.decode>;
export type ConnectionHeader = ReturnType<typeof CONNECTION.decode>;

function framed(body: Uint8Array): Uint8Array {
  return Buffer.concat([Uint8Array.of(body.length >>> 8, body.length & 0xff), body]);
}

/** Each encodes a message with its length. */
export function encodeNameRequest(request: NameRequest): Uint8Array {
  return framed(toBytes(REQUEST, request));
}

export function encodeNameAnswer(answer: NameAnswer): Uint8Array {
  return framed(toBytes(ANSWER, answer));
}

export function encodeConnection(header: ConnectionHeader): Uint8Array {
  return framed(toBytes(CONNECTION, header));
}

/** Each decodes a message without its length; null if it is malformed. */
export function decodeNameRequest(bytes: Uint8Array): NameRequest | null {
  return fromBytes(REQUEST, bytes, MAX_NAME_MESSAGE_BYTES);
}

export function decodeNameAnswer(bytes: Uint8Array): NameAnswer | null {
  return fromBytes(ANSWER, bytes, MAX_NAME_MESSAGE_BYTES);
}

export function decodeConnection(bytes: Uint8Array): ConnectionHeader | null {
  return fromBytes(CONNECTION, bytes, MAX_NAME_MESSAGE_BYTES);
}
