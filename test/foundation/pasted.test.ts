import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MAX_AID_CHARS } from '../../src/foundation/domain/agents.ts';
import { SvcError } from '../../src/foundation/errors.ts';
import { parseAid } from '../../src/foundation/identity/aid.ts';
import { formatInvitation, parseInvitation, parseJoinTarget } from '../../src/foundation/invitation.ts';
import { agentsNamed } from '../../src/foundation/labels.ts';
import { cleanPasted } from '../../src/foundation/pasted.ts';
import { newIdentity } from '../support/identities.ts';

/** What messages, mail programs and copied links add to an identifier. */
const ADDED: readonly ((text: string) => string)[] = [
  (text) => ` ${text}\r\n`,
  (text) => `${text.slice(0, 20)}\n${text.slice(20)}`,
  (text) => `${text.slice(0, 20)}\r\n  ${text.slice(20)}`,
  (text) => `${text.slice(0, 8)}\u200b${text.slice(8)}\ufeff`,
  (text) => `\u00a0${text}\u00ad`,
  (text) => `"${text}"`,
  (text) => `“${text}”,`,
  (text) => `'${text}'`,
  (text) => `\`${text}\``,
  (text) => `<${text}>`,
  (text) => `(${text}).`,
  (text) => `${text}.`,
  (text) => `${text}!`,
  (text) => `**${text}**`,
  (text) => `「${text}」`,
];

test('an AID is read without what a message adds to it', () => {
  const { aid } = newIdentity();
  for (const add of [...ADDED, (text: string) => `svc://${text}/`, (text: string) => `<svc://${text}>.`])
    assert.equal(parseAid(add(aid)), aid, JSON.stringify(add(aid)));
});

test('an AID is read without the marks of a text format and a caption', () => {
  const { aid } = newIdentity();
  for (const text of [
    `[${aid}]`,
    `_${aid}_`,
    `*${aid}*`,
    `~~${aid}~~`,
    `||${aid}||`,
    `**[${aid}]**,`,
    `AID: ${aid}`,
    `*AID*: ${aid}`.replaceAll('*', ''),
    `aid = "${aid}"`,
    `Agent ID: [svc://${aid}/].`,
    `agent:\n${aid}`,
  ])
    assert.equal(parseAid(text), aid, text);
});

test('a path behind an AID is not dropped: the error names it and the agent', () => {
  const { aid } = newIdentity();
  for (const text of [`svc://${aid}/groups/ab#c`, `${aid}/groups/ab#c`, `<svc://${aid}/groups/ab#c>`])
    assert.throws(() => parseAid(text), {
      code: 'bad_aid',
      message: new RegExp(`"/groups/ab#c".* path out: ${aid}$`),
    });
});

test('a wallet address is read in lower case, in upper case and with its checksum', () => {
  const aid = parseAid('0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed');
  assert.equal(aid, '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed');
  const digits = aid.slice(2);
  for (const text of [aid, `0x${digits.toUpperCase()}`, aid.toUpperCase(), aid.toLowerCase()])
    assert.equal(parseAid(text), aid, text);
  const wrong = `0x${digits.replace('aA', 'Aa')}`;
  assert.throws(() => parseAid(wrong), { code: 'bad_aid' });
});

test('text inside an AID, and a second AID, are not removed', () => {
  const [{ aid }, { aid: other }] = [newIdentity(), newIdentity()];
  for (const wrong of [`${aid}-`, `${aid} ${other}`, `${aid}/join`, `svc://${aid}/join/abc`, `x${aid}`, `"`, '', '.'])
    assert.throws(() => parseAid(wrong), SvcError, wrong);
  assert.throws(() => parseAid('"'.repeat(MAX_AID_CHARS * 100)), SvcError);
});

test('an invitation and an address are read without what a message adds to them', () => {
  const { aid, master } = newIdentity();
  const line = formatInvitation({
    from: parseAid(aid),
    network: 'home',
    contacts: [{ host: '203.0.113.9', port: 4121, nodeKey: master.publicKey }],
  });
  for (const add of ADDED) assert.equal(parseInvitation(add(line)).network, 'home', JSON.stringify(add(line)));
  for (const add of ADDED.slice(4))
    assert.deepEqual(parseJoinTarget(add('[2001:db8::1]:4121')).contacts[0]?.port, 4121);
});

test('a pasted label finds its agent, and a label with the same characters wins', () => {
  const book = { aliases: { aid1x: 'my laptop', aid1y: 'home.', aid1z: 'home' } };
  assert.deepEqual(agentsNamed(' "My laptop".\r\n', book, []), ['aid1x']);
  assert.deepEqual(agentsNamed('home.', book, []), ['aid1y']);
  assert.deepEqual(agentsNamed('“home”', book, []), ['aid1z']);
  assert.deepEqual(agentsNamed('""', book, []), []);
});

test('blanks between words stay', () => {
  assert.equal(cleanPasted(' “two words”. '), 'two words');
});
