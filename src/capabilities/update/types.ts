/** Types that the parts of an update share. */
import type { UpdateState } from '../../foundation/domain/updates.ts';

/** A release in the registry that is newer than this svcd and has valid signatures. */
export interface Release {
  readonly version: string;
  /** URL of the tarball. */
  readonly tarball: URL;
  /** `sha512-…` of the tarball. The signatures cover it. */
  readonly integrity: string;
  /** Supported range of Node versions; `*` if none is given. */
  readonly node: string;
}

/** The last attempted update. */
export interface Attempt {
  readonly version: string;
  readonly outcome: 'ok' | 'failed' | 'rolled_back';
  /** Why the update failed; empty if it succeeded. */
  readonly error: string;
  /** Unix milliseconds. */
  readonly at: number;
}

/** Runs svcd as a system service and can switch to another version. */
export interface Supervisor {
  /** Requests the switch, for which this process is stopped. */
  switchTo(version: string): void;
  /** Requests a restart of the same version, for which this process is stopped. */
  restart(): void;
}

/** The update status. */
export interface UpdateStatus {
  readonly currentVersion: string;
  /** The latest version according to the registry; null before the first check or if it failed. */
  readonly latestVersion: string | null;
  readonly updateAvailable: boolean;
  /** The running step, or the result of the last update or check. */
  readonly state: UpdateState;
  /** Unix milliseconds; null before the first check. */
  readonly lastCheckAt: number | null;
  /** Why the update failed or was rolled back; empty otherwise. */
  readonly lastError: string;
  /** True if svcd runs as the installed system service. */
  readonly managed: boolean;
}
