/** `--via`: sends commands to a remote node through the local daemon. */
import { SvcError } from '../../foundation/errors.ts';
import { VIA_HEADERS } from '../../operations/via-headers.ts';
import type { CliContext, GlobalOptions, Via } from './context.ts';

/**
 * The password to present, from the prompt, the environment, or standard input.
 * @throws SvcError `invalid_request` if a password was requested and is empty
 */
async function readPassword(local: CliContext, via: string, ask: boolean): Promise<string | undefined> {
  const { env, stdin } = local.io;
  const kept = env['SVC_VIA_PASSWORD'] || undefined;
  if (!ask || (stdin.isTTY !== true && kept !== undefined)) return kept;
  const typed = await local.readSecret(`password of ${via}: `);
  if (typed !== '') return typed;
  const message = 'The password is empty. Type it, pipe it, or set SVC_VIA_PASSWORD.';
  throw new SvcError('invalid_request', { message });
}

/**
 * The target of a command. Undefined for the local daemon.
 * @param local the context of the local daemon, whose address book has the labels
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
