/** Counts heartbeats: a rule of the declarations, the same whichever surface an operation came in by. */
import { type Aid, parseAid } from '../../foundation/identity/aid.ts';
import type { BoundOperation } from '../operation.ts';

export interface HeartbeatDependencies {
  readonly record: (aid: Aid) => void;
  /** The local agent that acts: the named one, or the only one. */
  readonly localAid: (named: Aid | undefined) => Aid;
}

/** The operations with those that count as a heartbeat reporting each success of theirs. */
export function countHeartbeats(
  operations: readonly BoundOperation[],
  { record, localAid }: HeartbeatDependencies,
): readonly BoundOperation[] {
  const aidIn = (value: unknown): Aid | undefined => (typeof value === 'string' ? parseAid(value) : undefined);
  return operations.map((operation) => {
    const { heartbeat } = operation.declaration;
    if (heartbeat === false) return operation;
    return {
      declaration: operation.declaration,
      async run(input, context) {
        // Before it runs: another agent may be registered meanwhile, and then nobody is the only one.
        const alive = heartbeat === 'local_aid' ? localAid(aidIn(input['local_aid'])) : aidIn(input['aid']);
        const output = await operation.run(input, context);
        if (alive !== undefined) record(alive);
        return output;
      },
    };
  });
}
