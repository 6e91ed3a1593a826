import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { Semaphore } from '../../../src/foundation/semaphore.ts';
import { clientProgram } from '../../../tools/command-tree.ts';
import { runSvc } from '../../support/cli-run.ts';
import { commandsOf } from '../../support/command-tree.ts';
import { HOSTILE, hostileDaemon } from '../../support/hostile-daemon.ts';
import { newIdentity } from '../../support/identities.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

/** What a terminal obeys, and what nobody sees; line breaks and tabs are none of it. */
const DANGEROUS = /[^\P{Cc}\n\t]|[\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;
const ESC = '\u001b';
/** Colours of our own. */
const COLOURS = new RegExp(`${ESC}\\[\\d{1,2}m`, 'g');
/** How a spinner of our own is taken away. */
const CLEARED = new RegExp(`\r(?:[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] [^\r]*|${ESC}\\[2K)`, 'g');

/** Commands that ask no daemon, or only answer what they were given. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'completion',
  'backup',
  'restore',
  'wallet message',
  'wallet register',
  'agents import',
  // They run other programs, or carry what comes as it is.
  'open',
  'ssh',
  'nc',
]);

/** An argument of each kind that stands for itself. */
function argumentFor(name: string, aid: string): string {
  const known: Readonly<Record<string, string>> = {
    service: 'lang.translate',
    policy: 'deny',
    list: 'allow',
    seq: '1',
    shell: 'bash',
    key: 'log_level',
    secret: 'off',
    path: '/x',
    group: 'ab'.repeat(32),
    'link-or-group': 'ab'.repeat(32),
    object: 'ab'.repeat(32),
    entry: 'ab'.repeat(32),
    id: 'ab'.repeat(8),
  };
  return known[name] ?? (/^(?:aid|agent|local|remote|peer|member)$/.test(name) ? aid : 'x');
}

/** What a command must be given beside its arguments. */
const OPTIONS: Readonly<Record<string, readonly string[]>> = {
  'agents update': ['--service-tcp', '127.0.0.1:1'],
  'inbound bind': ['--addr', '127.0.0.1:1'],
  'agents acl allow': ['--generate'],
  'admin allow': ['--generate'],
};

/** How a result is shown, and whether to a terminal. */
const WAYS: readonly (readonly [way: readonly string[], terminal: boolean])[] = [
  [[], true],
  [['--quiet'], true],
  [['--json'], true],
  [[], false],
];

test('no command lets what others wrote drive the terminal, whatever the answer', async (t) => {
  const { aid } = newIdentity();
  const directory = temporaryDirectory(t);
  let files = 0;
  const friendly = await hostileDaemon(t, aid, false);
  const refusing = await hostileDaemon(t, aid, true);
  let shown = 0;
  // Some commands wait for something to happen: others run meanwhile.
  const running = new Semaphore(16);
  const runs: Promise<void>[] = [];
  for (const { name, command } of commandsOf(await clientProgram())) {
    if (command.commands.length > 0 || LEFT_OUT.has(name)) continue;
    const words = command.registeredArguments.filter(({ required }) => required || name === 'note send');
    const line = [...name.split(' '), ...words.map((one) => argumentFor(one.name(), aid))];
    const agreed = command.options.some(({ long }) => long === '--yes') ? ['-y'] : [];
    for (const api of [friendly, refusing])
      for (const [way, terminal] of WAYS) {
        const file = name === 'agents export' ? ['-o', join(directory, `${files++}`)] : [];
        const args = [...way, ...line, ...(OPTIONS[name] ?? []), ...agreed, ...file];
        const run = async (): Promise<void> => {
          const { code, stdout, stderr } = await runSvc(args, { terminal, env: { SVC_API: api } });
          const printed = (stdout + stderr).replaceAll(COLOURS, '').replaceAll(CLEARED, '');
          // A pipe gets the body of a call as it is.
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
