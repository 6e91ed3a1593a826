/**
 * Writes the test vectors in test/vectors/ for other implementations. `--check` compares only. wallet.json is not
 * generated: independent libraries made its signatures.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { aidVectors } from './vectors/aid.ts';
import { chatVectors } from './vectors/chat.ts';
import { delegationVectors } from './vectors/delegation.ts';
import { groupVectors } from './vectors/group.ts';
import { keyVectors } from './vectors/keys.ts';
import { noteVectors } from './vectors/notes.ts';
import { recordVectors } from './vectors/record.ts';
import { tlsVectors } from './vectors/tls.ts';

const files: Readonly<Record<string, unknown>> = {
  aid: aidVectors(),
  keys: keyVectors(),
  delegation: delegationVectors(),
  record: recordVectors(),
  notes: noteVectors(),
  chat: chatVectors(),
  group: groupVectors(),
  tls: tlsVectors(),
};
const check = process.argv.includes('--check');
for (const [name, content] of Object.entries(files)) {
  const path = new URL(`../test/vectors/${name}.json`, import.meta.url);
  const text = `${JSON.stringify(content, null, 2)}\n`;
  if (!check) writeFileSync(path, text);
  else if (readFileSync(path, 'utf8') !== text) {
    console.error(`test/vectors/${name}.json is out of date. Run "node tools/make-vectors.ts".`);
    process.exitCode = 1;
  }
}
