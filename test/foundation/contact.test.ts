import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatContact, parseContact } from '../../src/foundation/address.ts';
import { nativeAid } from '../../src/foundation/identity/aid.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';

const { publicKey: nodeKey } = KeyPair.generate();
const AID = nativeAid(nodeKey);

test('a contact is a place, with or without a port and a key', () => {
  const port = 4121;
  assert.deepEqual(parseContact('node.example'), { host: 'node.example', port });
  assert.deepEqual(parseContact('node.example:1'), { host: 'node.example', port: 1 });
  assert.deepEqual(parseContact('203.0.113.7'), { host: '203.0.113.7', port });
  for (const text of ['2001:db8::1', '[2001:db8::1]', '[2001:DB8:0::1]:4121'])
    assert.deepEqual(parseContact(text), { host: '2001:db8::1', port });
  assert.deepEqual(parseContact(`${AID}@node.example`), { host: 'node.example', port, nodeKey });
  assert.deepEqual(parseContact(`${AID}@[2001:db8::1]:9`), { host: '2001:db8::1', port: 9, nodeKey });
});

test('a contact has one text', () => {
  for (const text of ['node.example:4121', '[2001:db8::1]:1', `${AID}@203.0.113.7:4121`]) {
    const contact = parseContact(text);
    assert.ok(contact !== null);
    assert.equal(formatContact(contact), text);
  }
});

test('invalid contacts are rejected', () => {
  const ethereum = '0x52908400098527886E0F7030069857D2E4169EE7';
  const wrong = [
    '',
    ':4121',
    'a:0',
    'a:65536',
    'a b',
    '@a',
    `${AID}@`,
    `${AID.slice(0, -1)}${AID.endsWith('x') ? 'y' : 'x'}@a`,
    `${ethereum}@a`,
    'a@b@c',
  ];
  for (const text of [...wrong, 'http://a', '1.2.3', '[::1', '[a]']) assert.equal(parseContact(text), null, text);
});
