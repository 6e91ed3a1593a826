/** `--via`: commands that are meant for a remote node, sent through the daemon on this machine. */
import type { CliContext, GlobalOptions, Via } from './context.ts';

/**
 * Finds out where a command is to go; undefined for the daemon on this machine.
 * @param local the context of that daemon, whose address book knows the labels
 */
export async function readVia(local: CliContext, options: GlobalOptions): Promise<Via | undefined> {
  const { via, viaAs, viaPassword } = options;
  if (via === undefined) return undefined;
  const aid = await local.aid(via);
  const asked = viaPassword === true ? await local.readSecret(`password of ${via}: `) : undefined;
  const password = asked ?? local.io.env['SVC_VIA_PASSWORD'];
  return {
    aid,
    headers: {
      ...(password === undefined || password === '' ? {} : { 'svc-access-token': password }),
      ...(viaAs === undefined ? {} : { 'svc-local-aid': await local.aid(viaAs) }),
    },
  };
}
