/** Whether the daemon comes back with the machine, and whether it is the newest. */
import { SvcError } from '../../../foundation/errors.ts';
import { memberOf } from '../../../foundation/json.ts';
import { type Finding, findingsOf } from './finding.ts';
import type { Patient } from './patient.ts';

/** @param host what the daemon says of its process */
export function examineStart(host: unknown): Finding {
  const start = findingsOf('start');
  return memberOf(host, 'service') === true
    ? start.pass('svcd runs as a service: it comes back with the machine')
    : start.info('svcd was started by hand: it does not come back with the machine', 'svcd service install');
}

/** Asks nobody but the daemon: what it knows of releases is what it was told last. */
export async function examineRelease({ client }: Patient): Promise<Finding[]> {
  const release = await client.updateStatus().catch((error: unknown) => {
    // A daemon that is older than this command.
    if (error instanceof SvcError && error.code === 'not_found') return null;
    throw error;
  });
  if (release === null) return [];
  const { current_version, latest_version, update_available, state, last_error } = release;
  const update = findingsOf('update');
  const why = last_error === undefined ? '' : `: ${last_error}`;
  if (state === 'rolled_back')
    return [
      update.warn(`the last update was taken back${why}`, 'The release before runs; try again with the next one.'),
    ];
  if (state === 'failed') return [update.info(`the last look for updates failed${why}`)];
  if (!update_available) return [];
  return [update.info(`svcd ${latest_version} is there, this is ${current_version}`, 'svc update --confirm')];
}
