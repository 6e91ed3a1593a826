/** daemon.json: how programs on this machine find the daemon of a data directory. */
import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { DEFAULT_API_ADDR } from '../address.ts';
import { SvcError } from '../errors.ts';
import { isObject } from '../json.ts';
import { isAlive } from './lock.ts';
import { DATABASE_FILE } from './paths.ts';

const FILE_NAME = 'daemon.json';

/** How other MCP clients of the user reach a node without an API. */
export interface SharedMcp {
  /** `host:port` on loopback. */
  readonly addr: string;
  /** A secret. Only the user can read this file. */
  readonly token: string;
}

export interface DaemonInfo {
  readonly pid: number;
  /** `host:port` that a program on this machine can connect to; null until the API listens. */
  readonly api_addr: string | null;
  /** ISO 8601 UTC. */
  readonly started_at: string;
  readonly version: string;
  /** Key with which the API proves its identity, base64url; see daemon-proof.ts. */
  readonly proof_key: string;
  /** Of a node without an API. */
  readonly mcp?: SharedMcp;
}

export function daemonInfoFile(dataDir: string): string {
  return join(dataDir, FILE_NAME);
}

/**
 * The content of daemon.json, or null. After a crash it describes the crashed daemon: only the lock shows if a daemon
 * runs.
 */
export function readDaemonInfo(dataDir: string): DaemonInfo | null {
  let info: unknown;
  try {
    info = JSON.parse(readFileSync(daemonInfoFile(dataDir), 'utf8'));
  } catch {
    return null;
  }
  return isDaemonInfo(info) ? info : null;
}

function isDaemonInfo(value: unknown): value is DaemonInfo {
  if (!isObject(value)) return false;
  const { pid, api_addr, started_at, version, proof_key, mcp } = value;
  return (
    typeof pid === 'number' &&
    (api_addr === null || typeof api_addr === 'string') &&
    typeof started_at === 'string' &&
    typeof version === 'string' &&
    typeof proof_key === 'string' &&
    (mcp === undefined || (isObject(mcp) && typeof mcp['addr'] === 'string' && typeof mcp['token'] === 'string'))
  );
}

/** True if a daemon has used this directory, and none runs on it now. */
export function isStopped(dataDir: string): boolean {
  const info = readDaemonInfo(dataDir);
  return existsSync(join(dataDir, DATABASE_FILE)) && (info === null || !isAlive(info.pid));
}

/** The address in daemon.json. After a crash it is that of the crashed daemon. */
export function recordedDaemonAddress(dataDir: string | null): string {
  const address = (dataDir === null ? null : readDaemonInfo(dataDir))?.api_addr ?? null;
  return `http://${address ?? DEFAULT_API_ADDR}`;
}

/**
 * The address of the daemon of a named directory. Neither the default address nor that of a crashed daemon is used,
 * because another node may have it.
 * @returns the error `daemon_unreachable` if there is none
 */
export function runningDaemonAddress(dataDir: string): string | SvcError {
  const directory = resolve(dataDir);
  const info = readDaemonInfo(directory);
  const isThere = info !== null && isAlive(info.pid);
  if (isThere && info.api_addr !== null) return `http://${info.api_addr}`;
  const message = isThere
    ? `The daemon of ${directory} (process ${info.pid}) is still starting, or has no API.`
    : `No daemon runs on ${directory} (SVCD_DATA_DIR). Start it with "svcd", or give its address with --api.`;
  return new SvcError('daemon_unreachable', { message });
}
