/** Lets callers of an agent in, and keeps them out. */
import type { Output } from './api.ts';
import { here } from './place.ts';
import { perform } from './query.ts';

type Acl = NonNullable<Output<'agentGet'>['acl']>;

/** Lets a caller in: what keeps it out goes, and where only those named may call, it is named. */
export async function letIn(aid: string, acl: Acl, caller: string): Promise<void> {
  const { base } = here();
  for (const { id, aid: denied } of acl.deny) if (denied === caller) await perform('aclDenyDelete', { aid, id }, base);
  const isNamed = acl.allow.some((entry) => entry.aid === caller);
  if (acl.default !== 'public' && !isNamed) await perform('aclAllow', { aid, body_aid: caller }, base);
}

/** Keeps a caller out, whatever else would let it in. */
export async function keepOut(aid: string, caller: string): Promise<void> {
  await perform('aclDeny', { aid, body_aid: caller });
}
