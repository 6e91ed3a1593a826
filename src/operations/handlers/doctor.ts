/** The handler of the operation that looks for what keeps agents from being found and called. */
import { isLoopbackHost, parseAddress } from '../../foundation/address.ts';
import type { Clock } from '../../foundation/clock.ts';
import { type Finding, findingsOf, isWell } from '../../foundation/domain/findings.ts';
import { SvcError } from '../../foundation/errors.ts';
import { examineFiles } from '../../foundation/examination/files.ts';
import { examineMcp } from '../../foundation/examination/mcp-greeting.ts';
import { listMember, memberOf, textMember } from '../../foundation/json.ts';
import type { doctorOperations } from '../doctor.ts';
import type { Handlers } from '../operation.ts';
import { examineAgents } from './doctor/agents.ts';
import type { Examination, OwnAnswer } from './doctor/examination.ts';
import { examineNetwork } from './doctor/network.ts';
import { examineRelease, examineStart } from './doctor/release.ts';

export interface DoctorHandlerDependencies {
  readonly ask: Examination['ask'];
  readonly clock: Pick<Clock, 'now'>;
  /** Dials some of the known nodes. */
  readonly dialSome: Examination['dialSome'];
  /** Where the daemon answers on this machine: a URL. */
  readonly api: () => string;
  /** The API token; empty where none is asked for. */
  readonly token: () => string;
}

function examineVersion({ version }: OwnAnswer<'status'>, host: unknown): Finding {
  return findingsOf('version').info(`svcd ${version} runs on Node ${textMember(host, 'node')}`);
}

function* examineDatabase({ database_rolled_back }: OwnAnswer<'status'>): Generator<Finding> {
  if (database_rolled_back !== true) return;
  yield findingsOf('data').fail(
    'the database lost its newest changes: its journal was lost or damaged in a crash, or an old copy was put in place; all agents are closed to other nodes',
    'Check the access lists, restore a backup if something is missing, then run "svc access confirm".',
  );
}

function* examineToken(configuration: unknown): Generator<Finding> {
  const address = parseAddress(textMember(configuration, 'api_addr'));
  if (address !== null && !isLoopbackHost(address.host))
    yield findingsOf('token').info('the API listens beyond this machine; who has the token may use it');
}

function* examineConfiguration(configuration: unknown): Generator<Finding> {
  const config = findingsOf('config');
  const waiting = listMember(configuration, 'restart_required').join(', ');
  const overridden = Object.keys(Object(memberOf(configuration, 'overridden'))).join(', ');
  if (waiting !== '') yield config.warn(`changed and not in force yet: ${waiting}`, 'Restart svcd to apply them.');
  if (overridden !== '') yield config.info(`decided by a flag or the environment, not by config.toml: ${overridden}`);
}

/** What a check cannot find out is a finding too, not the end of the examination. */
async function attempt(check: Finding['check'], work: Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return [findingsOf(check).fail(`this could not be examined: ${error.message}`, 'The log of svcd may say why.')];
  }
}

export function doctorHandlers(dependencies: DoctorHandlerDependencies): Handlers<typeof doctorOperations> {
  const { ask, clock, dialSome, api, token } = dependencies;
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
        examineMcp({ baseUrl: api(), token: token() }).then((finding) => [finding]),
        attempt('update', examineRelease(examination)),
        examineFiles(status.data_dir, textMember(configuration, 'key_dir')),
      ]);
      const findings = [
        examineVersion(status, host),
        ...examineDatabase(status),
        ...examineToken(configuration),
        ...examineConfiguration(configuration),
        examineStart(host),
        ...parts.flat(),
      ];
      return { ok: isWell(findings), findings };
    },
  };
}
