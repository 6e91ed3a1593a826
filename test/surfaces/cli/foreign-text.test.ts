import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Semaphore } from '../../../src/foundation/concurrency.ts';
import { runSvc } from '../../support/cli-run.ts';
import { commandLines } from '../../support/command-lines.ts';
import { HOSTILE, hostileDaemon } from '../../support/hostile-daemon.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** Control and invisible characters, except line breaks and tabs. */
const DANGEROUS = /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const ESC = '\u001b';
/** Colors that svc prints. */
const COLOURS = new RegExp(`${ESC}\\[\\d{1,2}m`, 'g');
/** How svc clears its spinner. */
const CLEARED = new RegExp(`\r(?:[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] [^\r]*|${ESC}\\[2K)`, 'g');

/** Output options, with and without a terminal. */
const WAYS: readonly (readonly [way: readonly string[], terminal: boolean])[] = [
  [[], true],
  [['--quiet'], true],
  [['--json'], true],
  [[], false],
];

test('no command prints control sequences of others', async (t) => {
  const { aid } = newIdentity();
  const directory = temporaryDirectory(t);
  let files = 0;
  const friendly = await hostileDaemon(t, aid, false);
  const refusing = await hostileDaemon(t, aid, true);
  let shown = 0;
  // Some commands wait for something to happen, so others run meanwhile.
  const running = new Semaphore(16);
  const runs: Promise<void>[] = [];
  for (const { name, line } of await commandLines(aid)) {
    for (const api of [friendly, refusing])
      for (const [way, terminal] of WAYS) {
        const file = name === 'agents export' ? ['-o', join(directory, `${files++}`)] : [];
        const args = [...way, ...line, ...file];
        const run = async (): Promise<void> => {
          const { code, stdout, stderr } = await runSvc(args, { terminal, env: { SVC_API: api } });
          const printed = (stdout + stderr).replaceAll(COLOURS, '').replaceAll(CLEARED, '');
          // A pipe receives the body of a call unchanged.
          if (!terminal && /^(?:get|post)$/.test(name)) return;
          assert.doesNotMatch(printed, DANGEROUS, `svc ${args.join(' ')}: ${JSON.stringify(printed)}`);
          assert.notEqual(code, 2, `svc ${args.join(' ')}: ${stderr}`);
          if (printed.includes('owned')) shown++;
          if (way[0] === '--json' && code === 0 && stdout !== '' && name !== 'events') {
            const text = JSON.stringify(JSON.parse(stdout));
            if (text.includes('owned')) assert.ok(text.includes(JSON.stringify(HOSTILE).slice(1, -1)), 'it is changed');
          }
        };
        runs.push(running.run(run));
      }
  }
  await Promise.all(runs);
  assert.ok(shown > 100, `only ${shown} outputs held the text`);
});
