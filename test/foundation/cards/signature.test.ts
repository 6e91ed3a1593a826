/** Signed cards that verify here and with the A2A SDK, and rejected ones. */
import assert from 'node:assert/strict';
import { createPublicKey } from 'node:crypto';
import { test } from 'node:test';
import { type AgentCard, verifyAgentCardSignature } from '@a2a-js/sdk';
import fc from 'fast-check';
import type { Card, CardFault } from '../../../src/foundation/cards/card.ts';
import {
  type CardCheck,
  checkSignatures,
  readHeader,
  signCard,
  toBase64url,
  verifyCard,
} from '../../../src/foundation/cards/signature.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import { verifyDelegation } from '../../../src/foundation/identity/delegation-verifier.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';
import { memberOf } from '../../../src/foundation/json.ts';
import { delegateAnew, localIdentity, newIdentity, type TestIdentity } from '../../support/identities.ts';

const T0 = Date.UTC(2026, 0, 1) / 1000;
const CARD = {
  name: 'Übersetzer',
  description: 'Translates between 40 languages.',
  version: '1.0.0',
  supportedInterfaces: [{ url: 'svc://aid/a2a', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  capabilities: { streaming: true, pushNotifications: false },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [{ id: 't', name: 'Translate', description: 'x', tags: ['language'] }],
};

function checkOf(who: TestIdentity, more: Partial<CardCheck> = {}): CardCheck {
  return { aid: who.aid, now: T0 + 100, newestDelegation: 0, newestCard: 0, verifyDelegation, ...more };
}

function refused(work: () => unknown, reason: CardFault, what: string = reason): void {
  assert.throws(work, (error) => {
    assert.ok(error instanceof SvcError, String(error));
    assert.deepEqual([error.code, error.details?.['reason']], ['bad_card', reason], `${what}: ${error.message}`);
    return true;
  });
}

/** The card with its first signature changed. */
function changed(card: Card, change: (entry: Record<string, unknown>) => Record<string, unknown>): Card {
  const entry = memberOf(card, 'signatures', '0');
  assert.ok(typeof entry === 'object' && entry !== null);
  return { ...card, signatures: [change({ ...entry })] };
}

function withHead(card: Card, more: object): Card {
  return changed(card, (entry) => {
    const head = readHeader({ protected: String(entry['protected']) });
    return { ...entry, protected: toBase64url(JSON.stringify({ ...head, ...more })) };
  });
}

/** Verifies like the SDK, with the key next to the signature. */
async function bySdk(card: Card, who: TestIdentity): Promise<void> {
  const x = toBase64url(who.operational.publicKey);
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  const sdkCard: AgentCard = JSON.parse(JSON.stringify(card));
  await verifyAgentCardSignature(async (kid) => {
    assert.equal(kid, who.aid);
    return key;
  })(sdkCard);
}

test('a signed card verifies, with the official SDK too', async () => {
  const alice = newIdentity();
  const card = signCard(CARD, localIdentity(alice), T0);
  assert.deepEqual(verifyCard(card, checkOf(alice)), { signedAt: T0, delegation: alice.delegation });
  assert.equal(memberOf(card, 'signatures', 'length'), 1);
  await bySdk(card, alice);
  await assert.rejects(bySdk({ ...card, name: 'Other' }, alice));
});

test('a card with empty members verifies as it is, and with the SDK, which leaves them out', async () => {
  const alice = newIdentity();
  const holes = {
    ...CARD,
    iconUrl: '',
    skills: [{ ...CARD.skills[0], tags: [] }],
    securityRequirements: [{ schemes: { a: {} } }],
  };
  const card = signCard(holes, localIdentity(alice), T0);
  assert.equal(memberOf(card, 'signatures', 'length'), 2);
  assert.equal(verifyCard(card, checkOf(alice)).signedAt, T0);
  await bySdk(card, alice);
  // The first signature covers the members that the second one omits.
  refused(() => verifyCard({ ...card, securityRequirements: [] }, checkOf(alice)), 'bad_signature');
});

test('the attack table', () => {
  const alice = newIdentity();
  const mallory = newIdentity();
  const card = signCard(CARD, localIdentity(alice), T0);
  const rotated = delegateAnew(alice.master, T0 + 50);
  const short = delegateAnew(alice.master, T0, T0 + 10);
  const forged = { ...localIdentity(mallory), aid: alice.aid };
  const stolen = { ...localIdentity(mallory), aid: alice.aid, delegation: alice.delegation };
  const check = checkOf(alice);
  const table: readonly (readonly [string, Card, CardFault, CardCheck?])[] = [
    ['no signature', CARD, 'unsigned'],
    ['an empty list of signatures', { ...CARD, signatures: [] }, 'unsigned'],
    ['signatures of another form', { ...CARD, signatures: {} }, 'bad_signature'],
    ['too many signatures', { ...CARD, signatures: Array.from({ length: 9 }, () => ({})) }, 'bad_signature'],
    ['a changed name', { ...card, name: 'x' }, 'bad_signature'],
    ['an added member', { ...card, url: 'http://127.0.0.1/' }, 'bad_signature'],
    ['a foreign trust root', withHead(card, { jku: 'https://evil.example/keys' }), 'foreign_root'],
    ['another key', withHead(card, { jwk: { kty: 'OKP' } }), 'foreign_root'],
    [
      'an additional trust root',
      changed(card, (e) => ({ ...e, header: { jku: 'https://evil.example' } })),
      'foreign_root',
    ],
    ['a swapped card', signCard(CARD, localIdentity(mallory), T0), 'swapped'],
    ["another's delegation", signCard(CARD, forged, T0), 'swapped'],
    ['another key under the delegation of Alice', signCard(CARD, stolen, T0), 'bad_signature'],
    [
      'a key ID changed to that of Alice',
      withHead(signCard(CARD, localIdentity(mallory), T0), { kid: alice.aid }),
      'swapped',
    ],
    ['no algorithm', withHead(card, { alg: 'none' }), 'bad_signature'],
    ['a critical header', withHead(card, { crit: ['x'], x: 1 }), 'bad_signature'],
    ['a later time written in', withHead(card, { iat: T0 + 1 }), 'bad_signature'],
    ['no time', withHead(card, { iat: undefined }), 'bad_signature'],
    ['no delegation', changed(card, (e) => ({ ...e, header: {} })), 'bad_signature'],
    ['a cut signature', changed(card, (e) => ({ ...e, signature: 'AAAA' })), 'bad_signature'],
    ['from the future', signCard(CARD, localIdentity(alice), T0 + 1000), 'bad_signature'],
    ['a rotated key', card, 'replayed', checkOf(alice, { newestDelegation: rotated.delegation.issuedAt })],
    ['older than the one known', card, 'replayed', checkOf(alice, { newestCard: T0 + 1 })],
    ['an ended delegation', signCard(CARD, localIdentity(short), T0), 'expired'],
  ];
  for (const [what, attack, reason, otherCheck = check] of table)
    refused(() => verifyCard(attack, otherCheck), reason, what);
});

test('additional signatures of others have no effect', () => {
  const alice = newIdentity();
  const card = signCard(CARD, localIdentity(alice), T0);
  const other = {
    protected: toBase64url(JSON.stringify({ alg: 'ES256', kid: 'key-1', typ: 'JOSE' })),
    signature: 'AA',
  };
  assert.equal(checkSignatures({ ...CARD, signatures: [other] }, checkOf(alice)), null);
  const entries = memberOf(card, 'signatures');
  assert.ok(Array.isArray(entries));
  assert.equal(verifyCard({ ...card, signatures: [other, ...entries] }, checkOf(alice)).signedAt, T0);
});

test('no changed byte of a signed card verifies as another card', () => {
  const alice = newIdentity();
  const text = JSON.stringify(signCard(CARD, localIdentity(alice), T0));
  const same = JSON.stringify(JSON.parse(text));
  const body = (json: string) => {
    const { signatures: _, ...rest } = JSON.parse(json);
    return JSON.stringify(rest);
  };
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.integer({ min: 32, max: 126 }), (at, code) => {
      const mutated = text.slice(0, at) + String.fromCharCode(code) + text.slice(at + 1);
      let card: Card;
      try {
        card = JSON.parse(mutated);
        verifyCard(card, checkOf(alice));
      } catch {
        return;
      }
      assert.equal(body(mutated), body(same));
    }),
    { seed: 3, numRuns: 2000 },
  );
});

test('detects a signer whose key differs from its delegation', () => {
  const alice = newIdentity();
  const other = KeyPair.generate();
  const signer = { ...localIdentity(alice), sign: (message: Uint8Array) => other.sign(message) };
  refused(() => verifyCard(signCard(CARD, signer, T0), checkOf(alice)), 'bad_signature');
});
