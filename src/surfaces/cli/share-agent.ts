/** The agent whose service a shared MCP server is: made if need be, closed to all but those that are let in. */
import { SvcError } from '../../foundation/errors.ts';
import { parseAid } from '../../foundation/identity/aid.ts';
import { provenService } from '../proven-caller.ts';
import { register } from './commands/identity.ts';
import { agentOf, giveName } from './commands/serve.ts';
import type { CliContext } from './context.ts';
import { tryPublish } from './publication.ts';

export interface ShareAgentOptions {
  readonly aid: string | undefined;
  readonly name: string | undefined;
  readonly save_master: string | undefined;
}

export interface ShareAgent {
  readonly aid: string;
  readonly master_private_key_hex?: string | undefined;
  readonly master_file?: string | undefined;
}

/**
 * The agent, bound to nothing that answers.
 * @throws SvcError `invalid_request` where it serves something else
 */
export async function shareAgent(context: CliContext, options: ShareAgentOptions): Promise<ShareAgent> {
  const { name, save_master } = options;
  const known = await agentOf(context, options);
  const { service_tcp, service_tcp_ok } = known === undefined ? NOTHING : await context.client.agentGet({ aid: known });
  const isMeant = options.aid !== undefined || name !== undefined;
  if (service_tcp !== '' && service_tcp_ok && !isMeant)
    throw new SvcError('invalid_request', {
      message: `The only agent here serves ${service_tcp}. Name it with --aid to share this in its place, or another with --name.`,
    });
  const made =
    known === undefined ? await register(context, { save_master, publish: false, service_tcp: undefined }) : undefined;
  const aid = made?.aid ?? known ?? '';
  if (name !== undefined) await giveName(context, aid, name);
  return { aid, master_private_key_hex: made?.master_private_key_hex, master_file: made?.master_file };
}

const NOTHING = { service_tcp: '', service_tcp_ok: false } as const;

/** Lets in these agents and those that were let in before, and nobody else. @returns the AIDs that may call */
export async function closeToOthers(context: CliContext, aid: string, allowed: readonly string[]): Promise<string[]> {
  const { client } = context;
  await client.aclPatch({ aid, default: 'deny' });
  const before = await client.aclGet({ aid });
  const known = new Set<string>(before.allow.flatMap((entry) => (entry.aid === undefined ? [] : [entry.aid])));
  for (const one of allowed) if (!known.has(one)) await client.aclAllow({ aid, body_aid: parseAid(one) });
  return [...new Set([...known, ...allowed])];
}

/**
 * Binds the agent to a port of this machine that takes calls only, and publishes it. Where this command is killed, nobody
 * who takes the port can be the agent.
 */
export async function bindShare(context: CliContext, aid: string, address: string) {
  await context.client.agentPatch({ aid, service_tcp: provenService(address) });
  return tryPublish(context, aid);
}

/** Unbinds it again, unless somebody has bound something else meanwhile. */
export async function unbindShare(context: CliContext, aid: string, address: string): Promise<void> {
  const { service_tcp } = await context.client.agentGet({ aid });
  if (service_tcp === provenService(address)) await context.client.agentPatch({ aid, service_tcp: '' });
}
