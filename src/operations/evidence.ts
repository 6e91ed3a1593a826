/** Operations on the evidence of calls. */
import { Type } from 'typebox';
import { declare } from './declare.ts';
import { AidParams, AidText, closed } from './schemas.ts';

const COMMON = { params: AidParams, errors: ['bad_aid', 'not_found'], tag: 'Calls' } as const;

const State = Type.Object({
  aid: AidText,
  enabled: Type.Boolean({
    description: 'Calls of this agent carry a signature that the called service can show to others.',
  }),
});

export const evidenceOperations = declare(COMMON, {
  evidenceGet: {
    summary: 'Shows whether the calls of an agent carry evidence: see docs/evidence.md.',
    route: 'GET /agents/{aid}/evidence',
    output: State,
  },

  evidenceSet: {
    summary: "Turns the evidence of an agent's calls on or off. Default: off.",
    route: 'PUT /agents/{aid}/evidence',
    body: closed({ enabled: Type.Boolean() }),
    output: State,
    heartbeat: true,
  },
});
