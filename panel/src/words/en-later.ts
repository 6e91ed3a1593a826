/** English: what the first view does not say. */
import type { Text } from '../lib/text.ts';
import { enAgent } from './en-agent.ts';
import { enTalk } from './en-talk.ts';

export const enLater = { ...enAgent, ...enTalk } satisfies Readonly<Record<string, Text>>;

/** What each language has of them. */
export type LaterWords = Readonly<Record<keyof typeof enLater, Text>>;
