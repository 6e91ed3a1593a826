/** Writes a server into the configuration file of an MCP client. */
import { constants, copyFileSync, existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname } from 'node:path';
import { PRIVATE_DIRECTORY_MODE, writeFileAtomic } from '../../foundation/files.ts';
import { type Machine, MCP_CLIENTS, type McpClientName, type ServerEntry, withServer } from './hosts.ts';

/** Reads a file and resolves links. */
function read(path: string): { readonly file: string; readonly text: string } {
  if (!existsSync(path)) return { file: path, text: '' };
  const file = realpathSync(path);
  return { file, text: readFileSync(file, 'utf8') };
}

/** Copies a file to a free backup name next to it. Earlier backups stay. @returns the path of the copy */
function keepBeside(file: string): string {
  for (let n = 1; ; n++) {
    const backup = `${file}.before-svcd${n === 1 ? '' : `-${n}`}`;
    try {
      copyFileSync(file, backup, constants.COPYFILE_EXCL);
      return backup;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
  }
}

/**
 * Adds a server to the configuration of a client and backs up the previous file.
 * @returns a description of the change
 * @throws SvcError `config_invalid` if the file is not a JSON object
 */
export function addServer(client: McpClientName, entry: ServerEntry, machine: Machine, dryRun: boolean): string {
  const { file, text } = read(MCP_CLIENTS[client].file(machine));
  const changed = withServer(client, text, entry);
  if (changed === text) return `${file} already has it.\n`;
  if (dryRun) return `Would write ${file}:\n${withServer(client, '', entry)}(and keep the rest of the file)\n`;
  mkdirSync(dirname(file), { recursive: true, mode: PRIVATE_DIRECTORY_MODE });
  const backup = text === '' ? '' : `; the previous file is ${keepBeside(file)}`;
  writeFileAtomic(file, changed);
  return `Added ${entry.name} to ${file}${backup}.\nRestart ${MCP_CLIENTS[client].title} to use it.\n`;
}
