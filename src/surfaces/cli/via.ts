/** `--via`: commands that are meant for a remote node, sent through the daemon on this machine. */
import { SvcError } from '../../foundation/errors.ts';
import { VIA_HEADERS } from '../../operations/via-headers.ts';
import type { CliContext, GlobalOptions, Via } from './context.ts';

/**
 * The password to present: typed at a terminal; where there is none, from the environment, else from standard input.
 * @throws SvcError `invalid_request` where one was to be asked for and none came
 */
async function readPassword(local: CliContext, via: string, ask: boolean): Promise<string | undefined> {
  const { env, stdin } = local.io;
  const kept = env['SVC_VIA_PASSWORD'] || undefined;
  if (!ask || (stdin.isTTY !== true && kept !== undefined)) return kept;
  const typed = await local.readSecret(`password of ${via}: `);
  if (typed !== '') return typed;
  const message = 'The password is empty: type it, pipe it in, or set SVC_VIA_PASSWORD.';
  throw new SvcError('invalid_request', { message });
}

/**
 * Finds out where a command is to go; undefined for the daemon on this machine.
 * @param local the context of that daemon, whose address book knows the labels
 */
export async function readVia(local: CliContext, options: GlobalOptions): Promise<Via | undefined> {
  const { via, viaAs, viaPassword } = options;
  if (via === undefined) return undefined;
  const aid = await local.aid(via);
  const password = await readPassword(local, via, viaPassword === true);
  return {
    aid,
    headers: {
      ...(password === undefined ? {} : { [VIA_HEADERS.accessToken]: password }),
      ...(viaAs === undefined ? {} : { [VIA_HEADERS.localAid]: await local.aid(viaAs) }),
    },
  };
}
