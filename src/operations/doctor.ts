/** The operation that looks for the causes of trouble. */
import { Type } from 'typebox';
import { CHECKS, FINDING_LEVELS } from '../foundation/domain/findings.ts';
import { declare } from './declare.ts';
import { oneOf } from './schemas.ts';

export const doctorOperations = declare(
  { tag: 'Node' },
  {
    nodeDoctor: {
      summary:
        'Examines the node, its network, its agents and its files: what is wrong, and what helps. Looks its agents up in the network, and tries to write to the data directory.',
      route: 'GET /node/doctor',
      output: Type.Object({
        ok: Type.Boolean({ description: 'Nothing failed; there may be warnings.' }),
        findings: Type.Array(
          Type.Object({
            check: oneOf(CHECKS, { description: 'What was examined.' }),
            level: oneOf(FINDING_LEVELS),
            what: Type.String(),
            hint: Type.Optional(
              Type.String({ description: 'What to do about it; what failed and what is warned of always has one.' }),
            ),
          }),
        ),
      }),
    },
  },
);
