/** The operation that diagnoses the node. */
import { Type } from 'typebox';
import { CHECKS, FINDING_CODES, FINDING_LEVELS } from '../foundation/domain/findings.ts';
import { declare } from './declare.ts';
import { oneOf } from './schemas.ts';

export const doctorOperations = declare(
  { tag: 'Node' },
  {
    nodeDoctor: {
      summary:
        'Checks the node, its network, its agents and its files, and suggests fixes. It looks up the agents in the network and writes a test file to the data directory.',
      route: 'GET /node/doctor',
      output: Type.Object({
        ok: Type.Boolean({ description: 'No check failed. There may be warnings.' }),
        findings: Type.Array(
          Type.Object({
            check: oneOf(CHECKS, { description: 'The checked area.' }),
            level: oneOf(FINDING_LEVELS),
            what: Type.String(),
            hint: Type.Optional(Type.String({ description: 'How to fix it. Failures and warnings always have one.' })),
            code: Type.Optional(oneOf(FINDING_CODES, { description: 'The name of the sentence, for translations.' })),
            values: Type.Optional(
              Type.Record(Type.String(), Type.Union([Type.String(), Type.Number()]), {
                description: 'The values in the sentence. Names that end in `_at` are times.',
              }),
            ),
          }),
        ),
      }),
    },
  },
);
