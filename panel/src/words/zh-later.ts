/** 中文: what the first view does not say. */
import type { LaterWords } from './en-later.ts';
import { zhAgent } from './zh-agent.ts';
import { zhNode } from './zh-node.ts';

export const zhLater = { ...zhAgent, ...zhNode } satisfies LaterWords;
