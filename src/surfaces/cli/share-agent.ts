/** The agent of a shared MCP server. It is created if necessary, and closed to all but the allowed agents. */
import { parseAid } from '../../foundation/identity/aid.ts';
import { provenService } from '../proven-caller.ts';
import { register, type ShowKey } from './commands/identity.ts';
import { confirmReplacement, nameAgent, serviceAgent } from './commands/serve.ts';
import type { CliContext } from './context.ts';

/** Deadline for each request while the command stops, milliseconds. */
const UNBIND_MS = 5_000;

export interface ShareAgentOptions {
  readonly aid: string | undefined;
  readonly name: string | undefined;
  readonly save_master: string | undefined;
  readonly replace: true | undefined;
}

export interface ShareAgent {
  readonly aid: string;
  /** The service that the share replaces, or null. */
  readonly replaced: string | null;
  readonly master_private_key_hex?: string | undefined;
  readonly master_file?: string | undefined;
}

/**
 * The agent, not bound to a service yet.
 * @throws SvcError `wrong_state` if another service is bound and may not be replaced
 */
export async function shareAgent(
  context: CliContext,
  options: ShareAgentOptions,
  showKey: ShowKey,
): Promise<ShareAgent> {
  const { name, save_master } = options;
  const known = await serviceAgent(context, options);
  const replaced = known === undefined ? null : await confirmReplacement(context, known, options.replace === true);
  const made =
    known === undefined
      ? await register(context, { save_master, publish: false, service_tcp: undefined }, showKey)
      : undefined;
  const aid = made?.aid ?? known ?? '';
  if (name !== undefined) await nameAgent(context, aid, name);
  // The key comes first: it was printed before the rest was known.
  return { aid, master_private_key_hex: made?.master_private_key_hex, master_file: made?.master_file, replaced };
}

/** Allows these agents and those already on the list, and denies all others. @returns the AIDs that may call */
export async function allowOnly(context: CliContext, aid: string, allowed: readonly string[]): Promise<string[]> {
  const { client } = context;
  await client.aclPatch({ aid, default: 'deny' });
  const before = await client.aclGet({ aid });
  const known = new Set<string>(before.allow.flatMap((entry) => (entry.aid === undefined ? [] : [entry.aid])));
  for (const one of allowed) if (!known.has(one)) await client.aclAllow({ aid, body_aid: parseAid(one) });
  return [...new Set([...known, ...allowed])];
}

/**
 * Binds the agent to a local port for calls. If this command is killed, another program on the port cannot act as the
 * agent.
 */
export async function bindShare(context: CliContext, aid: string, address: string): Promise<void> {
  await context.client.agentPatch({ aid, service_tcp: provenService(address), temporary: true });
}

/** Binds the previous service again, unless another one was bound since. */
export async function unbindShare(context: CliContext, aid: string, address: string): Promise<void> {
  const limit = { timeoutMs: UNBIND_MS };
  const { service_tcp } = await context.client.agentGet({ aid }, limit);
  if (service_tcp === provenService(address))
    await context.client.agentPatch({ aid, service_tcp: '', temporary: true }, limit);
}
