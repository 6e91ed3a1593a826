/** 中文: what the first view does not say. */
import type { LaterWords } from './en-later.ts';
import { zhAgent } from './zh-agent.ts';
import { zhTalk } from './zh-talk.ts';

export const zhLater = { ...zhAgent, ...zhTalk } satisfies LaterWords;
