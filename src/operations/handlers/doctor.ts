/** The handler of the doctor operation. */
import { isLoopbackHost, parseAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { checkFiles } from '../../foundation/diagnostics/files.ts';
import { checkMcp } from '../../foundation/diagnostics/mcp.ts';
import { type Finding, findingsOf, hasNoFailures } from '../../foundation/domain/findings.ts';
import { SvcError } from '../../foundation/errors.ts';
import { listMember, memberOf, textMember } from '../../foundation/json.ts';
import type { doctorOperations } from '../doctor.ts';
import type { Handlers } from '../operation.ts';
import { examineAgents } from './doctor/agents.ts';
import type { Examination, OwnAnswer } from './doctor/examination.ts';
import { examineNetwork } from './doctor/network.ts';
import { examinePublicNames, type PublicNamesExamination } from './doctor/public-names.ts';

// Checks of the installation: starts with the machine, newest release.

/** @param host the process facts of the daemon */
function examineStart(host: unknown): Finding {
  const start = findingsOf('start');
  return memberOf(host, 'service') === true
    ? start.pass('svcd runs as a system service: it starts with the machine', { code: 'system_service' })
    : start.info('svcd was started by hand: it does not start with the machine', 'svcd service install', {
        code: 'started_by_hand',
      });
}

/** Uses the cached release information, without network access. */
async function examineRelease({ ask, context }: Examination): Promise<readonly Finding[]> {
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

export interface DoctorHandlerDependencies {
  readonly publicNames: PublicNamesExamination;
  readonly ask: Examination['ask'];
  readonly clock: Clock;
  /** Dials some known nodes. */
  readonly dialSome: Examination['dialSome'];
  /** URL of the API on this machine. */
  readonly api: () => string;
  /** The API token, or empty. */
  readonly token: () => string;
}

function examineVersion({ version }: OwnAnswer<'status'>, host: unknown): Finding {
  const node = textMember(host, 'node');
  return findingsOf('version').info(`svcd ${version} runs on Node ${node}`, undefined, {
    code: 'svcd_version',
    values: { version, node },
  });
}

function* examineDatabase({ database_rolled_back }: OwnAnswer<'status'>): Generator<Finding> {
  if (database_rolled_back !== true) return;
  yield findingsOf('data').fail(
    'the database lost its latest changes, after a crash or because an old copy was restored; all agents are closed to other nodes',
    'Check the access lists, restore a backup if something is missing, then run "svc access confirm".',
    { code: 'database_rolled_back' },
  );
}

function examinePackages({ missing_packages: missing = [] }: OwnAnswer<'status'>): Finding[] {
  return missing.map((text) => {
    const [what = '', ...hint] = text.split(/(?<=\.) /);
    return findingsOf('network').fail(what, hint.join(' '));
  });
}

function* examineToken(configuration: unknown): Generator<Finding> {
  const address = parseAddress(textMember(configuration, 'api_addr'));
  if (address !== null && !isLoopbackHost(address.host))
    yield findingsOf('token').info(
      'the API accepts connections from other machines; anyone with the token can use it',
      undefined,
      { code: 'api_is_remote' },
    );
}

function* examineConfiguration(configuration: unknown): Generator<Finding> {
  const config = findingsOf('config');
  const waiting = listMember(configuration, 'restart_required').join(', ');
  const overridden = Object.keys(Object(memberOf(configuration, 'overridden'))).join(', ');
  if (waiting !== '')
    yield config.warn(`changed, but not applied yet: ${waiting}`, 'Restart svcd to apply them.', {
      code: 'settings_pending',
      values: { keys: waiting },
    });
  if (overridden !== '')
    yield config.info(`set by a flag or the environment, not by config.toml: ${overridden}`, undefined, {
      code: 'settings_overridden',
      values: { keys: overridden },
    });
}

/** A failed check is a finding too, and the other checks continue. */
async function attempt(check: Finding['check'], work: Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    const name = { code: 'check_failed', values: { error: error.message } } as const;
    return [findingsOf(check).fail(`the check failed: ${error.message}`, 'See the log of svcd for the cause.', name)];
  }
}

export function doctorHandlers(dependencies: DoctorHandlerDependencies): Handlers<typeof doctorOperations> {
  const { ask, clock, dialSome, api, token, publicNames } = dependencies;
  return {
    nodeDoctor: async (_input, context) => {
      const examination = { ask, context, dialSome, now: clock.now() };
      const [status, configuration, host] = await Promise.all([
        ask.status({}, context),
        ask.configGet({}, context),
        ask.debugHost({}, context),
      ]);
      const parts = await Promise.all([
        attempt('network', examineNetwork(examination)),
        attempt('publication', examineAgents(examination, status)),
        attempt('reachability', examinePublicNames(publicNames)),
        checkMcp({ baseUrl: api(), token: token() }).then((finding) => [finding]),
        attempt('update', examineRelease(examination)),
        checkFiles(status.data_dir, textMember(configuration, 'key_dir')),
      ]);
      const findings = [
        examineVersion(status, host),
        ...examineDatabase(status),
        ...examinePackages(status),
        ...examineToken(configuration),
        ...examineConfiguration(configuration),
        examineStart(host),
        ...parts.flat(),
      ];
      return { ok: hasNoFailures(findings), findings };
    },
  };
}
