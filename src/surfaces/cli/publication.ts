/** Publishes an agent, and describes the result. */
import { pluralize } from '../../foundation/display-text.ts';
import type { AnswerOf, SvcClient } from './client.ts';
import type { CliContext } from './context.ts';

const NO_OTHER_NODE = 'not yet: no other node stores it. It is published as soon as this node reaches one';

export interface PublishAttempt {
  readonly published: boolean;
  readonly seq?: number | undefined;
  /** Number of other nodes that stored it. */
  readonly replicas?: number | undefined;
  readonly publish_error?: string | undefined;
  /** Why nodes in other networks do not reach the agent. */
  readonly problem?: string | undefined;
}

/** Publishes an agent and returns the result. The daemon retries automatically. */
export async function tryPublish({ client }: CliContext, aid: string): Promise<PublishAttempt> {
  try {
    const { seq, replicas, problem } = await client.agentPublish({ aid });
    // 0 replicas: there is no other node, or all other nodes use this one as their storage node.
    const published = replicas > 0 || (await client.agentGet({ aid })).published;
    return { published, seq, replicas, ...(problem === undefined ? {} : { problem }) };
  } catch (error) {
    return { published: false, publish_error: error instanceof Error ? error.message : 'unknown failure' };
  }
}

type Profile = NonNullable<AnswerOf<'agentGet'>['profile']>;

/** Publishes a profile with some members changed. A member that is undefined is removed. */
export async function changeProfile(
  client: SvcClient,
  aid: string,
  changes: { readonly [K in keyof Profile]: Profile[K] | undefined },
): Promise<AnswerOf<'profileSet'>> {
  const { profile } = await client.agentGet({ aid });
  return client.profileSet({ ...profile, ...changes, aid });
}

/** The storage nodes of a record, in words. */
export function storedText(replicas: number): string {
  return replicas > 0 ? `stored at ${pluralize(replicas, 'node')}` : 'stored at this node for all other nodes';
}

/** Undefined if unknown. */
export function publishedText(attempt: Partial<PublishAttempt>): string | undefined {
  const { published, replicas, publish_error, problem } = attempt;
  if (published === undefined) return undefined;
  if (published && problem !== undefined) return `only here, ${storedText(replicas ?? 0)}. ${problem}`;
  if (published) return `yes, ${storedText(replicas ?? 0)}`;
  return publish_error ?? (replicas === undefined ? 'no' : NO_OTHER_NODE);
}

/** The result of publishing. 0 replicas may mean that there is no other node. */
export function publishResultText(
  what: string,
  { replicas, problem }: { readonly replicas: number; readonly problem?: string | undefined },
): string {
  return replicas > 0
    ? `Published ${what}, stored at ${pluralize(replicas, 'node')}.${problem === undefined ? '' : ` ${problem}`}`
    : `Stored ${what} on this node. It is published as soon as this node reaches another one.`;
}
