/** Deutsch: what the first view does not say. */

import { deAgent } from './de-agent.ts';
import { deNode } from './de-node.ts';
import { deTalk } from './de-talk.ts';
import type { LaterWords } from './en-later.ts';

export const deLater = { ...deAgent, ...deNode, ...deTalk } satisfies LaterWords;
