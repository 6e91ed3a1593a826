/** Publishing an agent, and how it is said whether others find it. */
import { counted } from '../../foundation/plain-words.ts';
import type { CliContext } from './context.ts';

const NO_OTHER_NODE = 'not yet: no other node has it. It goes out as soon as this node reaches one';

export interface PublishAttempt {
  readonly published: boolean;
  readonly seq?: number | undefined;
  /** Other nodes that keep it, after an attempt. */
  readonly replicas?: number | undefined;
  readonly publish_error?: string | undefined;
}

/** Publishes an agent, and says what came of it. The daemon tries again by itself. */
export async function tryPublish({ client }: CliContext, aid: string): Promise<PublishAttempt> {
  try {
    const { seq, replicas } = await client.agentPublish({ aid });
    // 0 replicas: there is no other node, or this is the node that the others ask.
    return { published: replicas > 0 || (await client.agentGet({ aid })).published, seq, replicas };
  } catch (error) {
    return { published: false, publish_error: error instanceof Error ? error.message : 'unknown failure' };
  }
}

/** Which nodes keep what is published. */
export function keptText(replicas: number): string {
  return replicas > 0 ? `kept by ${counted(replicas, 'node')}` : 'kept by this node, which the others ask';
}

/** Undefined before it is known. */
export function publishedText({ published, replicas, publish_error }: Partial<PublishAttempt>): string | undefined {
  if (published === undefined) return undefined;
  if (published) return `yes, ${keptText(replicas ?? 0)}`;
  return publish_error ?? (replicas === undefined ? 'no' : NO_OTHER_NODE);
}

/** What came of publishing something of an agent: 0 replicas may mean that there is no other node. */
export function answerText(what: string, { replicas }: { readonly replicas: number }): string {
  return replicas > 0
    ? `${what} is published, kept by ${counted(replicas, 'node')}.`
    : `${what} is kept here. No other node keeps it: it goes out as soon as this node reaches one.`;
}
