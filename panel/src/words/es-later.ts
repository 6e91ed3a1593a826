/** Español: what the first view does not say. */
import type { LaterWords } from './en-later.ts';
import { esAgent } from './es-agent.ts';
import { esTalk } from './es-talk.ts';

export const esLater = { ...esAgent, ...esTalk } satisfies LaterWords;
