/** The MCP clients that `svcd mcp` and `svc mcp` support: paths and formats of their configuration files. */

import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Inline } from '../../foundation/config/toml-edit.ts';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { copyForeignFile, type ForeignFile, readForeignFile, writeForeignFile } from '../../foundation/foreign-file.ts';
import { isObject } from '../../foundation/json.ts';
import { type Editor, jsonEditor, tomlEditor } from './editor.ts';

// Writes a server into the configuration file of an MCP client.

/** Largest configuration file of a client, in bytes. */
export const MAX_HOST_FILE_BYTES: number = 16 * 2 ** 20;

/** Copies a file to a free backup name next to it. Earlier backups stay. @returns the path of the copy */
function keepBeside(before: ForeignFile): string {
  for (let n = 1; ; n++) {
    const backup = `${before.file}.before-svcd${n === 1 ? '' : `-${n}`}`;
    try {
      copyForeignFile(before, backup, true);
      return backup;
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  }
}

/** The result of a change of a configuration, or of its dry run. */
export interface HostChange {
  readonly file: string;
  /** Name of the entry. An equal entry keeps its name. */
  readonly name: string;
  readonly changed: boolean;
  /** The copy of the previous file; null if there was none, or if nothing was written. */
  readonly backup: string | null;
  /** For people. */
  readonly text: string;
}

/** Writes the changed text, after a copy of the previous file. */
function rewrite(before: ForeignFile, changed: string): string | null {
  const backup = before.text === '' ? null : keepBeside(before);
  writeForeignFile(before, changed);
  return backup;
}

function backupText(backup: string | null): string {
  return backup === null ? '' : `; the previous file is ${backup}`;
}

/**
 * Adds a server to the configuration of a client and backs up the previous file. If the client has the same server
 * under another name, that entry is updated.
 * @throws SvcError `config_invalid` if the file is no configuration of the client, `not_writable`
 */
export function addServer(client: McpClientName, wanted: ServerEntry, machine: Machine, dryRun: boolean): HostChange {
  const before = readForeignFile(MCP_CLIENTS[client].file(machine), MAX_HOST_FILE_BYTES);
  const { file, text } = before;
  const name = sameServer(client, text, wanted) ?? wanted.name;
  const entry = { ...wanted, name };
  const changed = withServer(client, text, entry);
  const result = { file, name, changed: changed !== text, backup: null };
  if (changed === text)
    return { ...result, text: `${file} already has it${name === wanted.name ? '' : ` as ${name}`}.\n` };
  if (dryRun) {
    const shown = `Would write ${file}:\n${withServer(client, '', entry)}(and keep the rest of the file)\n`;
    return { ...result, text: shown };
  }
  const backup = rewrite(before, changed);
  const restart = wanted.next ?? `Restart ${MCP_CLIENTS[client].title} to use it.`;
  return { ...result, backup, text: `Added ${name} to ${file}${backupText(backup)}.\n${restart}\n` };
}

/**
 * Removes an entry of svcd from the configuration of a client and backs up the previous file.
 * @param own the entry that `add` writes: it is removed with any content. Others must start `svc` or `svcd`
 * @throws SvcError `config_invalid` if the file is no configuration of the client, `invalid_request` if the entry is not
 *   one of svcd, `not_writable`
 */
export function removeServer(
  client: McpClientName,
  named: { readonly name: string; readonly own: boolean },
  machine: Machine,
  dryRun: boolean,
): HostChange {
  const { name, own } = named;
  const { servers, title } = MCP_CLIENTS[client];
  const before = readForeignFile(MCP_CLIENTS[client].file(machine), MAX_HOST_FILE_BYTES);
  const { file, text } = before;
  const editor = editorOf(client, text, `Remove ${name} from ${file} yourself.`);
  const entry = editor.get([servers, name]);
  const result = { file, name, changed: entry !== undefined, backup: null };
  if (entry === undefined) return { ...result, text: `${file} has no ${name}.\n` };
  if (!own && tailOf(entry) === undefined)
    throw new SvcError('invalid_request', {
      message: `${name} in ${file} does not start svc or svcd. Remove it yourself.`,
    });
  change(
    editor,
    client,
    `Remove ${name} from ${file} yourself.`,
    () => editor.set([servers, name], undefined),
    () => {
      const others = entriesOf(client, text);
      return Object.fromEntries(Object.entries(others).filter(([one]) => one !== name));
    },
  );
  if (dryRun) return { ...result, text: `Would remove ${name} from ${file}.\n` };
  const backup = rewrite(before, editor.text);
  return { ...result, backup, text: `Removed ${name} from ${file}${backupText(backup)}.\nRestart ${title}.\n` };
}

/** Facts that determine the paths of the files. */
export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** How a client starts a server. Paths are absolute because desktop programs do not have the PATH of a shell. */
export interface ClientLaunch {
  readonly command: string;
  readonly args: readonly string[];
  /** Environment variables for the server: a client does not have the environment of a shell. */
  readonly env?: Readonly<Record<string, string>>;
}

interface McpClient {
  readonly title: string;
  /** The member with the servers. */
  readonly servers: 'mcpServers' | 'servers' | 'mcp_servers';
  /** Default: JSON with comments. */
  readonly format?: 'toml';
  file(machine: Machine): string;
}

function rulesOf({ platform }: Machine): typeof path.posix {
  return platform === 'win32' ? path.win32 : path.posix;
}

/** A file in the home directory. */
function home(...parts: string[]): McpClient['file'] {
  return (machine) => rulesOf(machine).join(machine.home, ...parts);
}

/** A file in the settings directory of desktop programs. */
function settings(...parts: string[]): McpClient['file'] {
  return (machine) => {
    const { platform, home, environment } = machine;
    const { join } = rulesOf(machine);
    if (platform === 'win32') return join(environment['APPDATA'] || join(home, 'AppData', 'Roaming'), ...parts);
    if (platform === 'darwin') return join(home, 'Library', 'Application Support', ...parts);
    return join(environment['XDG_CONFIG_HOME'] || join(home, '.config'), ...parts);
  };
}

/** An environment variable can move the configuration directory of Claude Code. */
function claudeCode(machine: Machine): string {
  const { environment, home: folder } = machine;
  return rulesOf(machine).join(environment['CLAUDE_CONFIG_DIR'] || folder, '.claude.json');
}

/** An environment variable can move the directory of Codex. */
function codex(machine: Machine): string {
  const { environment, home: folder } = machine;
  const { join } = rulesOf(machine);
  return join(environment['CODEX_HOME'] || join(folder, '.codex'), 'config.toml');
}

export const MCP_CLIENTS = {
  'claude-code': { title: 'Claude Code', servers: 'mcpServers', file: claudeCode },
  'claude-desktop': {
    title: 'Claude Desktop',
    servers: 'mcpServers',
    file: settings('Claude', 'claude_desktop_config.json'),
  },
  cursor: { title: 'Cursor', servers: 'mcpServers', file: home('.cursor', 'mcp.json') },
  vscode: { title: 'VS Code', servers: 'servers', file: settings('Code', 'User', 'mcp.json') },
  windsurf: { title: 'Windsurf', servers: 'mcpServers', file: home('.codeium', 'windsurf', 'mcp_config.json') },
  'gemini-cli': { title: 'Gemini CLI', servers: 'mcpServers', file: home('.gemini', 'settings.json') },
  codex: { title: 'Codex', servers: 'mcp_servers', format: 'toml', file: codex },
} as const satisfies Readonly<Record<string, McpClient>>;

export type McpClientName = keyof typeof MCP_CLIENTS;

/** True for a supported client. */
export function isMcpClient(name: string): name is McpClientName {
  return Object.hasOwn(MCP_CLIENTS, name);
}

/** Help for `--channel`. */
export const CHANNEL_ABOUT = 'pass on notes, chat and mentions to running sessions (Claude Code, preview)';

export const PERMISSIONS_ABOUT = 'with --channel: relay permission prompts to the chat with this agent of yours';

/** A server in the configuration of a client. */
export interface ServerEntry {
  /** Its name there. An entry with this name is replaced. */
  readonly name: string;
  readonly launch: ClientLaunch;
  /** The command that prints the entry for manual changes. */
  readonly shownBy: string;
  /** The next step of the user, in place of a restart. */
  readonly next?: string;
}

/**
 * The entry for svcd itself.
 * @param isChannel sessions get the items that arrive, see docs/mcp.md
 * @param permissions the agent that decides about permission prompts of sessions
 * @throws SvcError `invalid_request` if the client has no channels
 */
export function svcdEntry(
  client: McpClientName,
  launch: ClientLaunch,
  isChannel = false,
  permissions?: string,
): ServerEntry {
  const name = 'svcd';
  if (!isChannel && permissions === undefined) return { name, launch, shownBy: `svcd mcp print ${client}` };
  if (client !== 'claude-code') throw new SvcError('invalid_request', { message: 'Only claude-code has channels.' });
  const relay = permissions === undefined ? [] : ['--mcp-permissions', permissions];
  return {
    name,
    launch: { ...launch, args: [...launch.args, '--mcp-channel', ...relay] },
    shownBy: `svcd mcp print --channel ${permissions === undefined ? '' : `--permissions ${permissions} `}${client}`,
    next: `Channels are a preview. Start Claude Code with: claude --dangerously-load-development-channels server:${name}`,
  };
}

/** The entry to remove. @param name one that `add` does not write */
export function removedEntry(hub: boolean, name: string | undefined): { readonly name: string; readonly own: boolean } {
  const usual = hub ? 'svcd-hub' : 'svcd';
  return { name: name ?? usual, own: name === undefined || name === usual };
}

/** The entry for the hub. */
export function hubEntry(client: McpClientName, launch: ClientLaunch): ServerEntry {
  return { name: 'svcd-hub', launch, shownBy: `svcd mcp print --hub ${client}` };
}

function parsed(client: McpClientName, text: string): Editor | null {
  const { format }: McpClient = MCP_CLIENTS[client];
  return format === 'toml' ? tomlEditor(text) : jsonEditor(text);
}

/** @param remedy the last sentence of the error. @throws SvcError `config_invalid` */
function editorOf(client: McpClientName, text: string, remedy: string): Editor {
  const { servers, title, format }: McpClient = MCP_CLIENTS[client];
  const editor = parsed(client, text);
  const present = editor?.get([servers]);
  if (editor !== null && (present === undefined || isObject(present))) return editor;
  const wanted = format === 'toml' ? 'TOML' : 'a JSON object';
  throw new SvcError('config_invalid', {
    message: `The configuration of ${title} is not ${wanted} with servers, so it was not changed. ${remedy}`,
  });
}

/** The entry of a server. Undefined if there is none, null if the configuration cannot be parsed. */
export function serverIn(client: McpClientName, text: string, name: string): unknown {
  const editor = parsed(client, text);
  return editor === null ? null : editor.get([MCP_CLIENTS[client].servers, name]);
}

/** All entries. Empty if the configuration cannot be parsed. */
function entriesOf(client: McpClientName, text: string): Readonly<Record<string, unknown>> {
  const entries = parsed(client, text)?.get([MCP_CLIENTS[client].servers]);
  return isObject(entries) ? entries : {};
}

const OWN_PROGRAM = /^svcd?(?:\.[a-z]{1,4})?$/i;

function isOwnProgram(file: unknown): boolean {
  return typeof file === 'string' && OWN_PROGRAM.test(file.split(/[\\/]/).at(-1) ?? '');
}

/** The arguments of svc or svcd in an entry. Undefined if the entry starts another program. */
function tailOf(entry: unknown): readonly unknown[] | undefined {
  if (!isObject(entry) || !Array.isArray(entry['args'])) return undefined;
  const words: readonly unknown[] = [entry['command'], ...(entry['args'] as unknown[])];
  // The single file takes the name of the program as its first argument.
  const script = words.slice(0, 2).findLastIndex(isOwnProgram);
  return script < 0 ? undefined : words.slice(script + 1);
}

/** The names of all entries that start svc or svcd. Empty if the configuration cannot be read. */
export function ownEntries(client: McpClientName, machine: Machine): string[] {
  try {
    const { text } = readForeignFile(MCP_CLIENTS[client].file(machine), MAX_HOST_FILE_BYTES);
    return Object.entries(entriesOf(client, text)).flatMap(([name, entry]) =>
      tailOf(entry) === undefined ? [] : [name],
    );
  } catch {
    return [];
  }
}

/**
 * The name of the entry that starts the same server: it has the same arguments after the script, and the same data
 * directory. The entry with the wanted name counts first.
 */
function sameServer(client: McpClientName, text: string, { name, launch }: ServerEntry): string | undefined {
  const wanted = { tail: tailOf(launch), place: launch.env?.[DATA_DIR_VARIABLE] };
  if (wanted.tail === undefined) return undefined;
  const equal = Object.entries(entriesOf(client, text)).flatMap(([one, entry]) => {
    const env = isObject(entry) && isObject(entry['env']) ? entry['env'] : {};
    const found = { tail: tailOf(entry), place: env[DATA_DIR_VARIABLE] };
    return isDeepStrictEqual(found, wanted) ? [one] : [];
  });
  return equal.includes(name) ? name : equal[0];
}

const DATA_DIR_VARIABLE = 'SVCD_DATA_DIR';

/** Changes a configuration, and checks the result by parsing it. @throws SvcError `config_invalid` */
function change(
  editor: Editor,
  client: McpClientName,
  remedy: string,
  work: () => void,
  wanted: () => Readonly<Record<string, unknown>>,
): void {
  const { servers, title } = MCP_CLIENTS[client];
  const failed = (cause?: unknown) =>
    new SvcError('config_invalid', {
      message: `The notation of the servers in the configuration of ${title} is not supported, so it was not changed. ${remedy}`,
      cause,
    });
  const expected = wanted();
  let after: unknown;
  try {
    work();
    after = parsed(client, editor.text)?.get([servers]) ?? {};
  } catch (cause) {
    throw failed(cause);
  }
  if (!isDeepStrictEqual(plain(after), plain(expected))) throw failed();
}

/** Without prototypes and undefined members. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** Members of an entry with a URL. They contradict a command. */
const OF_ADDRESSES = [
  'url',
  'serverUrl',
  'httpUrl',
  'headers',
  'bearer_token_env_var',
  'http_headers',
  'env_http_headers',
];

/**
 * The configuration with a server added. The rest of the text and further members of the entry do not change.
 * @param text content of the file; empty if there is none
 * @throws SvcError `config_invalid` if it is no configuration of the client
 */
export function withServer(client: McpClientName, text: string, { name, launch, shownBy }: ServerEntry): string {
  const { servers, title } = MCP_CLIENTS[client];
  const remedy = `"${shownBy}" prints the entry to add.`;
  const editor = editorOf(client, text, remedy);
  const repeated = editor.repeated([servers, name]);
  if (repeated !== undefined)
    throw new SvcError('config_invalid', {
      message: `The configuration of ${title} contains ${JSON.stringify(repeated)} twice, so it was not changed. Remove one of both. ${remedy}`,
    });
  const { command, args, env = {} } = launch;
  const before = editor.get([servers, name]);
  const known = isObject(before) ? before : {};
  const hasEnv = Object.keys(env).length > 0;
  const type = servers === 'servers' || known['type'] !== undefined ? { type: 'stdio' } : {};
  const wanted = { ...type, command, args };
  const others = Object.entries(known).filter(([key]) => !OF_ADDRESSES.includes(key));
  const knownEnv = isObject(known['env']) ? known['env'] : {};
  const entry = { ...Object.fromEntries(others), ...wanted, ...(hasEnv ? { env: { ...knownEnv, ...env } } : {}) };
  const set = (path: readonly string[], value: Inline | undefined): void => editor.set([servers, name, ...path], value);
  change(
    editor,
    client,
    remedy,
    () => {
      if (!isObject(before)) return set([], hasEnv ? { ...wanted, env } : wanted);
      for (const key of OF_ADDRESSES) set([key], undefined);
      for (const [key, value] of Object.entries(wanted)) set([key], value);
      if (isObject(known['env'])) for (const [key, value] of Object.entries(env)) set(['env', key], value);
      else if (hasEnv) set(['env'], env);
    },
    () => ({ ...entriesOf(client, text), [name]: entry }),
  );
  return editor.text;
}
