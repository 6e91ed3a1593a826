/** Builds the updater of this svcd from its location, its supervisor and its npm. */
import { Installer } from '../capabilities/update/installer.ts';
import { Releases } from '../capabilities/update/releases.ts';
import type { Supervisor } from '../capabilities/update/types.ts';
import { Updater } from '../capabilities/update/updater.ts';
import { memberOf } from '../foundation/json.ts';
import { VERSION } from '../foundation/version.ts';
import type { Foundation } from './foundation.ts';
import { nodeProgram, npmOf, PACKAGE, releaseSource, updatesDisabled, withoutSvcdSettings } from './package.ts';

/** The C library in npm's terms; empty on platforms without a choice. */
function libcOfThis(): string {
  if (process.platform !== 'linux') return '';
  const glibc = memberOf(process.report.getReport(), 'header', 'glibcVersionRuntime');
  return glibc === undefined ? 'musl' : 'glibc';
}

/** @param supervisor the supervisor of this process; null if there is none */
export function buildUpdater(
  { life, clock, log, dataDir, meta }: Pick<Foundation, 'life' | 'clock' | 'log' | 'dataDir' | 'meta'>,
  environment: NodeJS.ProcessEnv,
  supervisor: Supervisor | null,
): Updater {
  const releases = new Releases(dataDir.path);
  const source = releaseSource(environment, clock);
  const options = {
    name: PACKAGE,
    node: nodeProgram(),
    nodeVersion: process.versions.node,
    platform: () => ({ os: process.platform, cpu: process.arch, libc: libcOfThis() }),
    environment: withoutSvcdSettings(environment),
  };
  const installer = new Installer(options, source, npmOf(environment), releases);
  const updater = new Updater(
    { currentVersion: VERSION, disabled: updatesDisabled() },
    { source, installer, releases, supervisor, store: meta, clock, log },
  );
  life.add('acting', updater);
  return updater;
}
