/** Detached signatures against the examples of RFC 7515 and RFC 8037. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  fromBase64url,
  readHeader,
  signDetached,
  toBase64url,
  verifyDetached,
} from '../../../src/foundation/cards/signature.ts';
import { KeyPair } from '../../../src/foundation/identity/keys.ts';

/** RFC 8037, appendices A.1 and A.4. */
const SEED = 'nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A';
const PUBLIC_KEY = '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo';
const PAYLOAD = 'Example of Ed25519 signing';
const HEADER = 'eyJhbGciOiJFZERTQSJ9';
const SIGNATURE = 'hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg';

const pair = KeyPair.fromSeed(Buffer.from(SEED, 'base64url'));

test('base64url is that of RFC 7515, appendix C, and no other spelling', () => {
  const bytes = Buffer.from([3, 236, 255, 224, 193]);
  assert.equal(toBase64url(bytes), 'A-z_4ME');
  assert.deepEqual(fromBase64url('A-z_4ME'), bytes);
  for (const other of ['A-z_4ME=', 'A+z/4ME', 'A-z_4MF', 'A-z_4M E', 'A-z_4ME\n'])
    assert.equal(fromBase64url(other), null);
});

test('the signature of RFC 8037, appendix A.4', () => {
  assert.equal(toBase64url(pair.publicKey), PUBLIC_KEY);
  const jws = signDetached({}, PAYLOAD, pair);
  assert.deepEqual(jws, { protected: HEADER, signature: SIGNATURE });
  assert.ok(verifyDetached(jws, PAYLOAD, pair.publicKey));
});

test('another payload, key, header or spelling does not verify', () => {
  const jws = { protected: HEADER, signature: SIGNATURE };
  assert.ok(!verifyDetached(jws, `${PAYLOAD} `, pair.publicKey));
  assert.ok(!verifyDetached(jws, PAYLOAD, KeyPair.generate().publicKey));
  assert.ok(!verifyDetached({ ...jws, signature: `${SIGNATURE}=` }, PAYLOAD, pair.publicKey));
  assert.ok(!verifyDetached({ ...jws, signature: SIGNATURE.slice(1) }, PAYLOAD, pair.publicKey));
  const claims = (header: object) => ({ ...jws, protected: toBase64url(JSON.stringify(header)) });
  // RFC 7515, appendices A.1 and A.5; RFC 8725, section 3.1.
  for (const alg of ['none', 'HS256', 'Ed25519', 'eddsa', ''])
    assert.ok(!verifyDetached(claims({ alg }), PAYLOAD, pair.publicKey), alg);
});

test('rejects a header with critical extensions (RFC 7515, section 4.1.11)', () => {
  for (const extra of [{ crit: ['exp'], exp: 1 }, { crit: [] }, { b64: false }]) {
    const jws = signDetached(extra, PAYLOAD, pair);
    assert.ok(!verifyDetached(jws, PAYLOAD, pair.publicKey));
  }
  for (const text of ['', 'e30=', toBase64url('[]'), toBase64url('x'), 'A'.repeat(4000)])
    assert.equal(readHeader({ protected: text }), null);
});
