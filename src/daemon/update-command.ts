/** `svcd update`: through the running daemon if there is one, otherwise directly. */
import { Command } from 'commander';
import { systemClock } from '../foundation/clock.ts';
import { readDaemonInfo } from '../foundation/data-dir/daemon-info.ts';
import { SvcError } from '../foundation/errors.ts';
import { VERSION } from '../foundation/version.ts';
import { createClient } from '../operations/client.ts';
import { updateOperations } from '../operations/process.ts';
import { type UpdateView, updateAndFollow } from '../operations/update-client.ts';
import { exampleHelp } from '../surfaces/cli/command-group.ts';
import { updateText } from '../surfaces/cli/commands/update.ts';
import { daemonFetch } from '../surfaces/cli/daemon-fetch.ts';
import { releaseSource, updatesDisabled } from './package.ts';

export interface UpdateCommandDependencies {
  readonly dataDir: () => string;
  readonly environment: NodeJS.ProcessEnv;
  readonly print: (text: string) => void;
}

/** The update status of the daemon of the data directory; null if none is running. */
async function throughDaemon(dataDir: string, token: string | undefined, check: boolean): Promise<UpdateView | null> {
  const address = readDaemonInfo(dataDir)?.api_addr;
  if (address === undefined || address === null) return null;
  const baseUrl = `http://${address}`;
  const fetches = daemonFetch({ baseUrl, token: token ?? '', dataDir });
  const options = { baseUrl, ...fetches, ...(token === undefined ? {} : { token }) };
  const client = createClient(options, updateOperations);
  try {
    return await (check ? client.updateStatus({ check: true }) : updateAndFollow(client));
  } catch (error) {
    // A crashed daemon leaves its address behind.
    if (error instanceof SvcError && error.code === 'daemon_unreachable') return null;
    throw error;
  }
}

async function runDirectly(environment: NodeJS.ProcessEnv): Promise<UpdateView> {
  const disabled = updatesDisabled();
  const base = { current_version: VERSION, managed: false, state: 'idle', last_check_at: null } as const;
  if (disabled !== '') return { ...base, latest_version: null, update_available: false, warning: disabled };
  const source = releaseSource(environment, systemClock);
  const { version, release } = await source.latest(VERSION, new AbortController().signal);
  return { ...base, latest_version: version, update_available: release !== null };
}

/** The command. */
export function updateCommand({ dataDir, environment, print }: UpdateCommandDependencies): Command {
  return new Command('update')
    .description('check for a newer svcd and have the installed service switch to it')
    .addHelpText('after', exampleHelp('svcd update --check', 'svcd update'))
    .option('--check', 'only check')
    .action(async ({ check = false }: { check?: boolean }) => {
      const result =
        (await throughDaemon(dataDir(), environment['SVC_TOKEN'], check)) ?? (await runDirectly(environment));
      print(`${updateText(result)}\n`);
      if (result.state === 'failed' || (!check && result.managed && result.update_available)) process.exitCode = 1;
    });
}
