/**
 * `npm run check`: all static checks, several at a time. `--changed` formats and lints only the files that differ from
 * the branch `main` or its last commit.
 */
import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { text } from 'node:stream/consumers';
import { changedFiles } from './changes.ts';

interface Check {
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
}

const SCRIPTS = ['facts', 'architecture', 'dead', 'docs', 'prose', 'spelling', 'package'];
const LINTED = /^(?:src|test|bench|tools|sim|panel)\/.*\.tsx?$/;
const FORMATTED = /\.(?:ts|tsx|js|mjs|json|css)$/;

function binary(name: string, args: readonly string[]): Check {
  return { name: `${name} ${args.slice(0, 2).join(' ')}`.trim(), command: `node_modules/.bin/${name}`, args };
}

/** The checks, the slowest first. @param changed only these files are formatted and linted */
function checksOf(changed: readonly string[] | null): Check[] {
  const linted =
    changed === null ? ['src', 'test', 'bench', 'tools', 'sim', 'panel'] : changed.filter((one) => LINTED.test(one));
  const formatted = changed === null ? ['.'] : changed.filter((one) => FORMATTED.test(one));
  const lint = linted.length === 0 ? [] : [binary('oxlint', ['--type-aware', '--deny-warnings', ...linted])];
  const format = formatted.length === 0 ? [] : [binary('biome', ['ci', '--no-errors-on-unmatched', ...formatted])];
  const scripts = SCRIPTS.map((name) => ({
    name: `check:${name}`,
    command: 'npm',
    args: ['run', '-s', `check:${name}`],
  }));
  return [...lint, binary('tsc', ['-p', '.']), binary('tsc', ['-p', 'panel']), ...scripts, ...format];
}

/** Runs checks and prints the output of failed ones. @returns whether all passed */
export async function runChecks(changed: readonly string[] | null = null): Promise<boolean> {
  const waiting = checksOf(changed);
  let isPassed = true;
  const work = async (): Promise<void> => {
    for (let check = waiting.shift(); check !== undefined; check = waiting.shift()) {
      const begunAt = performance.now();
      const child = spawn(check.command, check.args, { stdio: ['ignore', 'pipe', 'pipe'] });
      const exit = new Promise<number | null>((resolve) => child.once('close', resolve));
      const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), exit]);
      const took = ((performance.now() - begunAt) / 1000).toFixed(1).padStart(6);
      console.log(`${code === 0 ? '✔' : '✖'} ${took} s  ${check.name}`);
      if (code === 0) continue;
      isPassed = false;
      console.log(`${stdout}${stderr}`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  return isPassed;
}

if (import.meta.main)
  process.exit((await runChecks(process.argv.includes('--changed') ? changedFiles() : null)) ? 0 : 1);
