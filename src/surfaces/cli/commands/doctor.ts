/** `svc doctor`: looks for the causes of trouble. */
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { hostOfUrl, isLoopbackHost } from '../../../foundation/address.ts';
import type { CliContext, ContextOf } from '../context.ts';
import type { Finding, Level } from '../doctor/finding.ts';
import { examples } from '../examples.ts';
import { coloured, safeLine } from '../text.ts';
import { Unsuccessful } from '../unsuccessful.ts';

const MARK = { PASS: 'green', FAIL: 'red', WARN: 'yellow', INFO: 'cyan' } as const;

/** True where the daemon that is examined runs on this machine. */
function isHere({ connection, options }: CliContext): boolean {
  const url = URL.parse(connection.baseUrl);
  return options.via === undefined && url !== null && isLoopbackHost(hostOfUrl(url));
}

/** What it looks at costs every other command its start: only the doctor loads it. */
async function findingsOn(context: CliContext, version: string): Promise<readonly Finding[]> {
  if (context.absence !== null) {
    const { examineDirectory } = await import('../doctor/absent.ts');
    return examineDirectory(resolve(context.dataDir));
  }
  const { client, connection, dataDir } = context;
  const { via } = context.options;
  const api = via === undefined ? context.api : `${via}, through ${context.api}`;
  const { diagnose } = await import('../doctor/diagnose.ts');
  return diagnose({ client, connection, api, dataDir, version, here: isHere(context) });
}

async function examine(context: CliContext, version: string): Promise<void> {
  const { io } = context;
  const findings = await context.progress('Examining', findingsOn(context, version));
  const line = ({ level, what, hint }: Finding): string =>
    `${level}  ${safeLine(what)}${hint === undefined ? '' : `\n      ${safeLine(hint)}`}`;
  const paint = (text: string): string =>
    text.replaceAll(/^(?:PASS|FAIL|WARN|INFO)(?= )/gm, (level) => coloured(MARK[level as Level], level, io.stdout));
  const failed = findings.filter(({ level }) => level === 'FAIL');
  context.show(
    { ok: failed.length === 0, findings },
    { text: () => findings.map(line).join('\n'), quiet: () => (failed.length === 0 ? 'ok' : 'failed'), paint },
  );
  if (failed.length > 0) throw new Unsuccessful(`${failed.length} of ${findings.length} checks failed.`);
}

export function doctorCommand(program: Command, contextOf: ContextOf, version: string): void {
  program
    .command('doctor')
    .description('look for the causes of trouble and say what helps')
    .addHelpText(
      'after',
      examples('svc doctor', `svc doctor --json | jq -r '.findings[] | select(.level == "FAIL") | .what'`),
    )
    .action((_options, command: Command) => examine(contextOf(command), version));
}
