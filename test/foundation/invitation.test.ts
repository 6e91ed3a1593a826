import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_INVITATION_CHARS, MAX_INVITATION_CONTACTS } from '../../src/foundation/domain/joining.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { nativeAid } from '../../src/foundation/identity/aid.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { formatInvitation, parseInvitation, parseJoinTarget } from '../../src/foundation/invitation.ts';

const { publicKey } = KeyPair.generate();
const { publicKey: helperKey } = KeyPair.generate();
const from = nativeAid(publicKey);
const INVITATION = {
  from,
  network: 'office',
  contacts: [
    { host: '203.0.113.7', port: 4121, nodeKey: publicKey },
    { host: 'node.example', port: 9, nodeKey: helperKey },
  ],
};

const isDamaged = (error: unknown): boolean => error instanceof SvcError && error.code === 'invalid_request';

test('an invitation is one line that reads back', () => {
  const line = formatInvitation(INVITATION);
  assert.match(line, /^svc:\/\/aid1\w+\/join\/[\w-]+$/);
  assert.deepEqual(parseInvitation(` ${line}\n`), INVITATION);
  assert.deepEqual(parseJoinTarget(line), { contacts: INVITATION.contacts, invitation: INVITATION });
  const contacts = [{ host: 'node.example', port: 4121 }];
  assert.deepEqual(parseJoinTarget(' node.example\n'), { contacts, invitation: null });
});

test('the names in an invitation have one spelling', () => {
  const named = { ...INVITATION, name: 'Dora', agent: { aid: from, name: '' } };
  assert.deepEqual(parseInvitation(formatInvitation(named)), named);
  for (const name of ['', ' Dora', 'a\nb', 'x'.repeat(65), 'D\u043era', 'aid1abc', 'a\u202eb'])
    assert.throws(() => parseInvitation(formatInvitation({ ...INVITATION, name })), isDamaged, JSON.stringify(name));
  const agent = { aid: from, name: 'a\nb' };
  assert.throws(() => parseInvitation(formatInvitation({ ...INVITATION, agent })), isDamaged);
});

test('the longest invitation is not too long', () => {
  const host = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`;
  const contacts = Array.from({ length: MAX_INVITATION_CONTACTS }, () => ({ host, port: 65_535, nodeKey: publicKey }));
  const line = formatInvitation({ from, network: 'n'.repeat(63), contacts });
  assert.ok(line.length <= MAX_INVITATION_CHARS, String(line.length));
  assert.equal(parseInvitation(line).contacts.length, MAX_INVITATION_CONTACTS);
});

test('a line that lost or changed a character is damaged', () => {
  const line = formatInvitation(INVITATION);
  for (let i = 0; i < line.length; i++) {
    assert.throws(() => parseInvitation(line.slice(0, i) + line.slice(i + 1)), isDamaged, `without character ${i}`);
    const changed = line[i] === 'q' ? 'p' : 'q';
    assert.throws(
      () => parseInvitation(line.slice(0, i) + changed + line.slice(i + 1)),
      isDamaged,
      `another one at ${i}`,
    );
  }
});

test('an invitation without contacts, with too many, or with invalid addresses is rejected', () => {
  const contact = { host: '203.0.113.7', port: 4121, nodeKey: publicKey };
  const many = Array.from({ length: MAX_INVITATION_CONTACTS + 1 }, () => contact);
  for (const contacts of [
    [],
    many,
    [{ ...contact, port: 0 }],
    [{ ...contact, host: '' }],
    [{ ...contact, host: 'a b' }],
  ])
    assert.throws(() => parseInvitation(formatInvitation({ from, network: '', contacts })), isDamaged);
  assert.throws(() => parseInvitation(formatInvitation({ ...INVITATION, network: 'No such name' })), isDamaged);
});

test('an invitation to an entry has a token', () => {
  const token = 'aBcDeFgHiJkLmNoPqRs-_0';
  const line = formatInvitation({ ...INVITATION, token });
  assert.deepEqual(parseInvitation(line), { ...INVITATION, token });
  for (const bad of ['', token.slice(1), `${token.slice(1)}+`])
    assert.throws(() => parseInvitation(formatInvitation({ ...INVITATION, token: bad })), isDamaged);
});
