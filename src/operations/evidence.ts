/** Operations on the evidence that calls of an agent carry. */
import { Type } from 'typebox';
import { declare } from './declare.ts';
import { AidParams, AidText, closed } from './schemas.ts';

const COMMON = { params: AidParams, errors: ['bad_aid', 'not_found'], tag: 'Calls' } as const;

const State = Type.Object({
  aid: AidText,
  enabled: Type.Boolean({ description: 'Its calls carry a signature that the called service may show to others.' }),
});

export const evidenceOperations = declare(COMMON, {
  evidenceGet: {
    summary: 'Says whether calls of an agent carry evidence: see docs/evidence.md.',
    route: 'GET /agents/{aid}/evidence',
    output: State,
  },

  evidenceSet: {
    summary: 'Switches the evidence that calls of an agent carry on or off; it is off where nobody said so.',
    route: 'PUT /agents/{aid}/evidence',
    body: closed({ enabled: Type.Boolean() }),
    output: State,
    heartbeat: true,
  },
});
