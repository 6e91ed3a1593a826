/** Japanese: the texts that the first view does not need. */
import type { LaterWords } from './en-later.ts';
import { jaAgent } from './ja-agent.ts';
import { jaTalk } from './ja-talk.ts';

export const jaLater = { ...jaAgent, ...jaTalk } satisfies LaterWords;
