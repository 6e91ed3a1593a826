/** The lines that a started daemon shows on a terminal, in place of its log. */
import { existsSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { isSingleFile, ownScript } from '../foundation/package-file.ts';
import { safeText } from '../surfaces/cli/text.ts';

export interface Started {
  /** Address of the API, `host:port`. */
  readonly api: string;
  readonly dataDir: string;
  /** See `svcCommand`. */
  readonly svc: string;
  /** No agent is registered. */
  readonly isNew: boolean;
}

/** Three lines: the panel, the data directory, the next command. */
export function startLines({ api, dataDir, svc, isNew }: Started): string {
  const next = isNew ? `${svc} serve 8080 --name demo` : `${svc} status`;
  return `Panel:  http://${api}/\nData:   ${safeText(dataDir)}\nNext:   ${next}   (in another terminal)\n`;
}

/**
 * How the user of this process calls `svc`. A checkout may not be installed, so its own program is named.
 * @param api address of a daemon that `svc` does not find without it; null for the default data directory
 */
export function svcCommand(api: string | null): string {
  const bin = dirname(ownScript());
  const isCheckout = !isSingleFile && existsSync(join(bin, 'svc')) && existsSync(join(bin, '../src'));
  const path = relative('', join(bin, 'svc'));
  const svc = !isCheckout ? 'svc' : path.startsWith('..') ? join(bin, 'svc') : `./${path}`;
  return api === null ? svc : `${svc} --api http://${api}`;
}
