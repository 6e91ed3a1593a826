/** Why a daemon does not answer: what its data directory, its configuration and the error say. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readConfigFile } from '../../../foundation/config/file.ts';
import { readDaemonInfo } from '../../../foundation/data-dir/daemon-info.ts';
import { CONFIG_FILE } from '../../../foundation/data-dir/names.ts';
import { isAlive } from '../../../foundation/data-dir/process.ts';
import { type Finding, findingsOf } from '../../../foundation/domain/findings.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { examineFiles } from '../../../foundation/examination/files.ts';
import { textMember } from '../../../foundation/json.ts';
import { UNPROVEN_REASON } from '../../../foundation/proven-connection.ts';
import type { Patient } from './patient.ts';

const daemon = findingsOf('daemon');
const WHERE = 'Start it with "svcd", or say where it is with --api or SVC_API.';

/** What the daemon itself answered: it is there, and refuses. */
function examineRefusal(error: SvcError, { api, connection }: Patient): Finding | null {
  const token = findingsOf('token');
  const hint = 'Set SVC_TOKEN to the api_token of its config.toml';
  if (error.code === 'unauthorized')
    return connection.token === undefined
      ? token.fail(`the daemon at ${api} asks for its token, and none was given`, `${hint}.`)
      : token.fail(`the daemon at ${api} does not accept the token`, `${hint}; somebody may have changed it.`);
  if (textMember(error.details, 'reason') === UNPROVEN_REASON) return token.fail(error.message, `${hint}.`);
  if (error.code === 'daemon_unreachable') return null;
  return daemon.fail(
    `the daemon at ${api} refuses: ${error.message}`,
    'Name it by the address that it listens on, with --api or SVC_API.',
  );
}

/** @param api where the daemon was asked; empty where it could not be */
function examineTraces(api: string, dataDir: string): Finding {
  const start = 'Start it with "svcd".';
  if (!existsSync(dataDir)) return daemon.info(`no svcd has run here yet: there is no ${dataDir}`, start);
  const info = readDaemonInfo(dataDir);
  if (info === null) return daemon.info(`the last daemon of ${dataDir} has ended in good order`, start);
  const { pid, api_addr } = info;
  if (!isAlive(pid))
    return daemon.info(`the last daemon of ${dataDir} (process ${pid}) ended without tidying up`, start);
  if (api_addr === null) return daemon.info(`a daemon of ${dataDir} (process ${pid}) is starting, or serves no API`);
  if (api.endsWith(api_addr))
    return daemon.fail(
      `process ${pid} should answer at ${api_addr}, and does not`,
      'It may hang: look at its log, and start it anew.',
    );
  return daemon.warn(
    `a daemon of this user answers elsewhere: at ${api_addr}`,
    `Leave --api and SVC_API out, or say --api http://${api_addr}`,
  );
}

function examineConfigFile(dataDir: string): Finding[] {
  try {
    readConfigFile(join(dataDir, CONFIG_FILE));
    return [];
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return [findingsOf('config').fail(error.message, 'Mend the line: svcd does not start with it.')];
  }
}

/** @param error what asking the daemon gave */
export async function examineAbsence(error: SvcError, patient: Patient): Promise<Finding[]> {
  const refusal = examineRefusal(error, patient);
  if (refusal !== null) return [refusal];
  const { api, dataDir, here } = patient;
  const reason = textMember(error.details, 'reason');
  const gone = daemon.fail(`the daemon at ${api} does not answer: ${reason === '' ? error.message : reason}`, WHERE);
  return here ? [gone, ...(await examineRemains(api, dataDir))] : [gone];
}

/** What a daemon that is not there left behind. */
async function examineRemains(api: string, dataDir: string): Promise<Finding[]> {
  const trace = examineTraces(api, dataDir);
  if (!existsSync(dataDir)) return [trace];
  return [trace, ...examineConfigFile(dataDir), ...(await examineFiles(dataDir, ''))];
}

/** Examines a data directory that no daemon runs on which could be asked. */
export async function examineDirectory(dataDir: string): Promise<Finding[]> {
  const gone = daemon.fail(`no daemon of ${dataDir} can be asked`, WHERE);
  return [gone, ...(await examineRemains('', dataDir))];
}
