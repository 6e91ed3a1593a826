/**
 * The single file: `svcd`, `svc` and the short scripts that they run in child processes. The first argument selects the
 * program. Without one, the name of the file does.
 */
import { basename } from 'node:path';
import { compileFunction } from 'node:vm';

const PROGRAMS: Readonly<Record<string, () => Promise<unknown>>> = {
  svcd: () => import('./main.ts'),
  svc: () => import('../surfaces/cli/main.ts'),
};

/** Keyed by the names that `scriptCommand` uses. */
const SCRIPTS: Readonly<Record<string, () => Promise<string>>> = {
  'script:receive-buffer': async () => (await import('../network/transport/quic/receive-memory.ts')).SET_RECEIVE_BUFFER,
  'script:program': async () => (await import('../capabilities/hooks/windows-run.ts')).RUNNER,
  'script:queue-look': async () => (await import('../network/transport/quic/initial-guard.ts')).LOOK,
};

/** The program that a file name stands for: `svcd`, `svcd.exe` and `svcd-0.1.0` are the daemon. */
function programOf(file: string): string {
  return /^svcd(?:[.-]|$)/.test(basename(file)) ? 'svcd' : 'svc';
}

async function start(file: string, words: readonly string[]): Promise<void> {
  const [first = '', ...rest] = words;
  const script = Object.hasOwn(SCRIPTS, first) ? SCRIPTS[first] : undefined;
  if (script !== undefined) {
    process.argv = [process.execPath, ...rest];
    compileFunction(await script(), ['require'])((name: string) => process.getBuiltinModule(name));
    return;
  }
  const isNamed = Object.hasOwn(PROGRAMS, first);
  const name = isNamed ? first : programOf(file);
  process.argv = [process.execPath, name, ...(isNamed ? rest : words)];
  await PROGRAMS[name]?.();
}

// By default this signal would open Node's debugger on a local port to all users of this machine.
process.on('SIGUSR1', () => {});
const [, file = 'svc', ...words] = process.argv;
await start(file, words);
