/** `svc uninstall`: removes svcd from this machine: the service, the entries of MCP clients, the data and the package. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';
import { acquireLock, LOCK_FILE_NAME } from '../../../foundation/data-dir/lock.ts';
import {
  DATABASE_FILE,
  homeDirectory,
  launchdFile,
  OWN_FILES,
  SERVICE_NAME,
  systemdUnitFile,
} from '../../../foundation/data-dir/paths.ts';
import { codeOf, SvcError } from '../../../foundation/errors.ts';
import { textMember } from '../../../foundation/json.ts';
import { isSingleFile, ownScript, programFolders } from '../../../foundation/package-file.ts';
import { findProgram, startable } from '../../../foundation/programs.ts';
import { MCP_CLIENTS, type McpClientName, ownEntries, removeServer } from '../../mcp-hosts/hosts.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { formatTable } from '../text.ts';
import { stop } from './process.ts';

/** A part of the installation. */
interface Part {
  readonly part: 'service' | 'daemon' | 'mcp' | 'data' | 'package';
  /** Its file, folder or address. */
  readonly place: string;
  /**
   * Removes it. Undefined if only the user can.
   * @returns why it remains, if it does
   */
  readonly remove?: () => Promise<string | undefined> | string | undefined;
  /** The step for the user. */
  readonly remedy?: string;
}

/** Runs a program with the streams of this command. Returns the problem, if any. */
function problemOf(program: string, args: readonly string[]): string | undefined {
  // On Windows, npm is a batch file.
  const { file, args: words, ...way } = startable([findProgram(program, process.env) ?? program, ...args], process.env);
  const { error, status } = spawnSync(file, words, { ...way, stdio: ['inherit', 2, 2] });
  if (error !== undefined) return `${program} cannot be started (${codeOf(error)})`;
  return status === 0 ? undefined : `${[program, ...args].join(' ')} failed`;
}

/** The installed services: of the machine, and of the user. */
function services({ io }: CliContext): Part[] {
  const home = io.env['HOME'] ?? homeDirectory();
  const [svcd, ...first] = isSingleFile
    ? [process.execPath, 'svcd']
    : [process.execPath, join(dirname(ownScript()), 'svcd')];
  const remove = (...user: string[]) => problemOf(svcd ?? '', [...first, 'service', 'uninstall', ...user]);
  if (process.platform === 'win32') {
    const { status } = spawnSync('schtasks', ['/Query', '/TN', SERVICE_NAME], { stdio: 'ignore' });
    return status === 0 ? [{ part: 'service', place: `task ${SERVICE_NAME}`, remove: () => remove() }] : [];
  }
  const places: readonly (readonly [string, () => string | undefined])[] =
    process.platform === 'darwin'
      ? [[launchdFile(home), () => remove()]]
      : [
          [systemdUnitFile(null), () => remove()],
          [systemdUnitFile(io.env['XDG_CONFIG_HOME'] || join(home, '.config')), () => remove('--user')],
        ];
  return places.flatMap(([place, work]) =>
    existsSync(place) ? [{ part: 'service', place, remove: work } as const] : [],
  );
}

/** The entries of svcd in the configurations of MCP clients. */
function entries({ io }: CliContext): Part[] {
  const machine = { platform: process.platform, home: io.env['HOME'] ?? homeDirectory(), environment: io.env };
  return (Object.keys(MCP_CLIENTS) as McpClientName[]).flatMap((client) =>
    ownEntries(client, machine).map(
      (name): Part => ({
        part: 'mcp',
        place: `${name} in ${MCP_CLIENTS[client].file(machine)}`,
        remove: () => {
          removeServer(client, { name, own: false }, machine, false);
          return undefined;
        },
      }),
    ),
  );
}

/** Deletes the files of svcd, and the folder if nothing else is in it. A daemon at another API address keeps its data. */
function deleteData(directory: string): string | undefined {
  const lock = acquireLock(directory);
  if (lock === null) return 'another program uses it: stop it first';
  const remove = (isIn: (name: string) => boolean): void => {
    for (const name of readdirSync(directory).filter(isIn))
      rmSync(join(directory, name), { recursive: true, force: true });
  };
  try {
    remove((name) => OWN_FILES.test(name) && !name.startsWith(LOCK_FILE_NAME));
  } finally {
    lock.release();
  }
  // Windows deletes no open file.
  remove((name) => name.startsWith(LOCK_FILE_NAME));
  const kept = readdirSync(directory);
  if (kept.length > 0) return `kept other files: ${kept.join(', ')}`;
  rmdirSync(directory);
  return undefined;
}

/** Null if no daemon runs. One that refuses this client still uses its data. @throws every other error */
function nullIfGone(error: unknown): null {
  if (error instanceof SvcError && error.code === 'daemon_unreachable') return null;
  throw error;
}

/** The running daemon, and its data. Without a daemon, the data of the usual directory. */
async function daemonParts(context: CliContext): Promise<Part[]> {
  const status = context.addressError === null ? await context.client.status().catch(nullIfGone) : null;
  const directory = status?.data_dir ?? context.dataDir;
  const keys = status === null ? '' : textMember(await context.client.configGet(), 'key_dir');
  const end = async (): Promise<undefined> => {
    // It may have stopped with its service.
    await stop(context).catch(nullIfGone);
  };
  return [
    ...(status === null ? [] : [{ part: 'daemon', place: context.api, remove: end } as const]),
    ...(existsSync(join(directory, DATABASE_FILE))
      ? [{ part: 'data', place: directory, remove: () => deleteData(directory) } as const]
      : []),
    ...(keys === '' ? [] : [{ part: 'data', place: keys, remedy: 'delete this folder if only svcd uses it' } as const]),
  ];
}

/** The program itself. npm removes its own package; other forms are left to the user. */
function packageParts(): Part[] {
  const [folder = ''] = programFolders();
  if (isSingleFile) return [{ part: 'package', place: process.execPath, remedy: 'delete this file and links to it' }];
  const root = dirname(folder);
  if (!root.split(sep).includes('node_modules'))
    return [{ part: 'package', place: root, remedy: 'delete this folder: it is a checkout' }];
  return [{ part: 'package', place: root, remove: () => problemOf('npm', ['uninstall', '--global', 'svcd']) }];
}

interface Removed {
  readonly part: Part['part'];
  readonly place: string;
  readonly state: 'present' | 'removed' | 'kept';
  /** Why it is kept, or what to do. */
  readonly note?: string;
}

async function removed({ part, place, remove, remedy }: Part, isReal: boolean): Promise<Removed> {
  if (!isReal || remove === undefined)
    return { part, place, state: isReal ? 'kept' : 'present', ...(remedy === undefined ? {} : { note: remedy }) };
  try {
    const note = await remove();
    return note === undefined ? { part, place, state: 'removed' } : { part, place, state: 'kept', note };
  } catch (error) {
    return { part, place, state: 'kept', note: error instanceof Error ? error.message : 'unknown failure' };
  }
}

const WARNING =
  'The data includes the keys of your agents and all messages. Master keys that you saved restore the identities. To keep everything else, run "svc backup" first.';

export function uninstallCommand(svc: CommandGroup): void {
  svc.run('uninstall', 'remove svcd from this machine: service, MCP entries, data and package', {
    examples: ['svc uninstall --plan', 'svc uninstall --yes'],
    options: {
      '--plan': 'only show what would be removed; the default without --yes',
      '-y, --yes': 'remove it',
    },
    run: async (context, { plan, yes }) => {
      if (context.options.via !== undefined)
        throw new SvcError('local_only', { message: 'This removes svcd from this machine. Omit --via.' });
      const isReal = yes === true && plan !== true;
      const parts: Removed[] = [];
      const all = [...services(context), ...(await daemonParts(context)), ...entries(context), ...packageParts()];
      // The daemon stops with its service.
      for (const one of all) parts.push(await removed(one, isReal));
      return { parts };
    },
    text: ({ parts }) =>
      formatTable(
        ['PART', 'PLACE', 'STATE', 'NOTE'],
        parts.map(({ part, place, state, note }) => [part, place, state, note]),
      ),
    quiet: ({ parts }) => parts.map(({ place }) => place).join('\n'),
    remark: (_, { plan, yes }) =>
      (yes !== true || plan === true) && `${WARNING}\nTo remove everything: svc uninstall --yes`,
    fails: ({ parts }, { yes, plan }) =>
      yes === true &&
      plan !== true &&
      parts.some(({ state, part }) => state === 'kept' && part !== 'package') &&
      'Some parts were kept.',
  });
}
