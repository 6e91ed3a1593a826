/** German: the texts that the first view does not need. */
import { deAgent } from './de-agent.ts';
import { deTalk } from './de-talk.ts';
import type { LaterWords } from './en-later.ts';

export const deLater = { ...deAgent, ...deTalk } satisfies LaterWords;
