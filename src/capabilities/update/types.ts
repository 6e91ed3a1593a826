/** What the parts of an update hand to each other. */
import type { UpdateState } from '../../foundation/domain/updates.ts';

/** A release that the registry offers: newer than this svcd, and its signatures hold. */
export interface Release {
  readonly version: string;
  /** Where the tarball is. */
  readonly tarball: URL;
  /** `sha512-…` of the tarball: what is signed. */
  readonly integrity: string;
  /** Range of Node versions that it works with; `*` where it names none. */
  readonly node: string;
}

/** The last update that was tried. */
export interface Attempt {
  readonly version: string;
  readonly outcome: 'ok' | 'failed' | 'rolled_back';
  /** Why it was not kept; empty where it was. */
  readonly error: string;
  /** Unix milliseconds. */
  readonly at: number;
}

/** Runs svcd as a service and can put another version in its place. */
export interface Supervisor {
  /** Asks for the switch; this process is stopped soon after. */
  switchTo(version: string): void;
  /** Asks for a new start of the same version; this process is stopped soon after. */
  restart(): void;
}

/** How it stands with updates. */
export interface UpdateStatus {
  readonly currentVersion: string;
  /** What the registry calls the latest; null before the first look, and where that was not to be had. */
  readonly latestVersion: string | null;
  readonly updateAvailable: boolean;
  /** What is under way, or how the last update or look ended. */
  readonly state: UpdateState;
  /** Unix milliseconds; null before the first look. */
  readonly lastCheckAt: number | null;
  /** Why it failed or was rolled back; empty where it did not. */
  readonly lastError: string;
  /** True where svcd runs as the installed service. */
  readonly managed: boolean;
}
