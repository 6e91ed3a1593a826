/** Looks for what keeps agents from being found and called. */
import { isLoopbackHost, parseAddress } from '../../../foundation/address.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { memberOf } from '../../../foundation/json.ts';
import { examineAbsence } from './absent.ts';
import { examineAgents } from './agents.ts';
import { examineFiles } from './files.ts';
import { type Finding, findingsOf } from './finding.ts';
import { examineMcp } from './mcp.ts';
import { examineNetwork } from './network.ts';
import { type FindingStatus, listMember, type Patient, textMember } from './patient.ts';
import { isSvcd } from './process.ts';
import { examineRelease, examineStart } from './release.ts';

function examineVersions({ version }: Patient, status: FindingStatus, host: unknown): Finding[] {
  const versions = findingsOf('version');
  const hint = 'Restart the daemon so that both are the same.';
  return [
    status.version === version
      ? versions.pass(`svc and svcd are both ${version}`)
      : versions.warn(`svc is ${version}, the daemon ${status.version}`, hint),
    versions.info(`svcd runs on Node ${textMember(host, 'node')}, svc on ${process.version}`),
  ];
}

function* examineToken({ connection }: Patient, configuration: unknown): Generator<Finding> {
  const token = findingsOf('token');
  const address = parseAddress(textMember(configuration, 'api_addr'));
  if (textMember(configuration, 'api_token') === '' && connection.token !== undefined)
    yield token.info('a token was given, and the daemon asks for none', 'Clear SVC_TOKEN.');
  if (address !== null && !isLoopbackHost(address.host))
    yield token.info('the API listens beyond this machine; who has the token may use it');
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

/** Examines a daemon; what cannot be asked because it is not there is a finding, not an error. */
export async function diagnose(patient: Patient): Promise<readonly Finding[]> {
  const { client, api, here } = patient;
  const status = await client.status().catch((error: unknown) => {
    if (error instanceof SvcError) return error;
    throw error;
  });
  if (status instanceof SvcError) return examineAbsence(status, patient);
  const daemon = findingsOf('daemon');
  const other = 'Another program has this port: say where svcd is with --api or SVC_API, or give it another api_addr.';
  if (textMember(status, 'node_aid') === '') return [daemon.fail(`what answers at ${api} is not svcd`, other)];
  const [configuration, host] = await Promise.all([client.configGet(), client.debugHost()]);
  const pid = memberOf(host, 'pid');
  const parts = await Promise.all([
    attempt('network', examineNetwork(patient)),
    attempt('publication', examineAgents(patient, status)),
    examineMcp(patient).then((finding) => [finding]),
    attempt('update', examineRelease(patient)),
    here && typeof pid === 'number' && isSvcd(pid)
      ? examineFiles(status.data_dir, textMember(configuration, 'key_dir'))
      : [findingsOf('data').info('the daemon runs on another machine: its files were not looked at')],
  ]);
  return [
    daemon.pass(`the daemon answers at ${api}`),
    ...examineVersions(patient, status, host),
    ...examineToken(patient, configuration),
    ...examineConfiguration(configuration),
    examineStart(host),
    ...parts.flat(),
  ];
}
