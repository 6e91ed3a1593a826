/** Counts heartbeats: a rule of the declarations, the same whichever surface an operation came in by. */
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import type { BoundOperation } from '../operation.ts';

/** The operations with those that count as a heartbeat reporting each success of theirs. */
export function countHeartbeats(
  operations: readonly BoundOperation[],
  record: (aid: Aid) => void,
): readonly BoundOperation[] {
  return operations.map((operation) => {
    if (!operation.declaration.heartbeat) return operation;
    return {
      declaration: operation.declaration,
      async run(input, context) {
        const output = await operation.run(input, context);
        const { aid } = input;
        if (typeof aid === 'string') record(parseAid(aid));
        return output;
      },
    };
  });
}
