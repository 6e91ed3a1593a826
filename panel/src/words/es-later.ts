/** Spanish: the texts that the first view does not need. */
import type { LaterWords } from './en-later.ts';
import { esAgent } from './es-agent.ts';
import { esTalk } from './es-talk.ts';

export const esLater = { ...esAgent, ...esTalk } satisfies LaterWords;
