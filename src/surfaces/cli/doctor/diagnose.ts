/** What the daemon finds when it examines itself, and what only the side that asks can see. */
import { type Finding, findingsOf } from '../../../foundation/domain/findings.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { examineMcp } from '../../../foundation/examination/mcp-greeting.ts';
import { textMember } from '../../../foundation/json.ts';
import type { AnswerOf } from '../client.ts';
import { examineAbsence } from './absent.ts';
import type { Patient } from './patient.ts';

function examineVersions({ version }: Patient, status: AnswerOf<'status'>): Finding[] {
  const versions = findingsOf('version');
  const hint = 'Restart the daemon so that both are the same.';
  return [
    status.version === version
      ? versions.pass(`svc and svcd are both ${version}`)
      : versions.warn(`svc is ${version}, the daemon ${status.version}`, hint),
    versions.info(`svc runs on Node ${process.version}`),
  ];
}

async function examineToken({ client, connection }: Patient): Promise<Finding[]> {
  if (connection.token === undefined) return [];
  const configuration = await client.configGet();
  if (textMember(configuration, 'api_token') !== '') return [];
  return [findingsOf('token').info('a token was given, and the daemon asks for none', 'Clear SVC_TOKEN.')];
}

/** What the daemon says of itself; that it could not say anything is a finding too. */
async function askDoctor({ client }: Patient): Promise<readonly Finding[]> {
  try {
    const { findings } = await client.nodeDoctor();
    return findings;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    const what = `the daemon could not examine itself: ${error.message}`;
    return [findingsOf('daemon').fail(what, 'The log of svcd may say why.')];
  }
}

/** Examines a daemon; what cannot be asked because it is not there is a finding, not an error. */
export async function diagnose(patient: Patient): Promise<readonly Finding[]> {
  const { client, api, connection } = patient;
  const status = await client.status().catch((error: unknown) => {
    if (error instanceof SvcError) return error;
    throw error;
  });
  if (status instanceof SvcError) return examineAbsence(status, patient);
  const daemon = findingsOf('daemon');
  const other = 'Another program has this port: say where svcd is with --api or SVC_API, or give it another api_addr.';
  if (textMember(status, 'node_aid') === '') return [daemon.fail(`what answers at ${api} is not svcd`, other)];
  const [token, found, mcp] = await Promise.all([examineToken(patient), askDoctor(patient), examineMcp(connection)]);
  return [
    daemon.pass(`the daemon answers at ${api}`),
    ...examineVersions(patient, status),
    ...token,
    // What matters is whether a client comes through from here.
    ...found.map((finding) => (finding.check === 'mcp' ? mcp : finding)),
  ];
}
