/** Simplified Chinese: the texts that the first view does not need. */
import type { LaterWords } from './en-later.ts';
import { zhAgent } from './zh-agent.ts';
import { zhTalk } from './zh-talk.ts';

export const zhLater = { ...zhAgent, ...zhTalk } satisfies LaterWords;
