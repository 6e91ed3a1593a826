/** English: the texts that the first view does not need. */
import type { Text } from '../lib/text.ts';
import { enAgent } from './en-agent.ts';
import { enTalk } from './en-talk.ts';

export const enLater = { ...enAgent, ...enTalk } satisfies Readonly<Record<string, Text>>;

/** The keys that each language must translate. */
export type LaterWords = Readonly<Record<keyof typeof enLater, Text>>;
