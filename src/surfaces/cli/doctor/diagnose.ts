/** The findings of the daemon about itself, and findings that need a client. */

import { checkMcp } from '../../../foundation/diagnostics/mcp.ts';
import { type Finding, findingsOf } from '../../../foundation/domain/findings.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { textMember } from '../../../foundation/json.ts';
import type { AnswerOf } from '../client.ts';
import type { ExaminedDaemon } from './examined-daemon.ts';
import { examineMissingDaemon } from './missing-daemon.ts';

function examineVersions({ version }: ExaminedDaemon, status: AnswerOf<'status'>): Finding[] {
  const versions = findingsOf('version');
  const hint = 'Restart the daemon to run the same version.';
  return [
    status.version === version
      ? versions.pass(`svc and svcd both have version ${version}`)
      : versions.warn(`svc has version ${version}, the daemon ${status.version}`, hint),
    versions.info(`svc runs on Node ${process.version}`),
  ];
}

async function examineToken({ client, connection }: ExaminedDaemon): Promise<Finding[]> {
  if (connection.token === undefined) return [];
  const configuration = await client.configGet();
  if (textMember(configuration, 'api_token') !== '') return [];
  return [findingsOf('token').info('a token was given, but the daemon requires none', 'Unset SVC_TOKEN.')];
}

/** The findings of the daemon. A failure to get them is a finding too. */
async function askDoctor({ client }: ExaminedDaemon): Promise<readonly Finding[]> {
  try {
    const { findings } = await client.nodeDoctor();
    return findings;
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    const what = `the daemon could not check itself: ${error.message}`;
    return [findingsOf('daemon').fail(what, 'The log of svcd may show why.')];
  }
}

/** Examines a daemon. A missing daemon is a finding, not an error. */
export async function diagnose(patient: ExaminedDaemon): Promise<readonly Finding[]> {
  const { client, api, connection } = patient;
  const status = await client.status().catch((error: unknown) => {
    if (error instanceof SvcError) return error;
    throw error;
  });
  if (status instanceof SvcError) return examineMissingDaemon(status, patient);
  const daemon = findingsOf('daemon');
  const other = 'Another program uses this port. Give the address of svcd with --api or SVC_API, or change api_addr.';
  if (textMember(status, 'node_aid') === '') return [daemon.fail(`the program at ${api} is not svcd`, other)];
  const [token, found, mcp] = await Promise.all([examineToken(patient), askDoctor(patient), checkMcp(connection)]);
  return [
    daemon.pass(`the daemon responds at ${api}`),
    ...examineVersions(patient, status),
    ...token,
    // Whether a client can connect is decided here, not in the daemon.
    ...found.map((finding) => (finding.check === 'mcp' ? mcp : finding)),
  ];
}
