/** The MCP clients that `svcd mcp` and `svc mcp use` support: paths and formats of their configuration files. */

import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  applyEdits,
  type FormattingOptions,
  findNodeAtLocation,
  getNodeValue,
  modify,
  type Node,
  type ParseError,
  parseTree,
} from 'jsonc-parser';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import { copyForeignFile, type ForeignFile, readForeignFile, writeForeignFile } from '../../foundation/foreign-file.ts';
import { isObject } from '../../foundation/json.ts';

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

/**
 * Adds a server to the configuration of a client and backs up the previous file.
 * @returns a description of the change
 * @throws SvcError `config_invalid` if the file is not a JSON object, `not_writable`
 */
export function addServer(client: McpClientName, entry: ServerEntry, machine: Machine, dryRun: boolean): string {
  const before = readForeignFile(MCP_CLIENTS[client].file(machine), MAX_HOST_FILE_BYTES);
  const { file, text } = before;
  const changed = withServer(client, text, entry);
  if (changed === text) return `${file} already has it.\n`;
  if (dryRun) return `Would write ${file}:\n${withServer(client, '', entry)}(and keep the rest of the file)\n`;
  const backup = text === '' ? '' : `; the previous file is ${keepBeside(before)}`;
  writeForeignFile(before, changed);
  return `Added ${entry.name} to ${file}${backup}.\nRestart ${MCP_CLIENTS[client].title} to use it.\n`;
}

const BOM = '\uFEFF';

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
  readonly servers: 'mcpServers' | 'servers';
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
} as const satisfies Readonly<Record<string, McpClient>>;

export type McpClientName = keyof typeof MCP_CLIENTS;

/** True for a supported client. */
export function isMcpClient(name: string): name is McpClientName {
  return Object.hasOwn(MCP_CLIENTS, name);
}

/** A server in the configuration of a client. */
export interface ServerEntry {
  /** Its name there. An entry with this name is replaced. */
  readonly name: string;
  readonly launch: ClientLaunch;
  /** The command that prints the entry for manual changes. */
  readonly shownBy: string;
}

/** The entry for svcd itself. */
export function svcdEntry(client: McpClientName, launch: ClientLaunch): ServerEntry {
  return { name: 'svcd', launch, shownBy: `svcd mcp print ${client}` };
}

/** The entry for the hub. */
export function hubEntry(client: McpClientName, launch: ClientLaunch): ServerEntry {
  return { name: 'svcd-hub', launch, shownBy: `svcd mcp print --hub ${client}` };
}

/**
 * A configuration and its parsed tree, or null if it is not a JSON object. Comments and a byte order mark are allowed.
 */
function read(text: string) {
  const mark = text.startsWith(BOM) ? BOM : '';
  const json = text.slice(mark.length);
  const written = json.trim() === '' ? '{}' : json;
  const errors: ParseError[] = [];
  const tree = parseTree(written, errors, { allowTrailingComma: true });
  return tree?.type === 'object' && errors.length === 0 ? { mark, written, tree } : null;
}

/** A member on the path to the entry, or of the entry, that occurs twice. Parsers differ in which one they use. */
function repeatedMember(tree: Node, path: readonly string[]): string | undefined {
  let at: Node | undefined = tree;
  for (const name of path) {
    const found: Node[] = (at?.children ?? []).filter(({ children }) => children?.[0]?.value === name);
    if (found.length > 1) return name;
    at = found[0]?.children?.[1];
  }
  const names = at?.type === 'object' ? (at.children ?? []).map(({ children }) => String(children?.[0]?.value)) : [];
  return names.find((name, i) => names.indexOf(name) !== i);
}

/** The entry of a server. Undefined if there is none, null if the configuration cannot be parsed. */
export function serverIn(client: McpClientName, text: string, name: string): unknown {
  const config = read(text);
  if (config === null) return null;
  const node = findNodeAtLocation(config.tree, [MCP_CLIENTS[client].servers, name]);
  return node === undefined ? undefined : getNodeValue(node);
}

/** The indentation of the file, so that a new entry matches. */
function formattingOf(text: string): FormattingOptions {
  const [, indent = '  '] = /^([ \t]+)\S/m.exec(text) ?? [];
  return { insertSpaces: !indent.startsWith('\t'), tabSize: indent.length, eol: text.includes('\r\n') ? '\r\n' : '\n' };
}

/** Members of an entry with a URL. They contradict a command. */
const OF_ADDRESSES = ['url', 'serverUrl', 'httpUrl', 'headers'];

/**
 * The configuration with a server added. The rest of the text and further members of the entry do not change.
 * @param text content of the file; empty if there is none
 * @throws SvcError `config_invalid` if it is not a JSON object
 */
export function withServer(client: McpClientName, text: string, { name, launch, shownBy }: ServerEntry): string {
  const { servers, title } = MCP_CLIENTS[client];
  const config = read(text);
  const present = config === null ? undefined : findNodeAtLocation(config.tree, [servers]);
  if (config === null || (present !== undefined && present.type !== 'object'))
    throw new SvcError('config_invalid', {
      message: `The configuration of ${title} is not a JSON object with servers, so it was not changed. "${shownBy}" prints the entry to add.`,
    });
  const repeated = repeatedMember(config.tree, [servers, name]);
  if (repeated !== undefined)
    throw new SvcError('config_invalid', {
      message: `The configuration of ${title} contains ${JSON.stringify(repeated)} twice, so it was not changed. Remove one of both. "${shownBy}" prints the entry to add.`,
    });
  const { command, args, env = {} } = launch;
  const before = serverIn(client, text, name);
  const known = isObject(before) ? before : {};
  const type = servers === 'servers' || known['type'] !== undefined ? { type: 'stdio' } : {};
  const wanted = { ...type, command, args };
  const options = { formattingOptions: formattingOf(config.written) };
  let { written } = config;
  const set = (path: readonly string[], value: unknown): void => {
    const full = [servers, name, ...path];
    const tree = parseTree(written, [], { allowTrailingComma: true });
    const node = tree === undefined ? undefined : findNodeAtLocation(tree, full);
    const now: unknown = node === undefined ? undefined : getNodeValue(node);
    if (isDeepStrictEqual(now, value)) return;
    written = applyEdits(written, modify(written, full, value, options));
  };
  if (!isObject(before)) set([], Object.keys(env).length === 0 ? wanted : { ...wanted, env });
  else {
    for (const key of OF_ADDRESSES) set([key], undefined);
    for (const [key, value] of Object.entries(wanted)) set([key], value);
    if (isObject(known['env'])) for (const [key, value] of Object.entries(env)) set(['env', key], value);
    else if (Object.keys(env).length > 0) set(['env'], env);
  }
  return config.mark + (written.endsWith('\n') || text.trim() !== '' ? written : `${written}\n`);
}
