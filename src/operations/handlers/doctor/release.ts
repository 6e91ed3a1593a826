/** Whether the daemon comes back with the machine, and whether it is the newest. */
import { type Finding, findingsOf } from '../../../foundation/domain/findings.ts';
import { memberOf } from '../../../foundation/json.ts';
import type { Examination } from './examination.ts';

/** @param host what the daemon says of its process */
export function examineStart(host: unknown): Finding {
  const start = findingsOf('start');
  return memberOf(host, 'service') === true
    ? start.pass('svcd runs as a service: it comes back with the machine')
    : start.info('svcd was started by hand: it does not come back with the machine', 'svcd service install');
}

/** Asks nobody elsewhere: what is known of releases is what was heard last. */
export async function examineRelease({ ask, context }: Examination): Promise<readonly Finding[]> {
  const release = await ask.updateStatus({}, context);
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
