/** The findings of the daemon about itself, and findings that need a client. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readConfigFile } from '../../../foundation/config/file.ts';
import { UNPROVEN_REASON } from '../../../foundation/daemon-proof.ts';
import { readDaemonInfo } from '../../../foundation/data-dir/daemon-info.ts';
import { isAlive } from '../../../foundation/data-dir/lock.ts';
import { CONFIG_FILE } from '../../../foundation/data-dir/paths.ts';
import { checkFiles } from '../../../foundation/diagnostics/files.ts';
import { checkMcp } from '../../../foundation/diagnostics/mcp.ts';
import { type Finding, findingsOf } from '../../../foundation/domain/findings.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { textMember } from '../../../foundation/json.ts';
import type { ClientOptions } from '../../../operations/client.ts';
import type { AnswerOf, SvcClient } from '../client.ts';

// Finds out why a daemon does not respond, from its data directory, its configuration and the error.

const daemon = findingsOf('daemon');
const HOW_TO_START = 'Start it with "svcd", or give its address with --api or SVC_API.';

/** The daemon responded with a refusal. */
function examineRefusal(error: SvcError, { api, connection }: ExaminedDaemon): Finding | null {
  const token = findingsOf('token');
  const hint = 'Set SVC_TOKEN to the api_token of its config.toml';
  if (error.code === 'unauthorized')
    return connection.token === undefined
      ? token.fail(`the daemon at ${api} requires its token, and none was given`, `${hint}.`)
      : token.fail(`the daemon at ${api} rejects the token`, `${hint}. It may have changed.`);
  if (textMember(error.details, 'reason') === UNPROVEN_REASON) return token.fail(error.message, `${hint}.`);
  if (error.code === 'daemon_unreachable') return null;
  return daemon.fail(
    `the daemon at ${api} refuses: ${error.message}`,
    'Use the address on which it listens, with --api or SVC_API.',
  );
}

/** @param api the address of the request; empty if there was none */
function examineTraces(api: string, dataDir: string): Finding {
  const start = 'Start it with "svcd".';
  if (!existsSync(dataDir)) return daemon.info(`svcd has not run here yet: ${dataDir} does not exist`, start);
  const info = readDaemonInfo(dataDir);
  if (info === null) return daemon.info(`the last daemon of ${dataDir} stopped cleanly`, start);
  const { pid, api_addr } = info;
  if (!isAlive(pid)) return daemon.info(`the last daemon of ${dataDir} (pid ${pid}) crashed or was killed`, start);
  if (api_addr === null) return daemon.info(`a daemon of ${dataDir} (pid ${pid}) is starting, or serves no API`);
  if (api.endsWith(api_addr))
    return daemon.fail(
      `pid ${pid} should respond at ${api_addr}, but does not`,
      'It may hang. Check its log, then restart it.',
    );
  return daemon.warn(
    `a daemon of this user responds at another address: ${api_addr}`,
    `Omit --api and SVC_API, or use --api http://${api_addr}`,
  );
}

function examineConfigFile(dataDir: string): Finding[] {
  try {
    readConfigFile(join(dataDir, CONFIG_FILE));
    return [];
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return [findingsOf('config').fail(error.message, 'Fix the line. svcd does not start with it.')];
  }
}

/** @param error the error of the request to the daemon */
export async function examineMissingDaemon(error: SvcError, patient: ExaminedDaemon): Promise<Finding[]> {
  const refusal = examineRefusal(error, patient);
  if (refusal !== null) return [refusal];
  const { api, dataDir, here } = patient;
  const reason = textMember(error.details, 'reason');
  const gone = daemon.fail(
    `the daemon at ${api} does not respond: ${reason === '' ? error.message : reason}`,
    HOW_TO_START,
  );
  return here ? [gone, ...(await examineRemains(api, dataDir, patient.isNamed))] : [gone];
}

/**
 * Traces of a stopped daemon.
 * @param isNamed the user gave an address, so this directory may belong to another daemon
 */
async function examineRemains(api: string, dataDir: string, isNamed: boolean): Promise<Finding[]> {
  const info = readDaemonInfo(dataDir);
  const isOther =
    isNamed &&
    existsSync(dataDir) &&
    (info?.api_addr === null || info?.api_addr === undefined || !api.endsWith(info.api_addr));
  if (isOther) return info !== null && isAlive(info.pid) ? [examineTraces(api, dataDir)] : [];
  const trace = examineTraces(api, dataDir);
  if (!existsSync(dataDir)) return [trace];
  return [trace, ...examineConfigFile(dataDir), ...(await checkFiles(dataDir, ''))];
}

/** Examines a data directory without a running daemon. */
export async function examineDirectory(dataDir: string): Promise<Finding[]> {
  const gone = daemon.fail(`no daemon of ${dataDir} responds`, HOW_TO_START);
  return [gone, ...(await examineRemains('', dataDir, false))];
}

// The target of `svc doctor`.

export interface ExaminedDaemon {
  readonly client: SvcClient;
  /** Base URL and token of the daemon. */
  readonly connection: ClientOptions;
  /** The address of the daemon as the user gave it. */
  readonly api: string;
  /** True if the daemon should run on this machine, so that its files can be checked. */
  readonly here: boolean;
  /** True if the user gave its address. */
  readonly isNamed: boolean;
  /** Default data directory of this user. */
  readonly dataDir: string;
  /** Version of this command. */
  readonly version: string;
}

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
