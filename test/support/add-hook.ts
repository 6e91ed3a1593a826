import { readDaemonInfo } from '../../src/foundation/data-dir/daemon-info.ts';
import { hookProof } from '../../src/foundation/hook-proof.ts';
import type { TestDaemon } from './daemon.ts';

export interface AddedHook {
  readonly aid: string;
  readonly kind: string;
  readonly command: readonly string[];
  readonly folder: string;
  readonly shell?: boolean;
  readonly parallel?: number;
}

/** The body that adds a hook, with the proof of the daemon's user. */
export function hookBody({ dataDir }: Pick<TestDaemon, 'dataDir'>, hook: AddedHook) {
  const key = Buffer.from(readDaemonInfo(dataDir)?.proof_key ?? '', 'base64url');
  return { ...hook, proof: hookProof(key, { shell: false, ...hook }) };
}

/** Adds a hook as `svc on` does. @returns its ID */
export async function addHook(daemon: TestDaemon, hook: AddedHook): Promise<string> {
  return (await daemon.call<{ id: string }>('POST', '/hooks', hookBody(daemon, hook))).id;
}
