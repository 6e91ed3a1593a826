/** `svc doctor`: finds the causes of problems. */
import { resolve } from 'node:path';
import { styleText } from 'node:util';
import { hostOfUrl, isLoopbackHost } from '../../../foundation/address.ts';
import { type Finding, hasNoFailures, type Level } from '../../../foundation/domain/findings.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { safeLine } from '../text.ts';

const MARK = { PASS: 'green', FAIL: 'red', WARN: 'yellow', INFO: 'cyan' } as const;

/** True if the examined daemon runs on this machine. */
function isHere({ connection, options }: CliContext): boolean {
  const url = URL.parse(connection.baseUrl);
  return options.via === undefined && url !== null && isLoopbackHost(hostOfUrl(url));
}

/** The checks load slowly, so only this command loads them. */
async function findingsOn(context: CliContext, version: string): Promise<readonly Finding[]> {
  if (context.addressError !== null) {
    const { examineDirectory } = await import('../doctor/diagnose.ts');
    return examineDirectory(resolve(context.dataDir));
  }
  const { client, connection, dataDir } = context;
  const { via } = context.options;
  const { env } = context.io;
  // A named directory is examined even if an address is given too.
  const isNamed = (context.options.api ?? env['SVC_API']) !== undefined && env['SVCD_DATA_DIR'] === undefined;
  const api = via === undefined ? context.api : `${via}, through ${context.api}`;
  const { diagnose } = await import('../doctor/diagnose.ts');
  return diagnose({ client, connection, api, dataDir, version, here: isHere(context), isNamed });
}

function lineOf({ level, what, hint }: Finding): string {
  return `${level}  ${safeLine(what)}${hint === undefined ? '' : `\n      ${safeLine(hint)}`}`;
}

export function doctorCommand(svc: CommandGroup, version: string): void {
  svc.run('doctor', 'find the causes of problems and show how to fix them', {
    examples: ['svc doctor', `svc doctor --json | jq -r '.findings[] | select(.level == "FAIL") | .what'`],
    progress: 'Examining',
    run: async (context) => {
      const findings = await findingsOn(context, version);
      return { ok: hasNoFailures(findings), findings };
    },
    text: ({ findings }) => findings.map(lineOf).join('\n'),
    quiet: ({ ok }) => (ok ? 'ok' : 'failed'),
    paint: (text, stream) =>
      text.replaceAll(/^(?:PASS|FAIL|WARN|INFO)(?= )/gm, (level) => styleText(MARK[level as Level], level, { stream })),
    fails: ({ ok, findings }) => {
      const failed = findings.filter(({ level }) => level === 'FAIL');
      return !ok && `${failed.length} of ${findings.length} checks failed.`;
    },
  });
}
