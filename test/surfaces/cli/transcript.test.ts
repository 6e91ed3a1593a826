import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import { COMMAND_FILES } from '../../../src/surfaces/cli/command-files.ts';
import { transcript } from '../../support/cli-transcript.ts';
import { RECORDING } from '../../support/promised-json.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const FILE = new URL('../../vectors/cli-text.txt', import.meta.url);
/** Commands that run other programs, or send no request. */
const LEFT_OUT = new Set(['wallet', 'open', 'ssh', 'nc', 'backup', 'restore', 'restart', 'uninstall']);
/** Differences that a failure shows. */
const MAX_SHOWN = 10;

/** The recorded outcomes by command line. */
function recorded(): Map<string, string> {
  const sections = readFileSync(FILE, 'utf8').split(/^\$ /m).slice(1);
  return new Map(sections.map((one) => [one.slice(0, one.indexOf('\n')), one.slice(one.indexOf('\n') + 1, -1)]));
}

test('every command sends and prints what was recorded (node tools/record-json.ts)', async (t) => {
  const now = await transcript(t, temporaryDirectory(t));
  if (process.env[RECORDING] !== undefined)
    writeFileSync(FILE, [...now].map(([line, text]) => `$ ${line}\n${text}\n`).join(''));
  const before = recorded();
  const words = new Set([...before.keys()].flatMap((line) => /^svc (\S+)/.exec(line)?.[1] ?? []));
  const names = COMMAND_FILES.flatMap((part) => part.names).filter((name) => !LEFT_OUT.has(name));
  assert.deepEqual(
    names.filter((name) => !words.has(name)),
    [],
    'commands without a record',
  );
  const lines = new Set([...before.keys(), ...now.keys()]);
  const changed = [...lines].filter((line) => now.get(line) !== before.get(line)).slice(0, MAX_SHOWN);
  const shown = (texts: ReadonlyMap<string, string>) => changed.map((line) => `$ ${line}\n${texts.get(line) ?? ''}`);
  assert.deepEqual(shown(now), shown(before));
});
