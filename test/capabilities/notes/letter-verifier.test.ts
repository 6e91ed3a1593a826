/** The threads that verify letters: this thread a few, other threads the rest, with the same results. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { decodeLetter, encodeLetter, LetterVerifier } from '../../../src/capabilities/notes/letter.ts';
import { DelegationVerifier } from '../../../src/foundation/identity/delegation-verifier.ts';
import { newIdentity } from '../../support/identities.ts';
import { failsWith } from '../../support/vectors.ts';

test('many letters that come together get their own verdict each', async () => {
  const [sender, other, recipient] = [newIdentity(), newIdentity(), newIdentity()];
  const sealedTo = new Uint8Array(randomBytes(32));
  const verifier = new LetterVerifier({ delegations: new DelegationVerifier() });
  const letter = (i: number) => {
    const nonce = new Uint8Array(randomBytes(16));
    const sentAt = (sender.delegation.issuedAt + 60) * 1000;
    const content = { sender: sender.aid, recipient: recipient.aid, sentAt, msgType: 1, body: Uint8Array.of(i), nonce };
    // Every other one is signed with a key that its delegation does not name.
    const signer = i % 2 === 0 ? sender.operational : other.operational;
    const writer = { delegation: sender.delegation, sign: (message: Uint8Array) => signer.sign(message) };
    return decodeLetter(encodeLetter(content, writer, sealedTo), recipient.aid);
  };
  const verdicts = await Promise.allSettled(Array.from({ length: 12 }, (_, i) => verifier.verify(letter(i), sealedTo)));
  for (const [i, verdict] of verdicts.entries()) {
    if (i % 2 === 0) assert.equal(verdict.status, 'fulfilled');
    else assert.ok(verdict.status === 'rejected' && failsWith('bad_record')(verdict.reason));
  }
  await assert.rejects(verifier.verify(letter(0), new Uint8Array(32)), failsWith('bad_record'));
});
