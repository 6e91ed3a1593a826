import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Command, CommanderError } from 'commander';
import { understoodWords } from '../../../src/surfaces/cli/words.ts';
import { clientProgram, examplesIn, helpText, svcdProgram } from '../../../tools/command-tree.ts';
import { commandsOf } from '../../support/command-tree.ts';

/** The words after `svc` (or `svcd`) in each command of a shell line. */
function invocations(line: string, name: string): string[][] {
  const found: string[][] = [];
  for (const start of line.matchAll(new RegExp(`(?<=^|\\s|\\()${name}(?=\\s|$)`, 'g'))) {
    const words: string[] = [];
    const rest = line.slice(start.index + name.length);
    for (const [word] of rest.matchAll(/'[^']*'|"[^"]*"|[^\s'"]+/g)) {
      if (/^(?:\||&&|;|#|<|>)$/.test(word)) break;
      const closed = /^['"]/.test(word) ? undefined : /^(.*?)\)/.exec(word)?.[1];
      words.push(closed ?? word.replace(/^(['"])([\s\S]*)\1$/, '$2'));
      if (closed !== undefined) break;
    }
    found.push(words);
  }
  return found;
}

/** Parses a command line without running it. Returns the error, if any. */
async function parse(program: () => Command | Promise<Command>, words: readonly string[]): Promise<string | null> {
  const fresh = await program();
  const quiet = { writeOut: () => {}, writeErr: () => {} };
  for (const command of [fresh, ...commandsOf(fresh).map((one) => one.command)])
    command
      .action(() => {})
      .exitOverride()
      .configureOutput(quiet);
  // The preparation of a real run sends a request to a daemon.
  Reflect.set(fresh, '_lifeCycleHooks', {});
  try {
    await fresh.parseAsync([...understoodWords(fresh, words).words], { from: 'user' });
    return null;
  } catch (error) {
    if (error instanceof CommanderError) return error.message;
    throw error;
  }
}

for (const [name, program] of [
  ['svc', clientProgram],
  ['svcd', svcdProgram],
] as const)
  test(`every command of ${name} has valid examples in its help`, async () => {
    const tree = await program();
    const without: string[] = [];
    const wrong: string[] = [];
    for (const one of [{ name: '', command: tree }, ...commandsOf(tree)]) {
      const examples = examplesIn(helpText(one.command));
      const calls = examples.flatMap((line) => invocations(line, name));
      const own = one.name === '' || calls.some((words) => words.join(' ').includes(one.name));
      if (!own) without.push(one.name);
      for (const words of calls) {
        const problem = await parse(program, words);
        if (problem !== null) wrong.push(`${one.name}: ${words.join(' ')}: ${problem}`);
      }
    }
    assert.deepEqual(without, [], 'commands whose help has no example of them');
    assert.deepEqual(wrong, [], 'examples that the parser refuses');
  });

test('detects a wrong example', async () => {
  assert.deepEqual(invocations('nc $(svc connect aid1… --quiet | tr : " ")', 'svc'), [['connect', 'aid1…', '--quiet']]);
  assert.deepEqual(invocations(`svc a "b c" && svc d # svc`, 'svc'), [['a', 'b c'], ['d'], []]);
  assert.match((await parse(clientProgram, ['get'])) ?? '', /missing required argument/);
  assert.match((await parse(clientProgram, ['get', 'aid1…', '--nonsense'])) ?? '', /unknown option/);
});
