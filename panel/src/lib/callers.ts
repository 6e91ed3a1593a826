/** Allows and denies callers of an agent. */
import type { Output } from './api.ts';
import { here } from './place.ts';
import { perform } from './query.ts';

type Acl = NonNullable<Output<'agentGet'>['acl']>;

/** Allows a caller: removes its deny entries, and adds an allow entry if the default is to deny. */
export async function allowCaller(aid: string, acl: Acl, caller: string): Promise<void> {
  const { base } = here();
  for (const { id, aid: denied } of acl.deny) if (denied === caller) await perform('aclDenyDelete', { aid, id }, base);
  const isNamed = acl.allow.some((entry) => entry.aid === caller);
  if (acl.default !== 'public' && !isNamed) await perform('aclAllow', { aid, body_aid: caller }, base);
}

/** Denies a caller, even if another entry allows it. */
export async function denyCaller(aid: string, caller: string): Promise<void> {
  await perform('aclDeny', { aid, body_aid: caller });
}
