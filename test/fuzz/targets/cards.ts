/** Cards of A2A and MCP agents, as received from services and nodes. */
import { isDeepStrictEqual } from 'node:util';
import { hostOfUrl, isPublicHost } from '../../../src/foundation/address.ts';
import { rewriteAddresses } from '../../../src/foundation/cards/addresses.ts';
import { canonicalJson } from '../../../src/foundation/cards/canonical-json.ts';
import { type Card, readCard } from '../../../src/foundation/cards/card.ts';
import { signCard, unsigned, verifyCard } from '../../../src/foundation/cards/signature.ts';
import { verifyDelegation } from '../../../src/foundation/identity/delegation-verifier.ts';
import { isObject } from '../../../src/foundation/json.ts';
import { localIdentity } from '../../support/identities.ts';
import { testAgent } from '../engine/agents.ts';
import { bytesOf, decoder, violation } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const T0 = Date.UTC(2026, 0, 1) / 1000;
const alice = testAgent(1);
const HERE = 'http://127.0.0.1:40123';
const SERVICE = { host: '127.0.0.1', port: 41241, tunnels: { host: '127.0.0.1', port: 50051 } };
const PLACE = { aid: alice.aid, service: SERVICE, to: HERE };
const INTERFACES = ['supportedInterfaces', 'additionalInterfaces', 'remotes'];
const WORDS = [
  ...['"url":', '"tokenUrl":', '"supportedInterfaces":', '"signatures":', '"jku":', '"iat":', '"kid":', '"header":'],
  ...[
    'http://',
    'https://',
    '//',
    '\\\\',
    '\\u',
    '@',
    ':41241',
    'localhost',
    '169.254.169.254',
    '[::1]',
    'svc://',
    '{',
    ']',
  ],
];
const A2A: Card = {
  name: 'x',
  supportedInterfaces: [{ url: 'http://localhost:41241/a2a', protocolBinding: 'JSONRPC' }],
  skills: [{ id: 'a', tags: [] }],
};
const OLD: Card = {
  protocolVersion: '0.3.0',
  url: `svc://${alice.aid}/rpc`,
  additionalInterfaces: [{ url: 'localhost:41241', transport: 'GRPC' }],
  provider: { url: 'https://words.example/' },
};

function isHere(text: string): boolean {
  return URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`)?.origin === HERE;
}

/** The addresses of the interfaces of a card. */
function interfaces(card: Card): unknown[] {
  const lists = INTERFACES.flatMap((key) => {
    const list = card[key];
    return Array.isArray(list) ? list : [];
  });
  return [
    'url' in card ? card['url'] : HERE,
    ...lists.flatMap((one: unknown) => (isObject(one) && 'url' in one ? [one['url']] : [])),
  ];
}

/** Each text in a value, with its member name. */
function* texts(value: unknown, key = ''): Generator<[key: string, text: string]> {
  if (typeof value === 'string') yield [key, value];
  else if (Array.isArray(value)) for (const item of value) yield* texts(item, key);
  else if (isObject(value)) for (const [name, member] of Object.entries(value)) yield* texts(member, name);
}

const addresses = decoder({
  name: 'card-addresses',
  inputs: 4000,
  edit: () => null,
  words: WORDS,
  refuses: ['bad_card'],
  seeds: () => bytesOf(JSON.stringify(A2A), JSON.stringify(OLD)),
  decode: (bytes) => rewriteAddresses(readCard(bytes), PLACE).card,
  check: (card) => {
    for (const one of interfaces(card))
      if (typeof one !== 'string' || !isHere(one)) throw violation('an interface points elsewhere', one);
    for (const [key, text] of texts(card)) {
      const url = /url$/i.test(key) ? URL.parse(text) : null;
      const leads = url !== null && /^(?:https?|wss?):$/.test(url.protocol) && hostOfUrl(url) !== '';
      if (leads && !isHere(text) && !isPublicHost(url)) throw violation('an address points to a special network', text);
    }
  },
});

const signed = signCard(A2A, localIdentity(alice), T0);

const signatures = decoder({
  name: 'card-signature',
  inputs: 2000,
  edit: () => null,
  words: WORDS,
  refuses: ['bad_card'],
  seeds: () => bytesOf(JSON.stringify(signed)),
  decode: (bytes) => {
    const card = readCard(bytes);
    const check = { aid: alice.aid, now: T0, newestDelegation: 0, newestCard: 0, verifyDelegation };
    verifyCard(card, check);
    return card;
  },
  check: (card) => {
    canonicalJson(card);
    if (!isDeepStrictEqual(unsigned(card), unsigned(signed))) throw violation('an unsigned card', card);
  },
});

export const cardTargets: readonly FuzzTarget[] = [addresses, signatures];
