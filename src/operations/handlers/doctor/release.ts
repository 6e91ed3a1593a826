/** Checks of the installation: starts with the machine, newest release. */
import { type Finding, findingsOf } from '../../../foundation/domain/findings.ts';
import { memberOf } from '../../../foundation/json.ts';
import type { Examination } from './examination.ts';

/** @param host the process facts of the daemon */
export function examineStart(host: unknown): Finding {
  const start = findingsOf('start');
  return memberOf(host, 'service') === true
    ? start.pass('svcd runs as a system service: it starts with the machine', { code: 'system_service' })
    : start.info('svcd was started by hand: it does not start with the machine', 'svcd service install', {
        code: 'started_by_hand',
      });
}

/** Uses the cached release information, without network access. */
export async function examineRelease({ ask, context }: Examination): Promise<readonly Finding[]> {
  const release = await ask.updateStatus({}, context);
  const { current_version, latest_version, update_available, state, last_error } = release;
  const update = findingsOf('update');
  const why = last_error === undefined ? '' : `: ${last_error}`;
  if (state === 'rolled_back')
    return [
      update.warn(
        `the last update was rolled back${why}`,
        'The previous release is running. Try again with the next release.',
        { code: 'update_rolled_back', values: { reason: why } },
      ),
    ];
  if (state === 'failed')
    return [
      update.info(`the last check for updates failed${why}`, undefined, {
        code: 'update_check_failed',
        values: { reason: why },
      }),
    ];
  if (!update_available) return [];
  return [
    update.info(`svcd ${latest_version} is available, this is ${current_version}`, 'svc update --confirm', {
      code: 'update_available',
      values: { latest: latest_version ?? '', current: current_version },
    }),
  ];
}
